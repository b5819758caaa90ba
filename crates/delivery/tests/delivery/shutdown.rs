//! Shutdown: attempts in flight finish, and no other process repeats them.

use std::collections::HashSet;
use std::time::Duration;

use serde_json::json;
use testkit::eventually;

use crate::ordering_keys::nothing_overtook;
use crate::stage::{SOON, Stage, message, number};

/// Waits until the merchant has this many unanswered requests. They are new, so the broker still has
/// their messages.
async fn in_flight(stage: &Stage, requests: usize) {
    eventually("requests are in flight", SOON, async || {
        (stage.arrivals().await.len() == requests).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn when_a_replica_stops_each_message_still_arrives_once_and_in_order() {
    let stage = Stage::new(&[]).await;
    let second = stage.another().await;
    stage
        .behave(json!([{"do": "answer", "status": 200, "delay_ms": 3000, "times": "always"}]))
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
        stage.append(&batch).await;
    }
    in_flight(&stage, 8).await;
    second.leave().await;
    stage.settled(SOON).await;
    let arrivals = stage.arrivals().await;
    let different: HashSet<_> = arrivals.iter().map(|arrival| &arrival.id).collect();
    assert_eq!((arrivals.len(), different.len()), (16, 16));
    nothing_overtook(&arrivals);
    stage.leave().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_last_failure_is_settled_and_its_dead_letter_published() {
    let stage = Stage::new(&[("DELIVERY__RETRIES", "0")]).await;
    stage
        .behave(json!([{"do": "answer", "status": 500, "delay_ms": 1500, "times": "always"}]))
        .await;
    stage.append(&[message(None, "rma.created", 1)]).await;
    in_flight(&stage, 1).await;
    let Stage { replica, pool, namespace, database, .. } = stage;
    replica.leave().await;
    assert_eq!(number(&pool, "SELECT count(*) AS n FROM deliveries").await, 0);
    let dead = "SELECT count(*) AS n FROM delivery_attempts WHERE settled = 'dead'";
    assert_eq!(number(&pool, dead).await, 1);
    assert_eq!(namespace.peek("notify.rma.dead").await.len(), 1);
    drop(database);
}

#[tokio::test(flavor = "multi_thread")]
async fn deliveries_that_do_not_finish_in_time_are_released() {
    let stage = Stage::new(&[]).await;
    stage.behave(json!([{"do": "hang", "times": "always"}])).await;
    let batch: Vec<_> = (0..4).map(|n| message(None, "rma.created", n)).collect();
    stage.append(&batch).await;
    in_flight(&stage, 4).await;
    let Stage { replica, pool, namespace, database, .. } = stage;
    assert!(replica.process.tasks.drain(Duration::from_secs(4)).await, "tasks did not stop");
    let ready = "SELECT count(*) AS n FROM deliveries WHERE state = 'ready' AND attempts = 0";
    assert_eq!(number(&pool, ready).await, 4);
    // A message left in the queue would be sent twice.
    assert!(namespace.peek("notify.rma").await.is_empty());
    drop(database);
}
