//! Deliveries that wait: their reasons, and their retry at once.

use diesel_async::SimpleAsyncConnection as _;
use platform::Clock;
use reqwest::Method;
use serde_json::{Value, json};
use testkit::eventually;
use uuid::Uuid;

use crate::test_app::{TIMEOUT, TestApp, merchant, message, store_merchant, token};

/// Appends two messages of an ordering key. The first has failed and is due in an hour, like the next
/// probe of its endpoint; the second is blocked.
async fn append_failed(app: &TestApp) -> Vec<Uuid> {
    let mut conn = app.pool.get().await.unwrap();
    let now = Clock::system().now();
    // One transaction appends and changes them, so that the dispatcher never sees them due.
    conn.transaction(async |conn| {
        let batch = [1, 2].map(|number| message(Some("rma:1"), "rma.created", number));
        let ids = app.replica.deliveries.append(conn, now, &batch).await?;
        conn.batch_execute(
            "UPDATE deliveries SET attempts = 1, \
             next_attempt_at = next_attempt_at + INTERVAL '1 hour' WHERE sequence = 1; \
             UPDATE deliveries SET state = 'blocked' WHERE sequence = 2; \
             INSERT INTO delivery_endpoints (merchant, kind, window_size, slow_start_threshold, \
             window_acks, failed_probes, not_before) \
             VALUES ('acme', 'rma', 1, 1, 0, 1, now() + INTERVAL '1 hour')",
        )
        .await?;
        Ok::<_, platform::database::DatabaseError>(ids)
    })
    .await
    .unwrap()
}

async fn retry(app: &TestApp, id: Uuid) -> (u16, Value) {
    app.operator_request(Method::POST, &format!("/v1/deliveries/{id}/retry"), &json!({})).await
}

async fn reason(app: &TestApp, id: Uuid) -> Value {
    app.get(&format!("/v1/deliveries/{id}")).await["waiting"]["reason"].take()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_delivery_that_waits_for_its_retry_is_sent_now() {
    let app = TestApp::with_api(&[]).await;
    let ids = append_failed(&app).await;
    assert_eq!(reason(&app, ids[0]).await, "next_attempt");
    assert_eq!(reason(&app, ids[1]).await, "behind_another");
    let (status, response) = retry(&app, ids[1]).await;
    assert_eq!(status, 409, "{response}");
    assert!(response["message"].as_str().unwrap().contains("earlier message"), "{response}");
    let own = token("returns", Some("acme"));
    let path = format!("/v1/deliveries/{}/retry", ids[0]);
    assert_eq!(app.api_request(&own, Method::POST, &path, &json!({})).await.0, 403);

    let (status, response) = retry(&app, ids[0]).await;
    assert_eq!(status, 202, "{response}");
    app.wait_until_settled(TIMEOUT).await;
    let sequences: Vec<_> = app.received().await.iter().map(|arrival| arrival.sequence).collect();
    assert_eq!(sequences, [1, 2]);
    assert_eq!(reason(&app, ids[0]).await, Value::Null);

    let (status, response) = retry(&app, ids[0]).await;
    assert_eq!(status, 409, "{response}");
    assert!(response["message"].as_str().unwrap().contains("replay it instead"), "{response}");
    assert_eq!(retry(&app, Uuid::now_v7()).await.0, 404);
    app.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_endpoint_that_a_410_disabled_says_so() {
    let app = TestApp::with_api(&[]).await;
    app.behave(json!([{"do": "respond", "status": 410, "times": 1}])).await;
    app.append(&[message(None, "rma.created", 1)]).await;
    app.wait_until_settled(TIMEOUT).await;
    let waiting = app.append(&[message(None, "rma.created", 2)]).await;
    app.dispatched().await;

    let page = app.get("/v1/deliveries?state=pending").await;
    let delivery = &page["deliveries"][0];
    assert_eq!(delivery["waiting"]["reason"], "endpoint_disabled", "{delivery}");
    let detail = delivery["waiting"]["detail"].as_str().unwrap();
    assert!(detail.starts_with("the endpoint responded with 410 at 20"), "{detail}");
    let (status, response) = retry(&app, waiting[0]).await;
    assert_eq!(status, 409, "{response}");

    let page = app.get("/v1/endpoints?state=disabled").await;
    let endpoint = &page["endpoints"][0];
    assert_eq!(page["endpoints"].as_array().unwrap().len(), 1, "{page}");
    assert_eq!((&endpoint["merchant"], &endpoint["kind"]), (&json!("acme"), &json!("rma")));
    assert_eq!((&endpoint["waiting"], &endpoint["in_flight"]), (&json!(1), &json!(0)));
    assert!(endpoint["since"].is_string(), "{endpoint}");
    assert_eq!(endpoint["reason"], "the endpoint responded with 410");
    let remedy = endpoint["remedy"].as_str().unwrap();
    assert!(remedy.contains("backhaul endpoint resume acme rma"), "{remedy}");
    // The gauges are recorded every 15 seconds. A disabled endpoint fails too.
    eventually("the metrics count it", TIMEOUT, async || {
        let metrics = app.metrics().await;
        let is_counted = |state: &str| {
            let gauge = format!("backhaul_delivery_endpoints_{state}{{");
            let of_kind = |line: &str| line.contains("\"rma\"") && line.ends_with(" 1");
            metrics.lines().any(|line| line.starts_with(&gauge) && of_kind(line))
        };
        (is_counted("disabled") && is_counted("failing")).then_some(())
    })
    .await;

    let (_, first) = app.operator_request(Method::GET, "/v1/endpoints?limit=1", &json!({})).await;
    let next = format!("/v1/endpoints?limit=1&after={}", first["next"].as_str().unwrap());
    assert_eq!(app.get(&next).await["endpoints"][0]["merchant"], "later");
    assert_eq!(app.operator_request(Method::GET, "/v1/endpoints?after=x", &json!({})).await.0, 400);
    let other = token("returns", Some("later"));
    let (_, own) = app.api_request(&other, Method::GET, "/v1/endpoints", &json!({})).await;
    assert_eq!(own["endpoints"].as_array().unwrap().len(), 1, "{own}");

    store_merchant(&app.pool, &merchant("acme", 2, &app.sandbox.url(""))).await;
    app.wait_until_settled(TIMEOUT).await;
    let page = app.get("/v1/endpoints?merchant=acme").await;
    assert_eq!(page["endpoints"][0]["state"], "ok", "{page}");
    assert_eq!(page["endpoints"][0]["since"], Value::Null);
    app.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_delivery_to_a_paused_endpoint_waits_for_it() {
    let app = TestApp::with_api(&[]).await;
    let mut paused = merchant("acme", 2, &app.sandbox.url(""));
    paused.endpoints.values_mut().for_each(|endpoint| endpoint.paused = true);
    store_merchant(&app.pool, &paused).await;
    app.wait_for_merchant("acme", 2).await;
    eventually("the API knows that the endpoint is paused", TIMEOUT, async || {
        let page = app.get("/v1/endpoints?state=paused").await;
        (page["endpoints"][0]["merchant"] == "acme").then_some(())
    })
    .await;
    let ids = app.append(&[message(None, "rma.created", 1)]).await;
    assert_eq!(reason(&app, ids[0]).await, "endpoint_paused");
    assert_eq!(retry(&app, ids[0]).await.0, 409);
    app.stop().await;
}
