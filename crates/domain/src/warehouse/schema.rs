//! The contract as data: the schema of each message that leaves.

use serde_json::{Value, json};

use super::{
    DropShipmentCancellation, DropShipmentConfirmation, DropShipmentPartialCancellation,
    InventoryReceipt, OutboundAsn,
};
use crate::message_kind::MessageKind;
use crate::schema::json_schema;

/// The schema of a warehouse's message, if the kind is one.
pub fn message_schema(kind: MessageKind) -> Option<Value> {
    match kind {
        MessageKind::OutboundAsn => Some(outbound_schema()),
        MessageKind::InventoryReceipt => Some(receipt_schema()),
        MessageKind::DropShipmentConfirmation => {
            Some(json_schema::<DropShipmentConfirmation>("Drop shipment confirmation message"))
        }
        MessageKind::DropShipmentCancellation => {
            Some(json_schema::<DropShipmentCancellation>("Drop shipment cancellation message"))
        }
        MessageKind::DropShipmentPartialCancellation => {
            let title = "Drop shipment partial cancellation message";
            Some(json_schema::<DropShipmentPartialCancellation>(title))
        }
        MessageKind::Rma | MessageKind::ExchangeOrder => None,
    }
}

/// What a report may leave out is null on its way out, and there.
fn outbound_schema() -> Value {
    let mut schema = json_schema::<OutboundAsn>("Outbound ASN message");
    if let Some(Value::Array(required)) = schema.pointer_mut("/$defs/OutboundHeader/required") {
        let always = ["tracking_number", "carrier", "carrier_payment_type"];
        required.extend(always.map(|key| json!(key)));
    }
    schema
}

/// A receipt has gaps on its way in and none of these on its way out.
fn receipt_schema() -> Value {
    let mut schema = json_schema::<InventoryReceipt>("Inventory Receipt message");
    if let Some(Value::Array(required)) = schema.get_mut("required") {
        required.extend(["from", "to", "unit_identifier"].map(|key| json!(key)));
    }
    if let Value::Object(schema) = &mut schema {
        schema.insert("description".to_owned(), json!("A unit was received against an ASN"));
        let told = |key: &str| json!({ "required": [key] });
        let either = json!([told("initial_condition"), told("reject_reason")]);
        schema.insert("anyOf".to_owned(), either);
    }
    schema
}
