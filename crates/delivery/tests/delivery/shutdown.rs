//! Shutdown: attempts in flight finish, and no other process repeats them.

use std::collections::HashSet;
use std::time::Duration;

use serde_json::json;
use testkit::eventually;

use crate::ordering_keys::nothing_overtook;
use crate::test_app::{TIMEOUT, TestApp, count, message};

/// Waits until the merchant has this many requests without a response. They are new, so the broker still has
/// their messages.
async fn in_flight(app: &TestApp, requests: usize) {
    eventually("requests are in flight", TIMEOUT, async || {
        (app.received().await.len() == requests).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn when_a_replica_stops_each_message_still_arrives_once_and_in_order() {
    let app = TestApp::start(&[]).await;
    let second = app.start_replica().await;
    app.behave(json!([{"do": "respond", "status": 200, "delay_ms": 3000, "times": "always"}]))
        .await;
    for number in 0..2 {
        let batch: Vec<_> = (0..8)
            .map(|ordering_key| {
                message(
                    Some(&format!("ordering_key-{ordering_key}")),
                    &format!("ordering_key-{ordering_key}"),
                    number,
                )
            })
            .collect();
        app.append(&batch).await;
    }
    in_flight(&app, 8).await;
    second.stop().await;
    app.wait_until_settled(TIMEOUT).await;
    let arrivals = app.received().await;
    let different: HashSet<_> = arrivals.iter().map(|arrival| &arrival.id).collect();
    assert_eq!((arrivals.len(), different.len()), (16, 16));
    nothing_overtook(&arrivals);
    app.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_last_failure_is_settled_and_its_dead_letter_published() {
    let app = TestApp::start(&[("DELIVERY__RETRIES", "0")]).await;
    app.behave(json!([{"do": "respond", "status": 500, "delay_ms": 1500, "times": "always"}]))
        .await;
    app.append(&[message(None, "rma.created", 1)]).await;
    in_flight(&app, 1).await;
    let TestApp { replica, pool, namespace, database, .. } = app;
    replica.stop().await;
    assert_eq!(count(&pool, "SELECT count(*) AS n FROM deliveries").await, 0);
    let dead = "SELECT count(*) AS n FROM delivery_attempts WHERE settled = 'dead'";
    assert_eq!(count(&pool, dead).await, 1);
    assert_eq!(namespace.peek("notify.rma.dead").await.len(), 1);
    drop(database);
}

#[tokio::test(flavor = "multi_thread")]
async fn deliveries_that_do_not_finish_in_time_are_released() {
    let app = TestApp::start(&[]).await;
    app.behave(json!([{"do": "hang", "times": "always"}])).await;
    let batch: Vec<_> = (0..4).map(|n| message(None, "rma.created", n)).collect();
    app.append(&batch).await;
    in_flight(&app, 4).await;
    let TestApp { replica, pool, namespace, database, .. } = app;
    replica.process.tasks.drain(Duration::from_secs(4)).await;
    let ready = "SELECT count(*) AS n FROM deliveries WHERE state = 'ready' AND attempts = 0";
    // On a busy machine the tasks may end after the grace period.
    eventually("the deliveries are released", TIMEOUT, async || {
        (count(&pool, ready).await == 4).then_some(())
    })
    .await;
    // A message left in the queue would be sent twice.
    assert!(namespace.peek("notify.rma").await.is_empty());
    drop(database);
}
