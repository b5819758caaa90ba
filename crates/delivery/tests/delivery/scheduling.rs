//! Every due message is found, whenever and wherever it becomes due, and endpoints do not delay each other.

use chrono::TimeDelta;
use delivery::NewMessage;
use diesel_async::SimpleAsyncConnection as _;
use platform::Clock;
use platform::database::DatabaseError;
use serde_json::json;
use testkit::eventually;

use crate::ordering_keys::nothing_overtook;
use crate::test_app::{TIMEOUT, TestApp, execute, merchant, message, store_merchant};

async fn wait_for_arrivals(app: &TestApp, expected: usize) {
    eventually("the messages arrive", TIMEOUT, async || {
        (app.received().await.len() == expected).then_some(())
    })
    .await;
}

fn message_to(merchant_id: &str, number: usize) -> NewMessage {
    let merchant = merchant_id.parse().unwrap();
    NewMessage { merchant, ..message(None, "rma.created", number) }
}

/// Stores `acme` as paused or not.
async fn set_paused(app: &TestApp, version: i64, is_paused: bool) {
    let mut acme = merchant("acme", version, &app.sandbox.url(""));
    acme.endpoints.values_mut().for_each(|endpoint| endpoint.paused = is_paused);
    store_merchant(&app.pool, &acme).await;
    app.wait_for_merchant("acme", version).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_that_is_committed_after_later_ones_were_sent_is_found() {
    let app = TestApp::start(&[]).await;
    // Each case needs another poll: of the last fraction of a second, of the last ten seconds, of all times.
    for (number, seconds) in [1, 5, 30].into_iter().enumerate() {
        let mut conn = app.pool.get().await.unwrap();
        let now = Clock::system().now() - TimeDelta::seconds(seconds);
        conn.transaction(async |conn| {
            let late = [message(None, "late", number)];
            app.replica.deliveries.append(conn, now, &late).await?;
            app.dispatched().await;
            Ok::<_, DatabaseError>(())
        })
        .await
        .unwrap();
        wait_for_arrivals(&app, number + 1).await;
    }
    app.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_leader_finds_what_is_due_and_what_is_in_flight() {
    let settings = [
        ("DELIVERY__RETRY_BASE", "1h"),
        ("DELIVERY__LEASE", "6s"),
        ("DELIVERY__ATTEMPT_TIMEOUT", "1s"),
    ];
    let app = TestApp::start(&settings).await;
    app.behave(json!([{"do": "respond", "status": 422, "times": 2}])).await;
    app.append(&[message(None, "first", 1), message(None, "second", 2)]).await;
    eventually("both failed", TIMEOUT, async || {
        (app.count("SELECT count(*) AS n FROM deliveries WHERE attempts = 1").await == 2)
            .then_some(())
    })
    .await;
    app.replica.process.tasks.drain(TIMEOUT).await;
    // One has long been due, and the queue lost the other. No leader sees these changes.
    execute(
        &app.pool,
        "UPDATE deliveries SET next_attempt_at = now() - INTERVAL '1 hour'; \
         UPDATE deliveries SET state = 'queued', leased_until = now() + INTERVAL '1 second' \
         WHERE id = (SELECT max(id::text)::uuid FROM deliveries)",
    )
    .await;
    let second = app.start_replica().await;
    app.wait_until_settled(TIMEOUT).await;
    assert_eq!(app.received().await.len(), 4);
    second.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backlog_is_sent_when_its_endpoint_is_resumed() {
    let app = TestApp::start(&[]).await;
    set_paused(&app, 2, true).await;
    app.append(&(0..30).map(|number| message(None, "rma.created", number)).collect::<Vec<_>>())
        .await;
    app.dispatched().await;
    assert!(app.received().await.is_empty());
    set_paused(&app, 3, false).await;
    wait_for_arrivals(&app, 30).await;
    app.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failing_endpoint_gets_its_backlog_after_a_probe_succeeds() {
    let settings = [
        ("DELIVERY__INITIAL_WINDOW", "1"),
        ("DELIVERY__RETRIES", "50"),
        ("DELIVERY__RETRY_BASE", "100ms"),
    ];
    let app = TestApp::start(&settings).await;
    app.behave(json!([{"do": "respond", "status": 503, "times": 3}])).await;
    let keys = (0..20).map(|key| format!("key-{}", key % 5));
    let messages = keys.enumerate().map(|(number, key)| message(Some(&key), &key, number));
    app.append(&messages.collect::<Vec<_>>()).await;
    app.wait_until_settled(TIMEOUT).await;
    let received = app.received().await;
    assert_eq!(received.len(), 23);
    nothing_overtook(&received);
    app.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_backlog_of_one_merchant_does_not_delay_another() {
    let app = TestApp::start(&[("DELIVERY__MAX_WINDOW", "8")]).await;
    app.behave(json!([{"do": "respond", "status": 200, "delay_ms": 50, "times": "always"}])).await;
    app.add_merchant("nova", "/nova").await;
    app.append(&(0..5000).map(|number| message_to("acme", number)).collect::<Vec<_>>()).await;
    app.append(&(0..20).map(|number| message_to("nova", number)).collect::<Vec<_>>()).await;
    let left = async |merchant: &str| {
        let left = format!("SELECT count(*) AS n FROM deliveries WHERE merchant = '{merchant}'");
        app.count(&left).await
    };
    eventually("the other merchant has its messages", TIMEOUT, async || {
        (left("nova").await == 0).then_some(())
    })
    .await;
    let waiting = left("acme").await;
    assert!(waiting > 1000, "{waiting} messages of the backlog are left");
    app.replica.process.tasks.drain(std::time::Duration::ZERO).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_window_opens_when_another_replica_settles() {
    let app = TestApp::start(&[("DELIVERY__MAX_WINDOW", "2")]).await;
    let second = app.start_replica().await;
    let keys = (0..300).map(|number| format!("key-{}", number % 40));
    let messages = keys.enumerate().map(|(number, key)| message(Some(&key), &key, number));
    app.append(&messages.collect::<Vec<_>>()).await;
    app.wait_until_settled(TIMEOUT).await;
    let received = app.received().await;
    assert_eq!(received.len(), 300);
    nothing_overtook(&received);
    second.stop().await;
    app.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_window_of_a_fast_endpoint_opens_far_and_stays_small_for_a_slow_one() {
    let app = TestApp::start(&[]).await;
    app.add_merchant("slow", "/slow").await;
    let step = json!({"do": "respond", "status": 200, "delay_ms": 3500, "times": "always"});
    let rule = json!({"path": "/slow/rmas", "steps": [step]});
    app.sandbox_request(reqwest::Method::PUT, "/behaviour", &rule).await;
    app.append(&(0..200).map(|number| message_to("slow", number)).collect::<Vec<_>>()).await;
    let window = async |merchant: &str| {
        let size = format!(
            "SELECT COALESCE(max(window_size), 0)::int8 AS n FROM delivery_endpoints \
             WHERE merchant = '{merchant}'"
        );
        app.count(&size).await
    };
    app.append(&(0..5000).map(|number| message_to("acme", number)).collect::<Vec<_>>()).await;
    eventually("the window of the fast endpoint is wide", TIMEOUT, async || {
        (window("acme").await > 64).then_some(())
    })
    .await;
    eventually("slow messages are delivered", TIMEOUT, async || {
        let left = "SELECT count(*) AS n FROM deliveries WHERE merchant = 'slow'";
        (app.count(left).await < 100).then_some(())
    })
    .await;
    assert!(window("slow").await <= 32);
    app.replica.process.tasks.drain(std::time::Duration::ZERO).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_delivery_is_retried_before_the_backlog_of_a_failing_endpoint() {
    let app = TestApp::with_api(&[("DELIVERY__RETRIES", "50")]).await;
    let mut conn = app.pool.get().await.unwrap();
    let now = Clock::system().now();
    // The endpoint is probed in an hour, so the dispatcher waits for that time.
    let ids = conn
        .transaction(async |conn| {
            let backlog: Vec<_> = (0..10).map(|it| message(None, "rma.created", it)).collect();
            let ids = app.replica.deliveries.append(conn, now, &backlog).await?;
            let failing = "INSERT INTO delivery_endpoints (merchant, kind, window_size, \
                 slow_start_threshold, window_acks, failed_probes, not_before) \
                 VALUES ('acme', 'rma', 1, 1, 0, 1, now() + INTERVAL '1 hour')";
            conn.batch_execute(failing).await?;
            Ok::<_, DatabaseError>(ids)
        })
        .await
        .unwrap();
    drop(conn);
    app.dispatched().await;
    assert!(app.received().await.is_empty());
    let path = format!("/v1/deliveries/{}/retry", ids[7]);
    let (status, body) = app.operator_request(reqwest::Method::POST, &path, &json!({})).await;
    assert_eq!(status, 202, "{body}");
    wait_for_arrivals(&app, 10).await;
    assert_eq!(app.received().await[0].id, ids[7].to_string());
    app.stop().await;
}
