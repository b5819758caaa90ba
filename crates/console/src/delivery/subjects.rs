//! The returns, orders and ASNs that a message is about.

use api::delivery::DeliveryView;
use pages::path;
use serde_json::Value;

/// A link to the page of a return, an order or an ASN.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Subject {
    pub(super) name: String,
    pub(super) url: String,
}

/// The fields of messages that name an order.
const ORDERS: [&str; 4] = [
    "/original_order_id",
    "/shipment/client_identifier",
    "/order/client_identifier",
    "/order_identifier",
];
/// A message has few different orders.
const MAX_SUBJECTS: usize = 6;

/// The subjects of a message, from its ordering key and its body.
pub(super) fn subjects(delivery: &DeliveryView, body: &str) -> Vec<Subject> {
    let body: Value = serde_json::from_str(body).unwrap_or_default();
    let mut found: Vec<(&str, String)> = Vec::new();
    let key = delivery.ordering_key.as_deref();
    let key = key.map(|key| key.strip_prefix("mail:").unwrap_or(key));
    let key = key.and_then(|key| key.split_once(':'));
    found.extend(key.map(|(kind, id)| (kind, id.to_owned())));
    found.extend(text(&body, "/rma_identifier").map(|id| ("rma", id)));
    found.extend(ORDERS.iter().filter_map(|field| Some(("order", text(&body, field)?))));
    let items = body.get("items").and_then(Value::as_array).into_iter().flatten();
    found.extend(items.filter_map(|item| Some(("order", text(item, "/order_identifier")?))));
    found.extend(text(&body, "/asn_number").map(|id| ("asn", id)));
    let exchanged = text(&body, "/original_order_id").filter(|_| delivery.kind == "exchange-order");
    found.extend(exchanged.map(|id| ("exchange", id)));
    let mut subjects: Vec<Subject> = Vec::new();
    for (kind, id) in found {
        let Some(subject) = Subject::new(delivery, kind, &id) else { continue };
        if !subjects.contains(&subject) {
            subjects.push(subject);
        }
    }
    subjects.truncate(MAX_SUBJECTS);
    subjects
}

impl Subject {
    fn new(delivery: &DeliveryView, kind: &str, id: &str) -> Option<Self> {
        let (name, section) = match kind {
            "rma" => ("Return", "returns"),
            "asn" => ("ASN", "asns"),
            // A warehouse ships these orders; the merchant may not have published them.
            "order" if delivery.kind.starts_with("drop-shipment") => {
                ("Drop shipment", "drop-shipments")
            }
            "order" => ("Order", "orders"),
            "exchange" => ("Exchange of order", "exchange-orders"),
            _ => return None,
        };
        let url = format!("/{}", path!("merchants", delivery.merchant, section, id));
        Some(Self { name: format!("{name} {id}"), url })
    }
}

fn text(value: &Value, pointer: &str) -> Option<String> {
    let text = value.pointer(pointer)?.as_str()?;
    (!text.is_empty()).then(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::fixtures;

    fn delivery(kind: &str, ordering_key: Option<&str>) -> DeliveryView {
        fixtures::delivery(&json!({ "kind": kind, "ordering_key": ordering_key }))
    }

    fn names(delivery: &DeliveryView, body: &Value) -> Vec<String> {
        subjects(delivery, &body.to_string()).into_iter().map(|subject| subject.name).collect()
    }

    #[test]
    fn a_message_links_to_each_subject_once() {
        let body = json!({
            "rma_identifier": "R/1",
            "items": [{ "order_identifier": "1001" }, { "order_identifier": "1001" }],
        });
        let rma = delivery("rma", Some("rma:R/1"));
        assert_eq!(names(&rma, &body), ["Return R/1", "Order 1001"]);
        let url = subjects(&rma, &body.to_string()).remove(0).url;
        assert_eq!(url, "/merchants/acme/returns/R%2F1");
        let body = json!({ "shipment": { "client_identifier": "1002" } });
        let shipped = delivery("drop-shipment-confirmation", Some("order:1002"));
        assert_eq!(names(&shipped, &body), ["Drop shipment 1002"]);
        let body = json!({ "original_order_id": "1003" });
        let exchange = delivery("exchange-order", Some("order:1003"));
        assert_eq!(names(&exchange, &body), ["Order 1003", "Exchange of order 1003"]);
        assert_eq!(names(&delivery("outbound-asn", Some("asn:A:1")), &json!("text")), ["ASN A:1"]);
        assert_eq!(names(&delivery("mail", Some("mail:rma:R/1")), &json!({})), ["Return R/1"]);
        assert!(names(&delivery("mail", Some("mail:endpoint:rma")), &json!({})).is_empty());
        assert!(names(&delivery("rma", None), &json!({})).is_empty());
    }
}
