//! A drop shipment left.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::Number;
use utoipa::ToSchema;

use super::super::identifier::{Identifier, identifier};
use super::super::{AMOUNT, WORD};
use super::{MAX_ITEMS, QUANTITY, measure};
use crate::json::{Object, array, integer, object, text, timestamp};

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
        let id = shipment.required("id", identifier);
        let client_identifier = shipment.required("client_identifier", identifier);
        let channel = shipment.optional("channel", text(WORD));
        let carrier = shipment.optional("carrier", text(WORD));
        let shipping_method = shipment.optional("shipping_method", text(WORD));
        let tracking_number = shipment.optional("tracking_number", text(WORD));
        let billed_weight = shipment.optional("billed_weight", measure);
        let cost = shipment.optional("shipping_cost_cents", integer(AMOUNT));
        let slip = shipment.optional("packing_slip_identifier", identifier);
        let items = array(1..=MAX_ITEMS, object(ShipmentItem::read));
        let shipment_items = shipment.required("shipment_items", items);
        let created_at = shipment.optional("created_at", timestamp);
        let updated_at = shipment.optional("updated_at", timestamp);
        Some(Self {
            id: id?,
            client_identifier: client_identifier?,
            channel: channel?,
            carrier: carrier?,
            shipping_method: shipping_method?,
            tracking_number: tracking_number?,
            billed_weight: billed_weight?,
            shipping_cost_cents: cost?,
            packing_slip_identifier: slip?,
            shipment_items: shipment_items?,
            created_at: created_at?,
            updated_at: updated_at?,
        })
    }
}

impl ShipmentItem {
    fn read(item: &Object<'_>) -> Option<Self> {
        let id = item.required("id", identifier);
        let client_identifier = item.optional("client_identifier", identifier);
        let quantity = item.required("quantity", integer(QUANTITY));
        let created_at = item.optional("created_at", timestamp);
        let updated_at = item.optional("updated_at", timestamp);
        Some(Self {
            id: id?,
            client_identifier: client_identifier?,
            quantity: quantity?,
            created_at: created_at?,
            updated_at: updated_at?,
        })
    }
}
