//! Health of endpoints, and attempts hour by hour.

use reqwest::Method;
use serde_json::{Value, json};
use testkit::{Database, Namespace, eventually};

use crate::test_app::{TIMEOUT, TestApp, execute, merchant, message, migrations, store_merchant};

async fn endpoint(app: &TestApp) -> Value {
    app.get("/v1/endpoints?merchant=acme").await["endpoints"][0].take()
}

/// Returns a sum over the hours of a report. The test may run at the turn of an hour.
fn sum(report: &Value, name: &str) -> i64 {
    report["hours"].as_array().unwrap().iter().map(|hour| hour[name].as_i64().unwrap()).sum()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_endpoint_shows_its_health() {
    let app = TestApp::with_api(&[]).await;
    let new = endpoint(&app).await;
    assert_eq!((&new["state"], &new["window"]), (&json!("not_tried"), &json!(8)), "{new}");
    let untried = app.get("/v1/endpoints?state=not_tried").await;
    assert_eq!(untried["endpoints"].as_array().unwrap().len(), 1, "{untried}");
    for field in ["reason", "since", "recent", "last_success", "last_failure", "oldest_due_at"] {
        assert_eq!(new[field], Value::Null, "{field}");
    }

    app.append_dead(message(Some("rma:1"), "rma.created", 1)).await;
    let failing = endpoint(&app).await;
    assert_eq!(failing["state"], "failing", "{failing}");
    assert_eq!(failing["reason"], "the endpoint responded with 500");
    let failure = &failing["last_failure"];
    assert_eq!((&failure["status"], &failure["outcome"]), (&json!(500), &json!("rejected")));
    let time = |value: &Value| value.as_str().unwrap().parse::<platform::Timestamp>().unwrap();
    assert!(time(&failing["since"]) < time(&failure["at"]), "{failing}");
    let recent = &failing["recent"];
    assert_eq!((&recent["attempts"], &recent["success_rate"]), (&json!(6), &json!(0.0)));
    assert_eq!((&failing["window"], &failing["last_success"]), (&json!(1), &Value::Null));
    let listed = app.get("/v1/endpoints?state=failing").await;
    assert_eq!(listed["endpoints"].as_array().unwrap().len(), 1, "{listed}");
    assert_eq!(app.get("/v1/endpoints?state=ok").await["endpoints"], json!([]));

    app.append(&[message(Some("rma:2"), "rma.created", 2)]).await;
    app.wait_until_settled(TIMEOUT).await;
    let healthy = endpoint(&app).await;
    assert_eq!((&healthy["state"], &healthy["since"]), (&json!("ok"), &Value::Null), "{healthy}");
    assert_eq!(healthy["last_success"]["status"], 200, "{healthy}");
    assert_eq!(healthy["last_failure"]["status"], 500, "{healthy}");
    assert_eq!(healthy["recent"]["success_rate"], 0.1428, "{healthy}");
    assert!(healthy["recent"]["p95_ms"].as_i64().unwrap() >= 1, "{healthy}");
    app.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_endpoint_that_refuses_every_message_is_failing() {
    let app = TestApp::with_api(&[]).await;
    let refuse = async |key: &str, times: u32| {
        app.behave(json!([{"do": "respond", "status": 422, "times": times}])).await;
        app.append(&[message(Some(key), "rma.created", 1)]).await;
        app.wait_until_settled(TIMEOUT).await;
        endpoint(&app).await
    };
    let refused = refuse("rma:1", 6).await;
    assert_eq!(refused["state"], "failing", "{refused}");
    assert_eq!(refused["reason"], "the endpoint responded with 422");
    assert!(refused["since"].is_string(), "{refused}");
    let worst = app.get("/v1/endpoints/worst").await;
    assert_eq!(worst["endpoints"][0]["state"], "failing", "{worst}");
    let accepted = refuse("rma:2", 1).await;
    assert_eq!(accepted["state"], "ok", "a retry succeeded: {accepted}");
    assert_eq!(refuse("rma:3", 6).await["state"], "failing", "a message was given up");
    app.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn endpoints_that_need_attention_are_listed_worst_first() {
    let app = TestApp::with_api(&[]).await;
    let quiet = app.get("/v1/endpoints/worst").await;
    assert_eq!(quiet, json!({ "endpoints": [], "oldest_due": null }));
    for id in ["beta", "gamma", "well"] {
        app.add_merchant(id, &format!("/{id}")).await;
    }
    execute(
        &app.pool,
        "INSERT INTO delivery_endpoints (merchant, kind, window_size, slow_start_threshold, \
         window_acks, failed_probes, not_before, failing_since) \
         VALUES ('acme', 'rma', 1, 1, 0, 1, now() + INTERVAL '1 hour', now() - INTERVAL '2 hours'), \
         ('beta', 'rma', 1, 1, 0, 1, now(), now() - INTERVAL '3 hours'), \
         ('gamma', 'rma', 1, 1, 0, 1, now(), now() - INTERVAL '1 hour'), \
         ('removed', 'rma', 1, 1, 0, 1, now(), now() - INTERVAL '9 hours')",
    )
    .await;
    app.append(&[message(None, "rma.created", 1)]).await;
    let names = |page: &Value| -> Vec<String> {
        let endpoints = page["endpoints"].as_array().unwrap().iter();
        endpoints.map(|endpoint| endpoint["merchant"].as_str().unwrap().to_owned()).collect()
    };
    let worst = eventually("the API knows all merchants", TIMEOUT, async || {
        let worst = app.get("/v1/endpoints/worst").await;
        (names(&worst).len() == 3).then_some(worst)
    })
    .await;
    assert_eq!(names(&worst), ["beta", "acme", "gamma"]);
    assert_eq!(worst["endpoints"][1]["waiting"], 1, "{worst}");
    assert_eq!(worst["oldest_due"]["merchant"], "acme", "{worst}");
    assert_eq!(names(&app.get("/v1/endpoints/worst?limit=1").await), ["beta"]);
    let own = app.get("/v1/endpoints/worst?merchant=gamma").await;
    assert_eq!((names(&own), &own["oldest_due"]), (vec!["gamma".to_owned()], &Value::Null));
    let first = app.get("/v1/endpoints?state=failing&limit=1").await;
    assert_eq!((names(&first), &first["next"]), (vec!["acme".to_owned()], &json!("acme/rma")));
    let rest = app.get("/v1/endpoints?state=failing&limit=2&after=acme/rma").await;
    assert_eq!((names(&rest).join(" ").as_str(), &rest["next"]), ("beta gamma", &Value::Null));
    app.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_accepted_sample_is_recorded() {
    let app = TestApp::with_api(&[]).await;
    let check = "/v1/endpoints/acme/check?kind=rma";
    app.behave(json!([{"do": "respond", "status": 500, "times": 1}])).await;
    app.operator_request(Method::POST, check, &json!({})).await;
    assert_eq!(endpoint(&app).await["last_accepted_sample"], Value::Null);
    app.operator_request(Method::POST, check, &json!({})).await;
    let accepted = endpoint(&app).await;
    assert_eq!(accepted["last_accepted_sample"]["status"], 200, "{accepted}");
    assert_eq!((&accepted["last_success"], &accepted["recent"]), (&Value::Null, &Value::Null));
    app.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_waiting_message_shows_since_when_it_is_due() {
    let app = TestApp::with_api(&[]).await;
    execute(
        &app.pool,
        "INSERT INTO delivery_endpoints (merchant, kind, window_size, slow_start_threshold, \
         window_acks, failed_probes, not_before) \
         VALUES ('acme', 'rma', 1, 1, 0, 1, now() + INTERVAL '1 hour')",
    )
    .await;
    app.append(&[message(None, "rma.created", 1), message(None, "rma.created", 2)]).await;
    let later = "UPDATE deliveries SET next_attempt_at = next_attempt_at + INTERVAL '1 hour' \
                 WHERE id = (SELECT max(id::text)::uuid FROM deliveries)";
    execute(&app.pool, later).await;
    let endpoint = endpoint(&app).await;
    assert_eq!((&endpoint["waiting"], &endpoint["window"]), (&json!(2), &json!(1)), "{endpoint}");
    let due_at: platform::Timestamp = endpoint["oldest_due_at"].as_str().unwrap().parse().unwrap();
    assert!(due_at <= platform::Clock::system().now(), "{endpoint}");
    app.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn attempts_are_reported_hour_by_hour() {
    let app = TestApp::with_api(&[]).await;
    app.append_dead(message(Some("rma:1"), "rma.created", 1)).await;
    app.append(&[message(None, "rma.created", 2), message(None, "rma.created", 3)]).await;
    app.wait_until_settled(TIMEOUT).await;
    let report = app.get("/v1/reports/hourly?merchant=acme&kind=rma").await;
    let hours = report["hours"].as_array().unwrap();
    assert_eq!((hours.len(), &hours[0]["attempts"]), (24, &json!(0)), "{report}");
    assert_eq!((&hours[0]["p50_ms"], &hours[0]["p95_ms"]), (&Value::Null, &Value::Null));
    assert_eq!(["attempts", "delivered", "failed"].map(|name| sum(&report, name)), [8, 2, 6]);
    let busy = hours.iter().rfind(|hour| hour["attempts"] != 0).unwrap();
    let (p50, p95) = (busy["p50_ms"].as_i64().unwrap(), busy["p95_ms"].as_i64().unwrap());
    assert!(1 <= p50 && p50 <= p95, "{busy}");
    assert_eq!(sum(&app.get("/v1/reports/hourly?hours=2").await, "attempts"), 8);
    for none in ["kind=exchange-order", "merchant=nobody"] {
        let report = app.get(&format!("/v1/reports/hourly?{none}")).await;
        assert_eq!(sum(&report, "attempts"), 0, "{none}");
    }
    for invalid in ["hours=0", "hours=721", "kind=rmas", "merchant=%00"] {
        let path = format!("/v1/reports/hourly?{invalid}");
        assert_eq!(app.operator_request(Method::GET, &path, &json!({})).await.0, 400, "{invalid}");
    }
    app.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn endpoints_are_reported_with_success_rate_and_latency() {
    let app = TestApp::with_api(&[]).await;
    app.append_dead(message(Some("rma:1"), "rma.created", 1)).await;
    app.append(&[message(None, "rma.created", 2), message(None, "rma.created", 3)]).await;
    app.wait_until_settled(TIMEOUT).await;
    execute(
        &app.pool,
        "INSERT INTO delivery_latencies SELECT 'nova', 'rma', \
         date_trunc('hour', now()) - hours * INTERVAL '1 hour', 20, 4, 0 FROM unnest(ARRAY[1, 48]) AS hours",
    )
    .await;
    let report = app.get("/v1/reports/endpoints").await;
    assert_eq!(report["truncated"], json!(false));
    let [nova, acme] = report["endpoints"].as_array().unwrap().as_slice() else {
        panic!("two endpoints: {report}");
    };
    assert_eq!(
        (&nova["merchant"], &nova["attempts"], &nova["success_rate"], &nova["p95_ms"]),
        (&json!("nova"), &json!(4), &json!(0.0), &json!(1448)),
        "the hour of two days ago does not count: {report}"
    );
    assert_eq!(
        ["attempts", "delivered", "failed", "success_rate"].map(|name| acme[name].clone()),
        [json!(8), json!(2), json!(6), json!(0.25)]
    );
    let one = app.get("/v1/reports/endpoints?merchant=acme").await;
    assert_eq!(one["endpoints"].as_array().unwrap().len(), 1, "{one}");
    let none = app.get("/v1/reports/endpoints?to=2020-01-01T00:00:00Z").await;
    assert_eq!(none["endpoints"], json!([]));
    app.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn hours_are_kept_for_thirty_days() {
    let database = Database::create(migrations()).await;
    let old = "INSERT INTO delivery_latencies SELECT 'acme', 'rma', \
               date_trunc('hour', now()) - days * INTERVAL '1 day', 3, 1, 1 \
               FROM unnest(ARRAY[29, 31, 400]) AS days";
    execute(&database.pool(), old).await;
    let app = TestApp::start_on(database, Namespace::create(), &[]).await;
    eventually("the old hours are deleted", TIMEOUT, async || {
        let kept = app.count("SELECT count(*) AS n FROM delivery_latencies").await;
        (kept == 1).then_some(())
    })
    .await;
    app.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_success_is_noted_although_its_first_transaction_failed() {
    let app = TestApp::start(&[]).await;
    execute(
        &app.pool,
        "CREATE SEQUENCE settlements; \
         CREATE FUNCTION fail_once() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN \
             IF nextval('settlements') = 1 THEN \
                 RAISE EXCEPTION 'once' USING ERRCODE = 'serialization_failure'; \
             END IF; \
             RETURN NULL; \
         END $$; \
         CREATE TRIGGER fail_once AFTER INSERT ON delivery_endpoints \
         FOR EACH ROW EXECUTE FUNCTION fail_once()",
    )
    .await;
    app.append(&[message(None, "rma.created", 1)]).await;
    app.wait_until_settled(TIMEOUT).await;
    let noted = "SELECT count(*) AS n FROM delivery_endpoints WHERE last_success_at IS NOT NULL";
    assert_eq!(app.count(noted).await, 1);
    app.stop().await;
}

const HEALTH_EVENTS: &str = "rma-engine.endpoint.health_changed.v1";

/// Waits for an event about the health of an endpoint, the only one in the queue, and removes it.
async fn take_health_event(app: &TestApp) -> Value {
    // Reading an event counts as a delivery, so it is read once.
    let mut events = eventually("an event is published", TIMEOUT, async || {
        Some(app.namespace.peek(HEALTH_EVENTS).await).filter(|events| !events.is_empty())
    })
    .await;
    assert_eq!(events.len(), 1, "{events:?}");
    app.namespace.purge(HEALTH_EVENTS).await;
    let event: Value = serde_json::from_str(events[0]["payload"].take().as_str().unwrap()).unwrap();
    event["data"].clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn only_a_failure_of_some_minutes_and_its_end_are_reported() {
    let app = TestApp::start(&[]).await;
    // The failure of beta has not lasted long enough during the whole test.
    app.add_merchant("beta", "/beta").await;
    let mut paused = merchant("paused", 1, &app.sandbox.url("/paused"));
    paused.endpoints.values_mut().for_each(|endpoint| endpoint.paused = true);
    store_merchant(&app.pool, &paused).await;
    app.wait_for_merchant("paused", 1).await;
    execute(
        &app.pool,
        "INSERT INTO delivery_endpoints (merchant, kind, window_size, slow_start_threshold, \
         window_acks, failed_probes, not_before, failing_since, last_failure_status) \
         VALUES ('beta', 'rma', 1, 1, 0, 1, now(), now() + INTERVAL '1 hour', 503), \
         ('paused', 'rma', 1, 1, 0, 1, now(), now() - INTERVAL '9 hours', 503), \
         ('removed', 'rma', 1, 1, 0, 1, now(), now() - INTERVAL '9 hours', 503), \
         ('acme', 'rma', 1, 1, 0, 1, now(), now() - INTERVAL '1 hour', 503)",
    )
    .await;
    let failing = take_health_event(&app).await;
    assert_eq!((&failing["merchant"], &failing["kind"]), (&json!("acme"), &json!("rma")));
    assert_eq!((&failing["status"], &failing["recovered_at"]), (&json!(503), &Value::Null));

    app.append(&[message(None, "rma.created", 1)]).await;
    let recovered = take_health_event(&app).await;
    assert_eq!(recovered["merchant"], "acme");
    assert_eq!(recovered["failing_since"], failing["failing_since"]);
    assert!(recovered["recovered_at"].is_string(), "{recovered}");
    app.stop().await;
}
