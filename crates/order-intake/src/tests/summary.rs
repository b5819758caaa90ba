//! Tests of `GET /v1/order_summary`.

use diesel_async::SimpleAsyncConnection as _;

use super::test_writer::{TestWriter, time};
use super::*;
use crate::activity::Activity;
use crate::merchant_activity::MerchantActivity;

const PATH: &str = "/v1/order_summary";

impl TestApp {
    /// Waits until the summary of a merchant counts these orders as received and rejected.
    async fn wait_for_summary(&self, merchant: &str, received: i64, rejected: i64) -> Value {
        testkit::eventually("the activity is saved", Duration::from_secs(300), || async {
            let summary: Value = self.get(PATH, merchant).await.json().await.unwrap();
            let counts = &summary["last_24_hours"];
            (counts["received"] == received && counts["rejected"] == rejected).then_some(summary)
        })
        .await
    }
}

#[tokio::test]
async fn the_summary_counts_orders_and_shows_the_last_rejected_ones() {
    let app = TestApp::start().await;
    let mut orders = sample_orders(3);
    for (order, created_at) in orders.iter_mut().zip(["2025-12-01", "2026-02-01", "2026-01-01"]) {
        order["created_at"] = json!(format!("{created_at}T00:00:00Z"));
    }
    let started_at = platform::Clock::system().now();
    for _ in 0..2 {
        assert_eq!(app.publish("acme", &order_message(&orders)).await.0, StatusCode::OK);
    }
    orders[1]["currency"] = json!("DOLLARS");
    orders[1]["identifier"] = json!("A\0B");
    app.publish("acme", &order_message(&orders[..2])).await;
    let (_, last) = app.publish("acme", &json!({ "returns_portal_order": [] })).await;

    let summary = app.wait_for_summary("acme", 6, 3).await;
    assert_eq!(
        (&summary["merchant"], &summary["count"]),
        (&json!(app.service.own("acme")), &json!(3))
    );
    assert_eq!(summary["last_24_hours"]["changed"], 3);
    let expected = json!({ "oldest": "2025-12-01T00:00:00Z", "newest": "2026-02-01T00:00:00Z" });
    assert_eq!(summary["created_at"], expected);
    let time = |value: &Value| value.as_str().unwrap().parse::<platform::Timestamp>().unwrap();
    let [oldest, newest] = ["oldest", "newest"].map(|it| time(&summary["received_at"][it]));
    assert!(started_at <= oldest && oldest < newest, "{summary}");
    let [latest, earlier] = &summary["rejections"].as_array().unwrap()[..] else {
        panic!("{summary}");
    };
    assert_eq!(latest["errors"], last["errors"]);
    assert_eq!(latest.get("order_identifier"), None);
    assert_eq!(earlier["order_identifier"], "A\0B");
    let fields: Vec<_> =
        earlier["errors"].as_array().unwrap().iter().map(|error| &error["field"]).collect();
    let path = "$.returns_portal_order.orders[1]";
    assert_eq!(fields, [&json!(format!("{path}.identifier")), &json!(format!("{path}.currency"))]);
    assert!(time(&earlier["rejected_at"]) <= time(&latest["rejected_at"]));

    let summary: Value = app.get(PATH, "rival").await.json().await.unwrap();
    assert_eq!((&summary["count"], &summary["created_at"]), (&json!(0), &json!(null)));
    assert_eq!((&summary["received_at"], &summary["rejections"]), (&json!(null), &json!([])));
}

#[tokio::test]
async fn an_order_that_is_rejected_because_of_a_stored_refund_is_shown() {
    let app = TestApp::start().await;
    let is_refunded = |order: &Value| !order["refunds"].as_array().unwrap().is_empty();
    let mut order = sample_orders(100).into_iter().find(is_refunded).unwrap();
    app.publish("acme", &order_message(&[order.clone()])).await;
    order["refunds"][0]["note"] = json!("changed my mind");
    let (status, response) = app.publish("acme", &order_message(&[order.clone()])).await;
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY);
    let summary = app.wait_for_summary("acme", 1, 1).await;
    let rejection = &summary["rejections"][0];
    assert_eq!(rejection["order_identifier"], order["identifier"]);
    assert_eq!(rejection["errors"], response["errors"]);
}

#[tokio::test]
async fn the_last_hundred_rejected_orders_are_kept() {
    let app = TestApp::start().await;
    let mut orders = sample_orders(12);
    for number in 0..11 {
        for (index, order) in orders.iter_mut().enumerate() {
            order["identifier"] = json!(format!("{number}/{index}"));
            order["currency"] = json!("DOLLARS");
        }
        app.publish("acme", &order_message(&orders)).await;
    }
    let summary = app.wait_for_summary("acme", 0, 11 * 12).await;
    let rejections = summary["rejections"].as_array().unwrap();
    assert_eq!(rejections.len(), 100);
    let name = |index: usize| rejections[index]["order_identifier"].as_str().unwrap();
    assert_eq!((name(0), name(99)), ("10/9", "1/0"));
}

#[tokio::test]
async fn activity_that_cannot_be_saved_is_saved_later() {
    let writer = TestWriter::start().await;
    let pool = writer.database.pool();
    let mut conn = pool.get().await.unwrap();
    let activity = Activity::default();
    let record = |merchant: &str, orders| {
        let at = time("2026-03-01T00:00:00Z");
        let rejected = MerchantActivity::rejected(at, orders, Vec::new());
        activity.record(&merchant.parse().unwrap(), rejected);
    };
    record("acme", 1);
    record("rival", 2);
    conn.batch_execute("ALTER TABLE order_counts RENAME TO hidden").await.unwrap();
    activity.save(&pool).await.unwrap_err();
    record("acme", 4);
    conn.batch_execute("ALTER TABLE hidden RENAME TO order_counts").await.unwrap();
    for _ in 0..2 {
        activity.save(&pool).await.unwrap();
    }
    let counts = "SELECT merchant || ' ' || rejected AS line FROM order_counts ORDER BY merchant";
    assert_eq!(writer.lines(counts).await, ["acme 5", "rival 2"]);
}

#[tokio::test]
async fn a_clock_that_is_ahead_deletes_no_counts() {
    let writer = TestWriter::start().await;
    let pool = writer.database.pool();
    let activity = Activity::default();
    let now = platform::Clock::system().now();
    for at in [now, now + chrono::TimeDelta::days(31)] {
        let rejected = MerchantActivity::rejected(at, 1, Vec::new());
        activity.record(&"acme".parse().unwrap(), rejected);
        activity.save(&pool).await.unwrap();
    }
    let counts = "SELECT rejected::text AS line FROM order_counts ORDER BY hour";
    assert_eq!(writer.lines(counts).await, ["1", "1"]);
}

#[tokio::test]
async fn the_summary_needs_a_merchant_and_a_scope() {
    let app = TestApp::start().await;
    let get = async |merchant: Option<&str>, scope: &str, named: Option<&str>| {
        let request = app.client.get(format!("{}{PATH}", app.service.url));
        let request = request.bearer_auth(app.issuer.token(merchant, scope));
        let named = named.map(|named| ("X-Service-Id", app.service.own(named)));
        let request = named.into_iter().fold(request, |it, (name, value)| it.header(name, value));
        request.send().await.unwrap().status().as_u16()
    };
    for scope in ["orders", "read"] {
        assert_eq!(get(Some("acme"), scope, None).await, 200, "{scope}");
        assert_eq!(get(Some("acme"), scope, Some("rival")).await, 403, "{scope}");
    }
    for scope in ["operator", "read"] {
        assert_eq!(get(None, scope, Some("acme")).await, 200, "{scope}");
        assert_eq!(get(None, scope, None).await, 400, "{scope}");
        assert_eq!(get(None, scope, Some("nobody")).await, 404, "{scope}");
    }
    assert_eq!(get(Some("acme"), "returns", None).await, 403);
}

#[tokio::test]
async fn an_order_can_be_named_summary() {
    let app = TestApp::start().await;
    let mut orders = sample_orders(1);
    orders[0]["identifier"] = json!("summary");
    assert_eq!(app.publish("acme", &order_message(&orders)).await.0, StatusCode::OK);
    let found: Value = app.get("/v1/orders/summary", "acme").await.json().await.unwrap();
    assert_eq!(found["document"]["identifier"], "summary");
}
