//! Order within a ordering_key, and nobody waits for a neighbour.

use std::collections::HashMap;
use std::time::Duration;

use diesel_async::{AsyncConnection as _, SimpleAsyncConnection as _};
use serde_json::json;
use testkit::eventually;

use crate::stage::{Arrival, SOON, Stage, message};

/// The sequence numbers that a merchant accepted, ordering_key by ordering_key, must only grow. A message may come
/// twice, but not after its successor.
pub(crate) fn nothing_overtook(arrivals: &[Arrival]) {
    let mut ordering_keys = HashMap::<&str, i64>::new();
    for arrival in arrivals.iter().filter(|arrival| arrival.answer == "200") {
        let ordering_key = arrival.event.as_str();
        let last = ordering_keys.entry(ordering_key).or_default();
        assert!(arrival.sequence >= *last, "{ordering_key}: {} after {last}", arrival.sequence);
        *last = arrival.sequence;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_of_a_lane_arrive_in_order_with_failures_and_two_replicas() {
    let stage = Stage::new(&[("DELIVERY__RETRIES", "50"), ("DELIVERY__RETRY_BASE", "10ms")]).await;
    let second = stage.another().await;
    // Every third request fails.
    let step = |status| json!({"do": "answer", "status": status, "times": 1});
    let steps: Vec<_> = (0..300).map(|n| step(if n % 3 == 0 { 422 } else { 200 })).collect();
    stage.behave(json!(steps)).await;
    for round in 0..10 {
        // The ordering_key's name is also the event's, so that the merchant can tell ordering_keys apart.
        let batch: Vec<_> = (0..20)
            .map(|ordering_key| {
                message(
                    Some(&format!("ordering_key-{ordering_key}")),
                    &format!("ordering_key-{ordering_key}"),
                    round,
                )
            })
            .collect();
        stage.append(&batch).await;
    }
    stage.settled(Duration::from_secs(60)).await;
    let arrivals = stage.arrivals().await;
    nothing_overtook(&arrivals);
    let accepted = arrivals.iter().filter(|arrival| arrival.answer == "200").count();
    assert_eq!(accepted, 200);
    second.leave().await;
    stage.leave().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failing_head_holds_its_lane_and_no_other() {
    let stage = Stage::new(&[("DELIVERY__RETRY_BASE", "1h")]).await;
    stage.behave(json!([{"do": "answer", "status": 422, "times": 1}])).await;
    stage.append(&[message(Some("sick"), "sick", 1)]).await;
    eventually("the head failed", SOON, async || (stage.arrivals().await.len() == 1).then_some(()))
        .await;
    let mut batch: Vec<_> = (2..12).map(|n| message(Some("sick"), "sick", n)).collect();
    batch.extend((0..10).map(|n| message(Some(&format!("well-{n}")), "well", n)));
    stage.append(&batch).await;
    eventually("the others arrive", SOON, async || {
        let arrivals = stage.arrivals().await;
        (arrivals.iter().filter(|arrival| arrival.event == "well").count() == 10).then_some(())
    })
    .await;
    eventually("the ordering_key is held", SOON, async || {
        let held =
            "SELECT count(*) AS n FROM deliveries WHERE ordering_key = 'sick' AND state = 'held'";
        (stage.number(held).await == 10).then_some(())
    })
    .await;
    crate::stage::execute(
        &stage.pool,
        "UPDATE deliveries SET due_at = now() WHERE state = 'ready'",
    )
    .await;
    stage.settled(SOON).await;
    let arrivals = stage.arrivals().await;
    nothing_overtook(
        &arrivals.into_iter().filter(|arrival| arrival.event == "sick").collect::<Vec<_>>(),
    );
    stage.leave().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dead_message_no_longer_holds_its_successors() {
    let stage = Stage::new(&[("DELIVERY__RETRIES", "1"), ("DELIVERY__RETRY_BASE", "10ms")]).await;
    stage.behave(json!([{"do": "answer", "status": 500, "times": 2}])).await;
    stage.append(&[message(Some("a"), "a", 1), message(Some("a"), "a", 2)]).await;
    stage.settled(SOON).await;
    let arrivals = stage.arrivals().await;
    let seen: Vec<_> = arrivals.iter().map(|a| (a.sequence, a.answer.as_str())).collect();
    assert_eq!(seen, [(1, "500"), (1, "500"), (2, "200")]);
    assert_eq!(stage.namespace.peek("notify.rma.dead").await.len(), 1);
    stage.leave().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_held_behind_nobody_goes_on() {
    /// More than are looked at in one go.
    const LANES: usize = 1001;
    let stage = Stage::new(&[]).await;
    let mut conn = stage.pool.get().await.unwrap();
    let now = platform::Clock::system().now();
    // Written and held in one go, before the dispatcher can see them.
    conn.transaction(async |conn| {
        for number in 1..=2 {
            let ordering_key = |ordering_key| {
                message(Some(&format!("ordering_key-{ordering_key}")), "held", number)
            };
            let batch: Vec<_> = (0..LANES).map(ordering_key).collect();
            stage.replica.deliveries.append(conn, now, &batch).await?;
        }
        let hold = "UPDATE deliveries SET state = 'held'";
        Ok::<_, platform::database::DatabaseError>(conn.batch_execute(hold).await?)
    })
    .await
    .unwrap();
    drop(conn);
    stage.settled(SOON).await;
    assert_eq!(stage.arrivals().await.len(), 2 * LANES);
    stage.leave().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hanging_endpoint_costs_its_neighbours_nothing() {
    let stage = Stage::new(&[("DELIVERY__DEADLINE", "2s"), ("DELIVERY__RETRY_BASE", "1h")]).await;
    stage.introduce("slow", "/slow").await;
    let rule = json!({"path": "/slow/rmas", "steps": [{"do": "hang", "times": "always"}]});
    stage.ask(reqwest::Method::PUT, "/behaviour", &rule).await;
    let mut slow: Vec<_> = (0..200).map(|n| message(None, "slow", n)).collect();
    slow.iter_mut().for_each(|message| message.merchant = "slow".parse().unwrap());
    stage.append(&slow).await;
    stage.append(&(0..500).map(|n| message(None, "well", n)).collect::<Vec<_>>()).await;
    eventually("the neighbour's messages arrive", Duration::from_secs(10), async || {
        (stage.arrivals().await.len() == 500).then_some(())
    })
    .await;
    eventually("the window closes to one probe", SOON, async || {
        let size = "SELECT size::int8 AS n FROM delivery_endpoints WHERE merchant = 'slow'";
        (stage.number(size).await == 1).then_some(())
    })
    .await;
    let queued = "SELECT count(*) AS n FROM deliveries WHERE state = 'queued'";
    eventually("one probe at a time", SOON, async || {
        (stage.number(queued).await <= 1).then_some(())
    })
    .await;
    stage.leave().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn endpoints_that_hang_take_nobodys_place() {
    let patient = [("DELIVERY__DEADLINE", "2m"), ("DELIVERY__CONCURRENCY", "4")];
    let stage = Stage::new(&patient).await;
    let rule = json!({"path": "/slow/rmas", "steps": [{"do": "hang", "times": "always"}]});
    stage.ask(reqwest::Method::PUT, "/behaviour", &rule).await;
    for merchant_id in ["slow-1", "slow-2"] {
        stage.introduce(merchant_id, "/slow").await;
        let mut backlog: Vec<_> = (0..8).map(|n| message(None, "slow", n)).collect();
        backlog.iter_mut().for_each(|message| message.merchant = merchant_id.parse().unwrap());
        stage.append(&backlog).await;
    }
    let queued = "SELECT count(*) AS n FROM deliveries \
                  WHERE state = 'queued' AND merchant LIKE 'slow-%'";
    eventually("more hang than there are places", SOON, async || {
        (stage.number(queued).await == 16).then_some(())
    })
    .await;
    stage.append(&(0..20).map(|n| message(None, "well", n)).collect::<Vec<_>>()).await;
    eventually("the neighbour's messages arrive", SOON, async || {
        (stage.arrivals().await.len() == 20).then_some(())
    })
    .await;
    assert_eq!(stage.number(queued).await, 16, "the others still wait for their answers");
    stage.replica.process.tasks.drain(Duration::ZERO).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn endpoints_that_hang_are_left_alone_between_probes() {
    let quick = [
        ("DELIVERY__DEADLINE", "200ms"),
        ("DELIVERY__RETRY_BASE", "1h"),
        ("DELIVERY__INITIAL_WINDOW", "1"),
        ("DELIVERY__CONCURRENCY", "2"),
    ];
    let stage = Stage::new(&quick).await;
    let rule = json!({"path": "/slow/rmas", "steps": [{"do": "hang", "times": "always"}]});
    stage.ask(reqwest::Method::PUT, "/behaviour", &rule).await;
    for merchant_id in ["slow-1", "slow-2", "slow-3"] {
        stage.introduce(merchant_id, "/slow").await;
        let mut backlog: Vec<_> = (0..20).map(|n| message(None, "slow", n)).collect();
        backlog.iter_mut().for_each(|message| message.merchant = merchant_id.parse().unwrap());
        stage.append(&backlog).await;
    }
    eventually("nothing is sent to those who hang", SOON, async || {
        let left_alone = "SELECT count(*) AS n FROM delivery_endpoints AS known \
                          WHERE not_before > now() + INTERVAL '30 seconds' AND EXISTS ( \
                              SELECT FROM deliveries AS row WHERE row.merchant = known.merchant \
                              AND row.state = 'ready' AND row.due_at <= now()) \
                          AND NOT EXISTS ( \
                              SELECT FROM deliveries AS row WHERE row.merchant = known.merchant \
                              AND row.state = 'queued')";
        (stage.number(left_alone).await == 3).then_some(())
    })
    .await;
    stage.append(&[message(None, "well", 1)]).await;
    eventually("the neighbour's message arrives", SOON, async || {
        (stage.arrivals().await.len() == 1).then_some(())
    })
    .await;
    stage.leave().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_that_set_out_together_and_fail_are_no_probes() {
    let stage = Stage::new(&[("DELIVERY__RETRY_BASE", "60s")]).await;
    stage
        .behave(json!([{"do": "answer", "status": 503, "delay_ms": 500, "times": "always"}]))
        .await;
    let messages: Vec<_> = (0..8).map(|number| message(None, "rma.created", number)).collect();
    stage.append(&messages).await;
    let tried = "SELECT count(*) AS n FROM deliveries WHERE attempts = 1";
    eventually("all were tried", SOON, async || (stage.number(tried).await == 8).then_some(()))
        .await;
    let narrow =
        "SELECT count(*) AS n FROM delivery_endpoints WHERE size = 1 AND failed_probes = 0";
    assert_eq!(stage.number(narrow).await, 1);
    stage.leave().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replica_that_does_not_dispatch_keeps_its_connections() {
    let stage = Stage::new(&[]).await;
    let second = stage.another().await;
    for number in 0..60 {
        // One of the two leads, and the other one is told of its messages all the same.
        let deliveries = [&stage.replica.deliveries, &second.deliveries];
        for deliveries in deliveries {
            let (mut conn, now) =
                (stage.pool.get().await.unwrap(), platform::Clock::system().now());
            deliveries.append(&mut conn, now, &[message(None, "note", number)]).await.unwrap();
        }
        stage.settled(SOON).await;
    }
    let ended = stage.number(testkit::ENDED_SESSIONS).await;
    assert!(ended < 10, "{ended} connections were made and dropped");
    second.leave().await;
    stage.leave().await;
}
