//! The confirmation that a drop shipment left the warehouse.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::Number;
use utoipa::ToSchema;

use super::limits::{MAX_ITEMS, QUANTITY};
use crate::json::{Field, Object, array, integer, number, object, read_fields, text, timestamp};
use crate::warehouse::identifier::{Identifier, identifier};
use crate::warehouse::limits::{AMOUNT, OPTIONAL_TEXT};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct DropShipmentConfirmation {
    pub shipment: ConfirmedShipment,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ConfirmedShipment {
    pub id: Identifier,
    /// The merchant's identifier of the order.
    pub client_identifier: Identifier,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 255)]
    pub channel: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 255)]
    pub carrier: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 255)]
    pub shipping_method: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 255)]
    pub tracking_number: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<f64>, minimum = 0)]
    pub billed_weight: Option<Number>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 0, maximum = 1_000_000_000_000_000i64)]
    pub shipping_cost_cents: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub packing_slip_identifier: Option<Identifier>,
    #[schema(min_items = 1, max_items = 1000)]
    pub shipment_items: Vec<ShipmentItem>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_at: Option<DateTime<Utc>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub updated_at: Option<DateTime<Utc>>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ShipmentItem {
    pub id: Identifier,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_identifier: Option<Identifier>,
    #[schema(minimum = 1, maximum = 1_000_000)]
    pub quantity: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_at: Option<DateTime<Utc>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub updated_at: Option<DateTime<Utc>>,
}

impl DropShipmentConfirmation {
    pub(super) fn read(message: &Object<'_>) -> Option<Self> {
        Some(Self { shipment: message.required("shipment", object(ConfirmedShipment::read))? })
    }
}

impl ConfirmedShipment {
    fn read(shipment: &Object<'_>) -> Option<Self> {
        let items = array(1..=MAX_ITEMS, object(ShipmentItem::read));
        read_fields!(Self {
            id: shipment.required("id", identifier),
            client_identifier: shipment.required("client_identifier", identifier),
            channel: shipment.optional("channel", text(OPTIONAL_TEXT)),
            carrier: shipment.optional("carrier", text(OPTIONAL_TEXT)),
            shipping_method: shipment.optional("shipping_method", text(OPTIONAL_TEXT)),
            tracking_number: shipment.optional("tracking_number", text(OPTIONAL_TEXT)),
            billed_weight: shipment.optional("billed_weight", weight),
            shipping_cost_cents: shipment.optional("shipping_cost_cents", integer(AMOUNT)),
            packing_slip_identifier: shipment.optional("packing_slip_identifier", identifier),
            shipment_items: shipment.required("shipment_items", items),
            created_at: shipment.optional("created_at", timestamp),
            updated_at: shipment.optional("updated_at", timestamp),
        })
    }
}

impl ShipmentItem {
    fn read(item: &Object<'_>) -> Option<Self> {
        read_fields!(Self {
            id: item.required("id", identifier),
            client_identifier: item.optional("client_identifier", identifier),
            quantity: item.required("quantity", integer(QUANTITY)),
            created_at: item.optional("created_at", timestamp),
            updated_at: item.optional("updated_at", timestamp),
        })
    }
}

/// A non-negative number, sent in the same form as it was received.
fn weight(field: Field<'_>) -> Option<Number> {
    number(0.0..=1e12)(field)?;
    field.value().as_number()
}
