//! The JSON Schemas of warehouse messages.

use serde_json::{Value, json};

use super::drop_shipment::{
    DropShipmentCancellation, DropShipmentConfirmation, DropShipmentPartialCancellation,
};
use super::outbound::OutboundAsn;
use super::receipt::InventoryReceipt;
use crate::message_kind::MessageKind;
use crate::schema::json_schema;

/// The schema of a warehouse message. Other kinds have none here.
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
        MessageKind::Rma | MessageKind::ExchangeOrder | MessageKind::LabelRequest => None,
    }
}

/// A report can omit these fields. The message always contains them, `null` if unknown.
fn outbound_schema() -> Value {
    let mut schema = json_schema::<OutboundAsn>("Outbound ASN message");
    if let Some(Value::Array(required)) = schema.pointer_mut("/$defs/OutboundHeader/required") {
        let keys = ["tracking_number", "carrier", "carrier_payment_type"];
        required.extend(keys.map(|key| json!(key)));
    }
    schema
}

/// A report can omit these fields. The ASN supplies them.
fn receipt_schema() -> Value {
    let mut schema = json_schema::<InventoryReceipt>("Inventory Receipt message");
    if let Some(Value::Array(required)) = schema.get_mut("required") {
        required.extend(["from", "to", "unit_identifier"].map(|key| json!(key)));
    }
    if let Value::Object(schema) = &mut schema {
        schema.insert("description".to_owned(), json!("A unit was received against an ASN"));
        let required = |key: &str| json!({ "required": [key] });
        let either = json!([required("initial_condition"), required("reject_reason")]);
        schema.insert("anyOf".to_owned(), either);
    }
    schema
}
