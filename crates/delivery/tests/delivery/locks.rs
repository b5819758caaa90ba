//! Requests about a locked delivery or replay leave connections to others, and results whose rows are locked delay no
//! others.

use std::collections::BTreeSet;
use std::sync::Mutex;

use diesel_async::SimpleAsyncConnection as _;
use domain::message_kind::MessageKind;
use platform::Clock;
use reqwest::Method;
use serde_json::{Value, json};
use testkit::{check_requests_about_locked_rows, eventually};
use uuid::Uuid;

use crate::test_app::{TIMEOUT, TestApp, message};

/// A message of acme and one of rival, both dead.
async fn append_dead(app: &TestApp) -> (Uuid, Uuid) {
    let of_acme = message(None, "rma.created", 1);
    let mut of_rival = message(None, "rma.created", 2);
    of_rival.merchant = "rival".parse().unwrap();
    let ids = app.append_unsent_dead(&[of_acme, of_rival]).await;
    (ids[0], ids[1])
}

async fn replay(app: &TestApp, id: Uuid) -> (u16, Value) {
    app.operator_request(Method::POST, &format!("/v1/deliveries/{id}/replay"), &json!({})).await
}

/// Posts requests about rows of acme that another transaction has locked, and a replay for rival meanwhile.
async fn check(app: &TestApp, lock: &str, path: &str, of_rival: Uuid) {
    let request = async || app.operator_request(Method::POST, path, &json!({})).await;
    let other = async || {
        let (status, response) = replay(app, of_rival).await;
        assert_eq!(status, 202, "{response}");
    };
    let responses = check_requests_about_locked_rows(&app.database, lock, request, other).await;
    for (status, response) in responses {
        // A later request may find nothing to do. On a slow machine the time of a request can be over before the
        // lock is released.
        assert!([200, 202, 409, 429].contains(&status), "{path}: {status} {response}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn replays_of_a_locked_message_leave_connections_to_others() {
    let app = TestApp::with_api(&[]).await;
    let (of_acme, of_rival) = append_dead(&app).await;
    let lock = format!("SELECT FROM delivery_messages WHERE id = '{of_acme}' FOR UPDATE");
    check(&app, &lock, &format!("/v1/deliveries/{of_acme}/replay"), of_rival).await;
    app.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn retries_of_a_locked_delivery_leave_connections_to_others() {
    let app = TestApp::with_api(&[]).await;
    let (_, of_rival) = append_dead(&app).await;
    let mut conn = app.pool.get().await.unwrap();
    let now = Clock::system().now();
    // One transaction appends and changes it, so that the dispatcher never sees it due.
    let ids = conn.transaction(async |conn| {
        let failed = [message(Some("rma:1"), "rma.created", 3)];
        let ids = app.replica.deliveries.append(conn, now, &failed).await?;
        let later = "UPDATE deliveries SET attempts = 1, \
                     next_attempt_at = next_attempt_at + INTERVAL '1 hour'";
        conn.batch_execute(later).await?;
        Ok::<_, platform::database::DatabaseError>(ids)
    });
    let waiting = ids.await.unwrap()[0];
    drop(conn);
    let lock = format!("SELECT FROM deliveries WHERE id = '{waiting}' FOR UPDATE");
    check(&app, &lock, &format!("/v1/deliveries/{waiting}/retry"), of_rival).await;
    app.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn changes_of_a_locked_replay_leave_connections_to_others() {
    let app = TestApp::with_api(&[]).await;
    // One is replayed each second, so the replay is not finished soon.
    let mut dead: Vec<_> = (0..300).map(|number| message(None, "rma.created", number)).collect();
    dead[0].merchant = "rival".parse().unwrap();
    let of_rival = app.append_unsent_dead(&dead).await[0];
    let slow = json!({"filter": {"merchant": "acme"}, "per_second": 1});
    let (status, started) = app.operator_request(Method::POST, "/v1/replays", &slow).await;
    assert_eq!(status, 202, "{started}");
    let path = format!("/v1/replays/{}", started["id"].as_str().unwrap());
    let pause = app.operator_request(Method::POST, &format!("{path}/pause"), &json!({})).await;
    assert_eq!(pause.0, 200, "{pause:?}");
    let lock = "SELECT FROM delivery_replays WHERE state = 'paused' FOR UPDATE";
    check(&app, lock, &format!("{path}/stop"), of_rival).await;
    app.stop().await;
}

const LOCK_WINDOW: &str =
    "BEGIN; SELECT FROM delivery_endpoints WHERE merchant = 'acme' FOR UPDATE";
const WAITING: &str = "SELECT count(*) AS n FROM pg_stat_activity \
                       WHERE datname = current_database() AND wait_event_type = 'Lock'";

/// Waits until the result of an attempt at acme waits for its lock.
async fn result_waits(app: &TestApp) {
    eventually("a result waits for the lock", TIMEOUT, async || {
        (app.count(WAITING).await > 0).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn results_of_a_locked_endpoint_delay_no_other_merchant_and_stay_in_order() {
    let app = TestApp::start(&[]).await;
    app.append(&[message(None, "earlier", 0)]).await;
    app.wait_until_settled(TIMEOUT).await;
    let mut holder = app.pool.get().await.unwrap();
    holder.batch_execute(LOCK_WINDOW).await.unwrap();
    app.behave(json!([{"do": "respond", "status": 500, "times": 1}])).await;
    let key = Some("rma:1");
    app.append(&[message(key, "first", 1), message(key, "second", 2)]).await;
    result_waits(&app).await;
    // Delivers a message of another merchant.
    app.dispatched().await;
    assert_eq!(app.count("SELECT count(*) AS n FROM deliveries").await, 2);
    holder.batch_execute("ROLLBACK").await.unwrap();
    app.wait_until_settled(TIMEOUT).await;
    let received = app.received().await;
    let arrived: Vec<_> = received
        .iter()
        .filter(|it| ["first", "second"].contains(&it.event.as_str()))
        .map(|it| (it.event.as_str(), it.response.as_str()))
        .collect();
    assert_eq!(arrived, [("first", "500"), ("first", "200"), ("second", "200")]);
    let logged = "SELECT count(*) AS n FROM delivery_attempts WHERE merchant = 'acme'";
    assert_eq!(app.count(logged).await, 4);
    drop(holder);
    app.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dead_letter_whose_result_is_locked_is_published_once() {
    let app = TestApp::start(&[("DELIVERY__RETRIES", "0")]).await;
    app.append(&[message(None, "earlier", 0)]).await;
    app.wait_until_settled(TIMEOUT).await;
    let mut holder = app.pool.get().await.unwrap();
    holder.batch_execute(LOCK_WINDOW).await.unwrap();
    app.behave(json!([{"do": "respond", "status": 422, "times": 1}])).await;
    app.append(&[message(None, "dead", 1)]).await;
    // First the batch waits, then the result alone. The third transaction that waits tries it again.
    let waits = Mutex::new(BTreeSet::new());
    eventually("the result is tried again", TIMEOUT, async || {
        let started = "SELECT coalesce(max(extract(epoch FROM xact_start) * 1000000)::bigint, 0) AS n \
                       FROM pg_stat_activity \
                       WHERE datname = current_database() AND wait_event_type = 'Lock'";
        let started = app.count(started).await;
        let mut waits = waits.lock().unwrap();
        if started > 0 {
            waits.insert(started);
        }
        (waits.len() == 3).then_some(())
    })
    .await;
    holder.batch_execute("ROLLBACK").await.unwrap();
    app.wait_until_settled(TIMEOUT).await;
    let dead = "SELECT count(*) AS n FROM delivery_attempts WHERE settled = 'dead'";
    assert_eq!(app.count(dead).await, 1);
    assert_eq!(app.namespace.peek(MessageKind::Rma.dead_letter_queue()).await.len(), 1);
    drop(holder);
    app.stop().await;
}
