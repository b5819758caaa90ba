//! What becomes of orders sent for a merchant.

use domain::warehouse::sample::{cancellation, confirmation, partial_cancellation};

use super::*;

const CONFIRMATIONS: &str = "/v1/drop_shipments/confirmations";
const CANCELLATIONS: &str = "/v1/drop_shipments/cancellations";
const PARTIAL: &str = "/v1/drop_shipments/partial_cancellations";

#[tokio::test(flavor = "multi_thread")]
async fn each_message_reaches_the_merchant_as_it_came() {
    let warehouse = Warehouse::open().await;
    let sent = [
        (PARTIAL, "/drop_shipment_partial_cancellation", partial_cancellation("SO-1")),
        (CONFIRMATIONS, "/drop_shipment_confirmation", confirmation("SO-1")),
        (CANCELLATIONS, "/drop_shipment_cancellation", cancellation("SO-1")),
    ];
    for (path, _, body) in &sent {
        warehouse.accept(path, body).await;
    }
    let arrivals = warehouse.delivered(3).await;
    let events =
        ["drop_shipment.partially_cancelled", "drop_shipment.confirmed", "drop_shipment.cancelled"];
    // One ordering_key: the merchant hears of the order in the order in which things happened.
    for (place, ((_, path, body), arrival)) in sent.iter().zip(&arrivals).enumerate() {
        assert_eq!((arrival.path.as_str(), &arrival.body), (*path, body));
        assert_eq!(arrival.event, events[place]);
        assert_eq!(arrival.sequence, u64::try_from(place + 1).unwrap());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn repeated_requests_send_nothing_twice() {
    let warehouse = Warehouse::open().await;
    for (path, body) in [
        (CONFIRMATIONS, confirmation("SO-1")),
        (PARTIAL, partial_cancellation("SO-1")),
        (CANCELLATIONS, cancellation("SO-1")),
    ] {
        let first = warehouse.accept(path, &body).await;
        assert_eq!(warehouse.accept(path, &body).await, first);
        let keyed = warehouse.post_keyed(path, "k", &body).await;
        assert_eq!(keyed, (201, first.clone()));
        // What is not told makes no difference, except under the key.
        let mut exported = body.clone();
        exported["exported_at"] = json!("2026-03-10T12:00:00Z");
        assert_eq!(warehouse.accept(path, &exported).await, first);
        assert_eq!(warehouse.post_keyed(path, "k", &exported).await.0, 422);
    }
    // Also after the cancellation: what was accepted then is answered as it was then.
    warehouse.accept(CONFIRMATIONS, &confirmation("SO-1")).await;
    let mut other = confirmation("SO-1");
    other["shipment"]["carrier"] = json!("Saia");
    assert_eq!(warehouse.refuse(CONFIRMATIONS, &other).await, fault("$.shipment.id", "invalid"));
    warehouse.delivered(3).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_told_of_an_order_that_was_cancelled() {
    let warehouse = Warehouse::open().await;
    warehouse.accept(CANCELLATIONS, &cancellation("SO-1")).await;
    let cancelled = fault("$.shipment.client_identifier", "invalid");
    assert_eq!(warehouse.refuse(CONFIRMATIONS, &confirmation("SO-1")).await, cancelled);
    let cancelled = fault("$.order.client_identifier", "invalid");
    assert_eq!(warehouse.refuse(PARTIAL, &partial_cancellation("SO-1")).await, cancelled);
    warehouse.accept(CONFIRMATIONS, &confirmation("SO-2")).await;
    warehouse.delivered(2).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn bodies_are_checked_in_full() {
    let warehouse = Warehouse::open().await;
    let mut body = partial_cancellation("SO-1");
    body["order"]["order_items"][0]["cancelled_quantity"] = json!(3);
    body["order"]["client_identifier"] = json!(1.5);
    let expected = [
        ("$.order.client_identifier", "invalid_type"),
        ("$.order.order_items[0].cancelled_quantity", "invalid"),
    ];
    let expected = expected.map(|(field, code)| (field.to_owned(), code.to_owned()));
    assert_eq!(warehouse.refuse(PARTIAL, &body).await, expected);
    let wrong = warehouse.refuse(CANCELLATIONS, &confirmation("SO-1")).await;
    assert_eq!(wrong, fault("$.order", "missing_field"));
    warehouse.delivered(0).await;
}
