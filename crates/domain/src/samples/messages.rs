//! Sample messages of each kind, without real data.

use crate::message_kind::MessageKind;

/// Returns the body of the sample of a kind.
pub fn sample(kind: MessageKind) -> &'static str {
    match kind {
        MessageKind::Rma => RMA,
        MessageKind::ExchangeOrder => EXCHANGE_ORDER,
        MessageKind::LabelRequest => LABEL_REQUEST,
        MessageKind::OutboundAsn => OUTBOUND_ASN,
        MessageKind::InventoryReceipt => INVENTORY_RECEIPT,
        MessageKind::DropShipmentConfirmation => CONFIRMATION,
        MessageKind::DropShipmentCancellation => CANCELLATION,
        MessageKind::DropShipmentPartialCancellation => PARTIAL_CANCELLATION,
    }
}

const RMA: &str = r#"{"rma_identifier":"SAMPLE-RMA","status":"CREATED","created_at":"2026-01-01T00:00:00Z","updated_at":"2026-01-01T00:00:00Z","items":[{"order_line_item_identifier":"SAMPLE-LINE","order_identifier":"SAMPLE-ORDER","exchange_order_identifier":null,"original_order_identifier":null,"return_reason":"TOO_SMALL","is_exchange":false,"sku":"SAMPLE-SKU","tracking_number":null,"package_tracking_status":null,"refund_financials":{"estimated_refund_amount_cents":5395,"service_refund_amount_cents":0,"shopper_refund_amount_cents":5395},"refund_type":"REFUND"}],"return_method":"mail-back","return_shipping_cost_cents":700,"gift_refund_only":false}"#;

const EXCHANGE_ORDER: &str = r#"{"original_order_id":"SAMPLE-ORDER","items":[{"sku":"SAMPLE-SKU","quantity":1,"title":"Sample","unit_price_amount_cents":4995,"product_amount_cents":4995,"discount_amount_cents":0,"tax_amount_cents":400,"product_identifier":"SAMPLE-PRODUCT","variant_identifier":"SAMPLE-VARIANT","original_sku":"SAMPLE-SKU","original_item_identifier":"SAMPLE-LINE","concept":null}],"customer":{"identifier":"SAMPLE-SHOPPER","email":"sample@example.com"},"payment":{"transaction_id":"00000000-0000-0000-0000-000000000000"},"currency":"USD","is_gift":false,"rma_identifier":"SAMPLE-RMA","shipping_address":{"name":"Sample","street1":"1 Sample Street","city":"Sampleton","state":"NY","zip_code":"10001","country_code":"US"},"billing_address":{"name":"Sample","street1":"1 Sample Street","city":"Sampleton","state":"NY","zip_code":"10001","country_code":"US"}}"#;

const LABEL_REQUEST: &str = r#"{"label_request_id":"00000000-0000-0000-0000-000000000000","merchant":"sample","rma_identifier":"SAMPLE-RMA","parcel":1,"parcel_count":1,"reference":"SAMPLE-RMA","return_method":"mail-back","form":"pdf","currency":"USD","from":{"address":{"name":"Sample","street1":"1 Sample Street","city":"Sampleton","state":"NY","zip_code":"10001","country_code":"US"},"email":"sample@example.com"},"to":null,"units":[{"order_identifier":"SAMPLE-ORDER","order_line_item_identifier":"SAMPLE-LINE","unit":1,"sku":"SAMPLE-SKU","title":"Sample","weight":null,"value_cents":5395}],"requested_at":"2026-01-01T00:00:00Z"}"#;

const OUTBOUND_ASN: &str = r#"{"from":{"identifier":"SAMPLE","type":"warehouse"},"asn_number":"SAMPLE-ASN","channel":"RTV","shipment_identifier":"SAMPLE-SHIPMENT","tracking_number":"SAMPLE-TRACKING","carrier":"UPS","carrier_payment_type":"prepaid","ship_date":"2026-01-01T00:00:00Z","status":"pending","details_type":"unit","to":{"identifier":"SAMPLE","type":"warehouse","address":{"name":"Sample","street":"1 Sample Street","city":"Sampleton","state":"NY","zip":"10001"}},"cartons":[{"details":[{"line_identifier":"SAMPLE-LINE","program_identifier":"SAMPLE-PROGRAM","unit_identifier":"SAMPLE-UNIT","sku":"SAMPLE-SKU","quantity":1,"condition":"N"}]}]}"#;

const INVENTORY_RECEIPT: &str = r#"{"program_identifier":"SAMPLE-PROGRAM","asn_number":"SAMPLE-ASN","shipment_identifier":"SAMPLE-SHIPMENT","from":{"identifier":"SAMPLE","type":"customer"},"to":{"identifier":"SAMPLE","type":"warehouse","original_identifier":"SAMPLE"},"line_identifier":"SAMPLE-LINE","unit_identifier":"SAMPLE-UNIT","sku":"SAMPLE-SKU","initial_condition":"N"}"#;

const CONFIRMATION: &str = r#"{"shipment":{"id":7001,"client_identifier":"SAMPLE-ORDER","carrier":"UPS","tracking_number":"SAMPLE-TRACKING","shipment_items":[{"id":9001,"client_identifier":"SAMPLE-LINE","quantity":1}]}}"#;

const CANCELLATION: &str = r#"{"order":{"id":8001,"client_identifier":"SAMPLE-ORDER","status":"cancelled","reject_reason":"inventory not found","order_items":[{"id":9001,"client_identifier":"SAMPLE-LINE","sku":"SAMPLE-SKU","quantity":1,"status":"cancelled"}]}}"#;

const PARTIAL_CANCELLATION: &str = r#"{"order":{"id":8001,"client_identifier":"SAMPLE-ORDER","status":"shipped","order_items":[{"id":9001,"client_identifier":"SAMPLE-LINE","status":"cancelled","quantity":2,"cancelled_quantity":1}]}}"#;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_sample_conforms_to_its_published_schema() {
        for kind in MessageKind::ALL {
            let messages = concat!(env!("CARGO_MANIFEST_DIR"), "/../../proto-schemas/messages");
            let path = format!("{messages}/{kind}.schema.json");
            let schema = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
            let validator =
                jsonschema::options().should_validate_formats(true).build(&schema).unwrap();
            let sample: serde_json::Value = serde_json::from_str(sample(kind)).unwrap();
            let errors: Vec<_> = validator
                .iter_errors(&sample)
                .map(|error| format!("{}: {error}", error.instance_path()))
                .collect();
            assert!(errors.is_empty(), "{kind}: {errors:#?}");
        }
    }
}
