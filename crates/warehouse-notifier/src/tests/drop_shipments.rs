//! Tests of confirmations and cancellations of drop shipments.

use domain::warehouse::sample::{cancellation, confirmation, partial_cancellation};

use super::*;

const CONFIRMATIONS: &str = "/v1/drop_shipments/confirmations";
const CANCELLATIONS: &str = "/v1/drop_shipments/cancellations";
const PARTIAL: &str = "/v1/drop_shipments/partial_cancellations";

#[tokio::test(flavor = "multi_thread")]
async fn messages_reach_the_merchant_unchanged_and_in_order() {
    let app = TestApp::start().await;
    let sent = [
        (PARTIAL, "/drop_shipment_partial_cancellation", partial_cancellation("SO-1")),
        (CONFIRMATIONS, "/drop_shipment_confirmation", confirmation("SO-1")),
        (CANCELLATIONS, "/drop_shipment_cancellation", cancellation("SO-1")),
    ];
    for (path, _, body) in &sent {
        app.accept(path, body).await;
    }
    let arrivals = app.delivered(3).await;
    let events =
        ["drop_shipment.partially_cancelled", "drop_shipment.confirmed", "drop_shipment.cancelled"];
    // The messages have one ordering key, so the merchant receives them in order.
    for (index, ((_, path, body), arrival)) in sent.iter().zip(&arrivals).enumerate() {
        assert_eq!((arrival.path.as_str(), &arrival.body), (*path, body));
        assert_eq!(arrival.event, events[index]);
        assert_eq!(arrival.sequence, u64::try_from(index + 1).unwrap());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn repeated_requests_send_nothing_twice() {
    let app = TestApp::start().await;
    for (path, body) in [
        (CONFIRMATIONS, confirmation("SO-1")),
        (PARTIAL, partial_cancellation("SO-1")),
        (CANCELLATIONS, cancellation("SO-1")),
    ] {
        let first = app.accept(path, &body).await;
        assert_eq!(app.accept(path, &body).await, first);
        let keyed = app.post_keyed(path, "k", &body).await;
        assert_eq!(keyed, (201, first.clone()));
        // Fields that are not in the message make no difference, except with an idempotency key.
        let mut exported = body.clone();
        exported["exported_at"] = json!("2026-03-10T12:00:00Z");
        assert_eq!(app.accept(path, &exported).await, first);
        assert_eq!(app.post_keyed(path, "k", &exported).await.0, 422);
    }
    // A confirmation that was accepted before the cancellation still gets its first response.
    app.accept(CONFIRMATIONS, &confirmation("SO-1")).await;
    let mut other = confirmation("SO-1");
    other["shipment"]["carrier"] = json!("Saia");
    assert_eq!(app.reject(CONFIRMATIONS, &other).await, field_error("$.shipment.id", "invalid"));
    app.delivered(3).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancelled_order_accepts_no_more_messages() {
    let app = TestApp::start().await;
    app.accept(CANCELLATIONS, &cancellation("SO-1")).await;
    let cancelled = field_error("$.shipment.client_identifier", "invalid");
    assert_eq!(app.reject(CONFIRMATIONS, &confirmation("SO-1")).await, cancelled);
    let cancelled = field_error("$.order.client_identifier", "invalid");
    assert_eq!(app.reject(PARTIAL, &partial_cancellation("SO-1")).await, cancelled);
    app.accept(CONFIRMATIONS, &confirmation("SO-2")).await;
    app.delivered(2).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rejected_order_is_reported_as_a_cancellation() {
    let app = TestApp::start().await;
    let mut rejected = cancellation("SO-1");
    rejected["order"]["status"] = json!("rejected");
    app.accept(CANCELLATIONS, &rejected).await;
    let cancelled = field_error("$.shipment.client_identifier", "invalid");
    assert_eq!(app.reject(CONFIRMATIONS, &confirmation("SO-1")).await, cancelled);
    let arrivals = app.delivered(1).await;
    assert_eq!(
        (arrivals[0].event.as_str(), &arrivals[0].body),
        ("drop_shipment.cancelled", &rejected)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_weight_is_sent_with_the_digits_that_were_received() {
    use diesel_async::RunQueryDsl as _;
    #[derive(diesel::QueryableByName)]
    struct Body {
        #[diesel(sql_type = diesel::sql_types::Text)]
        body: String,
    }
    let app = TestApp::start().await;
    let report = confirmation("SO-1").to_string();
    assert!(report.contains("\"billed_weight\":2.5,"), "{report}");
    let report = report.replace("\"billed_weight\":2.5,", "\"billed_weight\": 10.50 ,");
    let request = app.request(Method::POST, "acme", CONFIRMATIONS);
    let request = request.header("Content-Type", "application/json").body(report);
    assert_eq!(send(request).await.0, 201);
    let mut conn = app.service.database.pool().get().await.unwrap();
    let query = app.service.own_query(
        "SELECT convert_from(body, 'UTF8') AS body FROM delivery_messages WHERE merchant = 'acme'",
    );
    let query = diesel::sql_query(query);
    let Body { body } = query.get_result(&mut conn).await.unwrap();
    assert!(body.contains("\"billed_weight\":10.50,"), "{body}");
}

#[tokio::test(flavor = "multi_thread")]
async fn all_invalid_fields_are_reported() {
    let app = TestApp::start().await;
    let mut body = partial_cancellation("SO-1");
    body["order"]["order_items"][0]["cancelled_quantity"] = json!(3);
    body["order"]["client_identifier"] = json!(1.5);
    let expected = [
        ("$.order.client_identifier", "invalid_type"),
        ("$.order.order_items[0].cancelled_quantity", "invalid"),
    ];
    let expected = expected.map(|(field, code)| (field.to_owned(), code.to_owned()));
    assert_eq!(app.reject(PARTIAL, &body).await, expected);
    let wrong = app.reject(CANCELLATIONS, &confirmation("SO-1")).await;
    assert_eq!(wrong, field_error("$.order", "missing_field"));
    app.delivered(0).await;
}
