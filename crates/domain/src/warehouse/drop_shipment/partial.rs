//! The cancellation of some items of a drop shipment.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::limits::{MAX_ITEMS, QUANTITY};
use crate::json::{Object, array, integer, object, read_fields, text};
use crate::warehouse::identifier::{Identifier, identifier};
use crate::warehouse::limits::OPTIONAL_TEXT;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DropShipmentPartialCancellation {
    pub order: PartlyCancelledOrder,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PartlyCancelledOrder {
    pub id: Identifier,
    /// The merchant's identifier of the order.
    pub client_identifier: Identifier,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 255)]
    pub status: Option<String>,
    #[schema(min_items = 1, max_items = 1000)]
    pub order_items: Vec<PartlyCancelledItem>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PartlyCancelledItem {
    pub id: Identifier,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_identifier: Option<Identifier>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 255)]
    pub status: Option<String>,
    #[schema(minimum = 1, maximum = 1_000_000)]
    pub quantity: i64,
    /// At most the quantity.
    #[schema(minimum = 0, maximum = 1_000_000)]
    pub cancelled_quantity: i64,
}

impl DropShipmentPartialCancellation {
    pub(super) fn read(message: &Object<'_>) -> Option<Self> {
        Some(Self { order: message.required("order", object(PartlyCancelledOrder::read))? })
    }
}

impl PartlyCancelledOrder {
    fn read(order: &Object<'_>) -> Option<Self> {
        let items = array(1..=MAX_ITEMS, object(PartlyCancelledItem::read));
        read_fields!(Self {
            id: order.required("id", identifier),
            client_identifier: order.required("client_identifier", identifier),
            status: order.optional("status", text(OPTIONAL_TEXT)),
            order_items: order.required("order_items", items),
        })
    }
}

impl PartlyCancelledItem {
    fn read(item: &Object<'_>) -> Option<Self> {
        let id = item.required("id", identifier);
        let client_identifier = item.optional("client_identifier", identifier);
        let status = item.optional("status", text(OPTIONAL_TEXT));
        let quantity = item.required("quantity", integer(QUANTITY));
        let cancelled = item.required("cancelled_quantity", integer(0..=*QUANTITY.end()));
        if let (Some(quantity), Some(cancelled)) = (quantity, cancelled)
            && cancelled > quantity
        {
            item.invalid("cancelled_quantity", format!("must be at most the quantity, {quantity}"));
        }
        Some(Self {
            id: id?,
            client_identifier: client_identifier?,
            status: status?,
            quantity: quantity?,
            cancelled_quantity: cancelled?,
        })
    }
}
