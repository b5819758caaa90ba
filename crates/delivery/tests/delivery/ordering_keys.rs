//! Order within an ordering key, and independence of endpoints from each other.

use std::collections::HashMap;
use std::time::Duration;

use diesel_async::{AsyncConnection as _, SimpleAsyncConnection as _};
use serde_json::json;
use testkit::eventually;

use crate::stage::{Arrival, SOON, Stage, message};

/// Asserts that the accepted sequence numbers of each ordering key never decrease. A message may
/// arrive twice, but not after its successor.
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
async fn messages_of_an_ordering_key_arrive_in_order_despite_failures_and_two_replicas() {
    let stage = Stage::new(&[("DELIVERY__RETRIES", "50"), ("DELIVERY__RETRY_BASE", "10ms")]).await;
    let second = stage.another().await;
    // Every third request fails.
    let step = |status| json!({"do": "answer", "status": status, "times": 1});
    let steps: Vec<_> = (0..300).map(|n| step(if n % 3 == 0 { 422 } else { 200 })).collect();
    stage.behave(json!(steps)).await;
    for number in 0..10 {
        // The event repeats the ordering key, so that the merchant can tell the keys apart.
        let batch: Vec<_> = (0..20)
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
    stage.settled(Duration::from_secs(60)).await;
    let arrivals = stage.arrivals().await;
    nothing_overtook(&arrivals);
    let accepted = arrivals.iter().filter(|arrival| arrival.answer == "200").count();
    assert_eq!(accepted, 200);
    second.leave().await;
    stage.leave().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failing_delivery_blocks_only_its_own_ordering_key() {
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
    eventually("the ordering key is blocked", SOON, async || {
        let blocked = "SELECT count(*) AS n FROM deliveries \
                       WHERE ordering_key = 'sick' AND state = 'blocked'";
        (stage.number(blocked).await == 10).then_some(())
    })
    .await;
    crate::stage::execute(
        &stage.pool,
        "UPDATE deliveries SET next_attempt_at = now() WHERE state = 'ready'",
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
async fn a_dead_delivery_does_not_block_its_successors() {
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
async fn a_blocked_head_of_an_ordering_key_is_unblocked() {
    /// More than one check covers.
    const KEYS: usize = 1001;
    let stage = Stage::new(&[]).await;
    let mut conn = stage.pool.get().await.unwrap();
    let now = platform::Clock::system().now();
    // One transaction appends and blocks them, so that the dispatcher never sees them ready.
    conn.transaction(async |conn| {
        for number in 1..=2 {
            let ordering_key = |ordering_key| {
                message(Some(&format!("ordering_key-{ordering_key}")), "blocked", number)
            };
            let batch: Vec<_> = (0..KEYS).map(ordering_key).collect();
            stage.replica.deliveries.append(conn, now, &batch).await?;
        }
        let block = "UPDATE deliveries SET state = 'blocked'";
        Ok::<_, platform::database::DatabaseError>(conn.batch_execute(block).await?)
    })
    .await
    .unwrap();
    drop(conn);
    stage.settled(SOON).await;
    assert_eq!(stage.arrivals().await.len(), 2 * KEYS);
    stage.leave().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hanging_endpoint_does_not_slow_other_endpoints() {
    let stage = Stage::new(&[("DELIVERY__DEADLINE", "2s"), ("DELIVERY__RETRY_BASE", "1h")]).await;
    stage.introduce("slow", "/slow").await;
    let rule = json!({"path": "/slow/rmas", "steps": [{"do": "hang", "times": "always"}]});
    stage.ask(reqwest::Method::PUT, "/behaviour", &rule).await;
    let mut slow: Vec<_> = (0..200).map(|n| message(None, "slow", n)).collect();
    slow.iter_mut().for_each(|message| message.merchant = "slow".parse().unwrap());
    stage.append(&slow).await;
    stage.append(&(0..500).map(|n| message(None, "well", n)).collect::<Vec<_>>()).await;
    eventually("the other endpoint's messages arrive", Duration::from_secs(10), async || {
        (stage.arrivals().await.len() == 500).then_some(())
    })
    .await;
    eventually("the window shrinks to one", SOON, async || {
        let size = "SELECT window_size::int8 AS n FROM delivery_endpoints WHERE merchant = 'slow'";
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
async fn hanging_endpoints_do_not_use_up_the_concurrency() {
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
    eventually("more attempts hang than may run at once", SOON, async || {
        (stage.number(queued).await == 16).then_some(())
    })
    .await;
    stage.append(&(0..20).map(|n| message(None, "well", n)).collect::<Vec<_>>()).await;
    eventually("the other endpoint's messages arrive", SOON, async || {
        (stage.arrivals().await.len() == 20).then_some(())
    })
    .await;
    assert_eq!(stage.number(queued).await, 16, "the others still wait for their responses");
    stage.replica.process.tasks.drain(Duration::ZERO).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn hanging_endpoints_get_no_requests_between_probes() {
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
    eventually("the hanging endpoints get no requests", SOON, async || {
        let waiting = "SELECT count(*) AS n FROM delivery_endpoints AS endpoint \
                       WHERE not_before > now() + INTERVAL '30 seconds' AND EXISTS ( \
                           SELECT FROM deliveries AS row WHERE row.merchant = endpoint.merchant \
                           AND row.state = 'ready' AND row.next_attempt_at <= now()) \
                       AND NOT EXISTS ( \
                           SELECT FROM deliveries AS row WHERE row.merchant = endpoint.merchant \
                           AND row.state = 'queued')";
        (stage.number(waiting).await == 3).then_some(())
    })
    .await;
    stage.append(&[message(None, "well", 1)]).await;
    eventually("the other endpoint's message arrives", SOON, async || {
        (stage.arrivals().await.len() == 1).then_some(())
    })
    .await;
    stage.leave().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn attempts_that_started_together_are_not_probes() {
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
        "SELECT count(*) AS n FROM delivery_endpoints WHERE window_size = 1 AND failed_probes = 0";
    assert_eq!(stage.number(narrow).await, 1);
    stage.leave().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replica_that_does_not_lead_keeps_its_connections() {
    let stage = Stage::new(&[]).await;
    let second = stage.another().await;
    for number in 0..60 {
        // Appending wakes the dispatcher of each replica, also of the one that does not lead.
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
