//! Tests of `POST /v1/orders/{identifier}/reset`.

use chrono::{SecondsFormat, TimeDelta};
use diesel_async::RunQueryDsl as _;
use platform::Clock;

use super::*;

async fn reset(app: &TestApp, order: &str, scope: &str) -> (StatusCode, Value) {
    let url = format!("{}/v1/orders/{order}/reset", app.service.url);
    let token = app.issuer.token(None, scope);
    let request =
        app.client.post(url).bearer_auth(token).header("x-service-id", app.service.own("acme"));
    read(request.send().await.unwrap()).await
}

/// The sample order with an `updated_at` this far from now.
fn order_at(difference: TimeDelta) -> Value {
    let updated_at = Clock::system().now() + difference;
    let mut order = sample_orders(1).remove(0);
    order["updated_at"] = json!(updated_at.to_rfc3339_opts(SecondsFormat::Secs, true));
    order
}

async fn publish(app: &TestApp, order: &Value) -> Value {
    let (status, response) = app.publish("acme", &order_message(std::slice::from_ref(order))).await;
    assert_eq!(status, StatusCode::OK, "{response}");
    response["orders"][0]["result"].clone()
}

#[tokio::test]
async fn the_next_snapshot_of_a_reset_order_is_stored() {
    let app = TestApp::start().await;
    let stuck = order_at(TimeDelta::hours(23));
    let identifier = stuck["identifier"].as_str().unwrap();
    assert_eq!(publish(&app, &stuck).await, "stored");
    let correct = order_at(TimeDelta::minutes(-5));
    assert_eq!(publish(&app, &correct).await, "stale");

    assert_eq!(reset(&app, identifier, "orders").await.0, StatusCode::FORBIDDEN);
    let (status, response) = reset(&app, identifier, "operator").await;
    assert_eq!(status, StatusCode::OK, "{response}");
    assert_eq!(response["updated_at"], stuck["created_at"], "{response}");
    let found: Value =
        app.get(&format!("/v1/orders/{identifier}"), "acme").await.json().await.unwrap();
    assert_eq!((&found["updated_at"], &found["document"]), (&stuck["created_at"], &stuck));
    assert_eq!(publish(&app, &stuck).await, "unchanged");
    assert_eq!(publish(&app, &correct).await, "stored");

    let (status, response) = reset(&app, identifier, "operator").await;
    assert_eq!(status, StatusCode::CONFLICT, "{response}");
    assert!(response["message"].as_str().unwrap().contains("is not stuck"), "{response}");
    assert_eq!(reset(&app, "none", "operator").await.0, StatusCode::NOT_FOUND);
    assert_eq!(reset(&app, "%00", "operator").await.0, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn a_reset_is_published_and_recorded() {
    let app = TestApp::start().await;
    let stuck = order_at(TimeDelta::hours(1));
    let identifier = stuck["identifier"].as_str().unwrap();
    publish(&app, &stuck).await;
    reset(&app, identifier, "operator").await;
    let events = app.stored_events(2).await;
    let order = |event: &Value| json!([event["sequence"], event["data"]["order"]["updated_at"]]);
    let (first, second) = (order(&events[0]), order(&events[1]));
    assert_eq!((&first[1], &second[1]), (&stuck["updated_at"], &stuck["created_at"]));
    assert!(first[0].as_str() < second[0].as_str(), "{first} {second}");
    let mut conn = app.service.database.pool().get().await.unwrap();
    let recorded = "SELECT actor AS line FROM order_resets WHERE merchant = 'acme'";
    let actors: Vec<Line> =
        diesel::sql_query(app.service.own_query(recorded)).load(&mut conn).await.unwrap();
    assert_eq!(actors.len(), 1);
    assert!(!actors[0].line.is_empty());
}

#[derive(diesel::QueryableByName)]
struct Line {
    #[diesel(sql_type = diesel::sql_types::Text)]
    line: String,
}
