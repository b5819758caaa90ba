//! The memory budget of the messages in flight.

use delivery::NewMessage;
use diesel_async::SimpleAsyncConnection as _;
use serde_json::json;
use testkit::eventually;

use crate::test_app::{TIMEOUT, TestApp, message};

/// Budget for three messages of [`BODY_BYTES`] with their overhead.
const BUDGET: &str = "262144";
const BODY_BYTES: usize = 64 * 1024;

fn large_message(number: usize, bytes: usize) -> NewMessage {
    let body = json!({"number": number, "filler": "x".repeat(bytes)});
    NewMessage { body: body.to_string().into(), ..message(None, "rma.created", number) }
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_in_flight_stay_within_the_budget_until_they_are_settled() {
    let settings = [("DELIVERY__MAX_INFLIGHT", BUDGET), ("DELIVERY__INITIAL_WINDOW", "64")];
    let app = TestApp::start(&settings).await;
    let mut locker = app.pool.get().await.unwrap();
    locker.batch_execute("BEGIN; LOCK TABLE delivery_counts IN EXCLUSIVE MODE").await.unwrap();
    let messages: Vec<_> = (0..64).map(|number| large_message(number, BODY_BYTES)).collect();
    app.append(&messages).await;
    eventually("messages arrive", TIMEOUT, async || {
        (app.received().await.len() == 3).then_some(())
    })
    .await;
    // Responses have arrived, but the messages are not settled, so their memory is in use.
    let waiting = "SELECT count(*) AS n FROM pg_stat_activity \
                   WHERE datname = current_database() AND wait_event_type = 'Lock'";
    eventually("settling waits", TIMEOUT, async || (app.count(waiting).await > 0).then_some(()))
        .await;
    assert_eq!(app.received().await.len(), 3);
    locker.batch_execute("ROLLBACK").await.unwrap();
    app.wait_until_settled(TIMEOUT).await;
    assert_eq!(app.received().await.len(), 64);
    app.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_larger_than_the_budget_is_delivered() {
    let app = TestApp::start(&[("DELIVERY__MAX_INFLIGHT", BUDGET)]).await;
    let messages = [0, 512 * 1024, 0].map(|bytes| large_message(bytes, bytes));
    app.append(&messages).await;
    app.wait_until_settled(TIMEOUT).await;
    assert_eq!(app.received().await.len(), 3);
    app.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_that_wait_for_memory_return_to_the_queue_on_shutdown() {
    let settings = [("DELIVERY__MAX_INFLIGHT", BUDGET), ("DELIVERY__INITIAL_WINDOW", "64")];
    let app = TestApp::start(&settings).await;
    let step = json!({"do": "respond", "status": 200, "delay_ms": 3000, "times": "always"});
    app.behave(json!([step])).await;
    let messages: Vec<_> = (0..12).map(|number| large_message(number, BODY_BYTES)).collect();
    app.append(&messages).await;
    eventually("messages arrive", TIMEOUT, async || {
        (app.received().await.len() == 3).then_some(())
    })
    .await;
    let second = app.start_replica().await;
    let TestApp { replica, .. } = &app;
    assert!(replica.process.tasks.drain(TIMEOUT).await, "tasks did not stop");
    app.wait_until_settled(TIMEOUT).await;
    assert_eq!(app.received().await.len(), 12, "each message arrives once");
    second.stop().await;
}
