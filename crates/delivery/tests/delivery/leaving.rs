//! A process that is told to stop: what it began ends well, and nobody else does it again.

use std::collections::HashSet;
use std::time::Duration;

use serde_json::json;
use testkit::eventually;

use crate::ordering_keys::nothing_overtook;
use crate::stage::{SOON, Stage, message, number};

/// Waits until the merchant has so many requests to answer. They came a moment ago, so that the
/// broker still has their messages.
async fn in_flight(stage: &Stage, wanted: usize) {
    eventually("requests are under way", SOON, async || {
        (stage.arrivals().await.len() == wanted).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_replicas_one_leaves_and_each_message_arrives_once_and_in_order() {
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
async fn a_last_failure_is_written_down_and_its_letter_with_it() {
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
async fn what_cannot_be_finished_in_time_is_given_back() {
    let stage = Stage::new(&[]).await;
    stage.behave(json!([{"do": "hang", "times": "always"}])).await;
    let batch: Vec<_> = (0..4).map(|n| message(None, "rma.created", n)).collect();
    stage.append(&batch).await;
    in_flight(&stage, 4).await;
    let Stage { replica, pool, namespace, database, .. } = stage;
    assert!(replica.process.tasks.drain(Duration::from_secs(4)).await, "tasks did not stop");
    let ready = "SELECT count(*) AS n FROM deliveries WHERE state = 'ready' AND attempts = 0";
    assert_eq!(number(&pool, ready).await, 4);
    // Otherwise they would be sent once from the queue and once from the ledger.
    assert!(namespace.peek("notify.rma").await.is_empty());
    drop(database);
}
