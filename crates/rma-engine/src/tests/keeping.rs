//! Units that shoppers keep, up to the amount of a rule.

use diesel_async::SimpleAsyncConnection as _;
use futures_util::future::{join, join_all};

use super::policies::{adjust, app_with};
use super::projecting::order;
use super::quoting::quote;
use super::*;

/// Shoppers keep two units of [`order`], which cost 2165 each, and not three.
fn up_to_two_units() -> Value {
    json!({ "rules": [{ "id": "small", "then": { "keep": { "up_to_cents": 5_000 } } }] })
}

/// Request body: keep these units of an order.
fn kept(order: &str, units: &[i32]) -> Value {
    let mut body = refund_of(order, units);
    body["return_method"] = json!("customer-keep");
    body
}

impl TestApp {
    /// The amount up to which a unit can be kept, and the rule that refuses to keep it, by the list. Fails unless a quote
    /// agrees.
    async fn left_to_keep(&self, order: &str, number: i32) -> (Value, Value) {
        let (_, shown) = self.get(&format!("/v1/orders/{order}/returnable"), "acme").await;
        let units = shown["units"].as_array().unwrap();
        let unit = units.iter().find(|it| it["unit"] == number).unwrap();
        let options = unit["choices"][0]["options"].as_array().unwrap();
        let keep = options.iter().find(|it| it["method"] == "customer-keep").unwrap();
        let quoted = quote(self, &kept(order, &[number])).await;
        assert_eq!(quoted["units"][0]["ineligible"], keep["ineligible"]);
        (keep["keep_up_to_cents"].clone(), keep["ineligible"]["rule"].clone())
    }
}

#[tokio::test]
async fn units_that_a_shopper_keeps_by_several_returns_count_together() {
    let app = app_with(up_to_two_units()).await;
    app.store("acme", &order("A", 4)).await;
    app.store("acme", &order("B", 3)).await;
    // A unit that comes back does not count.
    app.start_return(&refund_of("A", &[4])).await;
    assert_eq!(app.left_to_keep("A", 1).await, (json!(5_000), Value::Null));
    let first = app.start_return(&kept("A", &[1])).await;
    assert_eq!(app.left_to_keep("A", 2).await, (json!(2_835), Value::Null));
    let (_, shown) = app.get("/v1/orders/A/returnable?limit=1", "acme").await;
    assert_eq!(shown["kept_amount_cents"], 2_165);
    app.start_return(&kept("A", &[2])).await;
    assert_eq!(app.left_to_keep("A", 3).await, (json!(670), json!("small")));
    let (status, refusal) = app.post("/v1/returns", "acme", &kept("A", &[3])).await;
    assert_eq!(status, StatusCode::CONFLICT);
    assert_eq!(refusal["ineligible"][0]["code"], "keep_not_allowed");
    // Another order has its own amount, unless they are returned together.
    assert_eq!(app.left_to_keep("B", 1).await, (json!(5_000), Value::Null));
    let mut both = kept("B", &[1]);
    both["units"].as_array_mut().unwrap().push(kept("A", &[3])["units"][0].take());
    assert_eq!(quote(&app, &both).await["possible"], false);

    let (status, canceled) =
        app.post(&format!("/v1/returns/{first}/cancel"), "acme", &json!({})).await;
    assert_eq!(status, StatusCode::OK, "{canceled}");
    assert_eq!(app.left_to_keep("A", 3).await, (json!(2_835), Value::Null));
    app.start_return(&kept("A", &[3])).await;
}

#[tokio::test]
async fn concurrent_returns_keep_no_more_than_the_amount() {
    let app = TestApp::with_settings(&[], |acme| adjust(acme, up_to_two_units())).await;
    app.store("acme", &order("A", 5)).await;
    let mut locker = app.pool.get().await.unwrap();
    let lock = "BEGIN; SELECT FROM orders WHERE identifier = 'A' FOR UPDATE";
    locker.batch_execute(lock).await.unwrap();
    let bodies: Vec<_> = (1..=5).map(|unit| kept("A", &[unit])).collect();
    let starts = join_all(bodies.iter().map(|body| app.post("/v1/returns", "acme", body)));
    let waiting = "SELECT count(*) AS n FROM pg_stat_activity \
                   WHERE datname = current_database() AND wait_event_type = 'Lock'";
    let database = &app.service.database;
    let unlock = async {
        eventually("a return waits for its order", SOON, async || {
            Some(database.count(waiting).await).filter(|statements| *statements > 0)
        })
        .await;
        locker.batch_execute("COMMIT").await.unwrap();
    };
    let (responses, ()) = join(starts, unlock).await;
    let created = responses.iter().filter(|(status, _)| *status == StatusCode::CREATED).count();
    assert_eq!(created, 2, "{responses:?}");
    let refused = responses.iter().filter(|(status, _)| *status == StatusCode::CONFLICT).count();
    assert_eq!(refused, 3, "{responses:?}");
}

#[tokio::test]
async fn a_preview_counts_the_units_that_were_kept_before() {
    let app = app_with(up_to_two_units()).await;
    app.store("acme", &order("A", 2)).await;
    for unit in [1, 2] {
        app.start_return(&kept("A", &[unit])).await;
    }
    let draft = json!({ "rules": [{ "id": "one", "then": { "keep": { "up_to_cents": 4_000 } } }] });
    let body = json!({ "policy": draft });
    let (status, preview) = app.post("/v1/policies/preview", "acme", &body).await;
    assert_eq!(status, StatusCode::OK, "{preview}");
    // The first unit could still have been kept, and the second could not.
    let refused = |policy: &str| preview[policy]["refused"].clone();
    assert_eq!([refused("current"), refused("draft")], [json!(0), json!(1)]);
}
