//! The confirmation that a drop shipment left the warehouse.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_with::skip_serializing_none;
use utoipa::ToSchema;

use super::limits::{MAX_ITEMS, QUANTITY};
use crate::json::{Field, Object, array, integer, number, object, read_fields, text, timestamp};
use crate::warehouse::identifier::{Identifier, code, identifier};
use crate::warehouse::limits::{AMOUNT, OPTIONAL_TEXT};

#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct DropShipmentConfirmation {
    pub shipment: ConfirmedShipment,
}

#[skip_serializing_none]
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct ConfirmedShipment {
    pub id: Identifier,
    /// The merchant's identifier of the order.
    pub client_identifier: Identifier,
    #[schema(max_length = 255)]
    pub channel: Option<String>,
    #[schema(max_length = 255)]
    pub carrier: Option<String>,
    #[schema(max_length = 255)]
    pub shipping_method: Option<String>,
    pub tracking_number: Option<Identifier>,
    /// Sent with the digits with which it was received.
    #[schema(value_type = Option<f64>, minimum = 0, maximum = 1_000_000_000_000i64)]
    pub billed_weight: Option<Box<RawValue>>,
    #[schema(minimum = 0, maximum = 1_000_000_000_000_000i64)]
    pub shipping_cost_cents: Option<i64>,
    pub packing_slip_identifier: Option<Identifier>,
    #[schema(min_items = 1, max_items = 1000)]
    pub shipment_items: Vec<ShipmentItem>,
    pub created_at: Option<DateTime<Utc>>,
    pub updated_at: Option<DateTime<Utc>>,
}

#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ShipmentItem {
    pub id: Identifier,
    pub client_identifier: Option<Identifier>,
    #[schema(minimum = 1, maximum = 1_000_000)]
    pub quantity: i64,
    pub created_at: Option<DateTime<Utc>>,
    pub updated_at: Option<DateTime<Utc>>,
}

impl DropShipmentConfirmation {
    pub(super) fn read(message: &Object<'_>) -> Option<Self> {
        Some(Self { shipment: message.required("shipment", object(ConfirmedShipment::read))? })
    }

    /// Takes the weight from the text of the report, because a parsed number has lost its trailing
    /// zeros.
    pub(super) fn keep_weight_text(&mut self, report: &str) {
        if let Ok(RawConfirmation { shipment }) = serde_json::from_str(report)
            && let Some(weight) = shipment.billed_weight
        {
            self.shipment.billed_weight = Some(weight.to_owned());
        }
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
            tracking_number: shipment.optional("tracking_number", code),
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

/// A non-negative number.
fn weight(field: Field<'_>) -> Option<Box<RawValue>> {
    number(0.0..=1e12)(field)?;
    RawValue::from_string(field.value().as_number()?.to_string()).ok()
}

/// A confirmation with the text of its weight.
#[derive(Deserialize)]
struct RawConfirmation<'a> {
    #[serde(borrow)]
    shipment: RawShipment<'a>,
}

#[derive(Deserialize)]
struct RawShipment<'a> {
    #[serde(borrow)]
    billed_weight: Option<&'a RawValue>,
}
