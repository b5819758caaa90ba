//! Order within an ordering key, and independence of endpoints from each other.

use std::collections::HashMap;
use std::time::Duration;

use diesel_async::SimpleAsyncConnection as _;
use serde_json::json;
use testkit::eventually;

use crate::test_app::{ReceivedMessage, TIMEOUT, TestApp, message};

/// Asserts that the accepted sequence numbers of each ordering key never decrease. A message may
/// arrive twice, but not after its successor.
pub(crate) fn nothing_overtook(arrivals: &[ReceivedMessage]) {
    let mut ordering_keys = HashMap::<&str, i64>::new();
    for arrival in arrivals.iter().filter(|arrival| arrival.response == "200") {
        let ordering_key = arrival.event.as_str();
        let last = ordering_keys.entry(ordering_key).or_default();
        assert!(arrival.sequence >= *last, "{ordering_key}: {} after {last}", arrival.sequence);
        *last = arrival.sequence;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_of_an_ordering_key_arrive_in_order_despite_failures_and_two_replicas() {
    let app =
        TestApp::start(&[("DELIVERY__RETRIES", "50"), ("DELIVERY__RETRY_BASE", "10ms")]).await;
    let second = app.start_replica().await;
    // Every third request fails.
    let step = |status| json!({"do": "respond", "status": status, "times": 1});
    let steps: Vec<_> = (0..300).map(|n| step(if n % 3 == 0 { 422 } else { 200 })).collect();
    app.behave(json!(steps)).await;
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
        app.append(&batch).await;
    }
    app.wait_until_settled(TIMEOUT).await;
    let arrivals = app.received().await;
    nothing_overtook(&arrivals);
    let accepted = arrivals.iter().filter(|arrival| arrival.response == "200").count();
    assert_eq!(accepted, 200);
    second.stop().await;
    app.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failing_delivery_blocks_only_its_own_ordering_key() {
    let app = TestApp::start(&[("DELIVERY__RETRY_BASE", "1h")]).await;
    app.behave(json!([{"do": "respond", "status": 422, "times": 1}])).await;
    app.append(&[message(Some("sick"), "sick", 1)]).await;
    eventually("the head failed", TIMEOUT, async || {
        (app.received().await.len() == 1).then_some(())
    })
    .await;
    let mut batch: Vec<_> = (2..12).map(|n| message(Some("sick"), "sick", n)).collect();
    batch.extend((0..10).map(|n| message(Some(&format!("well-{n}")), "well", n)));
    app.append(&batch).await;
    eventually("the others arrive", TIMEOUT, async || {
        let arrivals = app.received().await;
        (arrivals.iter().filter(|arrival| arrival.event == "well").count() == 10).then_some(())
    })
    .await;
    eventually("the ordering key is blocked", TIMEOUT, async || {
        let blocked = "SELECT count(*) AS n FROM deliveries \
                       WHERE ordering_key = 'sick' AND state = 'blocked'";
        (app.count(blocked).await == 10).then_some(())
    })
    .await;
    crate::test_app::execute(
        &app.pool,
        "UPDATE deliveries SET next_attempt_at = now() WHERE state = 'ready'",
    )
    .await;
    app.wait_until_settled(TIMEOUT).await;
    let arrivals = app.received().await;
    nothing_overtook(
        &arrivals.into_iter().filter(|arrival| arrival.event == "sick").collect::<Vec<_>>(),
    );
    app.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dead_delivery_does_not_block_its_successors() {
    let app = TestApp::start(&[("DELIVERY__RETRIES", "1"), ("DELIVERY__RETRY_BASE", "10ms")]).await;
    app.behave(json!([{"do": "respond", "status": 500, "times": 2}])).await;
    app.append(&[message(Some("a"), "a", 1), message(Some("a"), "a", 2)]).await;
    app.wait_until_settled(TIMEOUT).await;
    let arrivals = app.received().await;
    let seen: Vec<_> = arrivals.iter().map(|a| (a.sequence, a.response.as_str())).collect();
    assert_eq!(seen, [(1, "500"), (1, "500"), (2, "200")]);
    assert_eq!(app.namespace.peek("notify.rma.dead").await.len(), 1);
    app.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_blocked_head_of_an_ordering_key_is_unblocked() {
    /// More than one check covers.
    const KEYS: usize = 1001;
    let app = TestApp::start(&[]).await;
    let mut conn = app.pool.get().await.unwrap();
    let now = platform::Clock::system().now();
    // One transaction appends and blocks them, so that the dispatcher never sees them ready.
    conn.transaction(async |conn| {
        for number in 1..=2 {
            let ordering_key = |ordering_key| {
                message(Some(&format!("ordering_key-{ordering_key}")), "blocked", number)
            };
            let batch: Vec<_> = (0..KEYS).map(ordering_key).collect();
            app.replica.deliveries.append(conn, now, &batch).await?;
        }
        let block = "UPDATE deliveries SET state = 'blocked'";
        Ok::<_, platform::database::DatabaseError>(conn.batch_execute(block).await?)
    })
    .await
    .unwrap();
    drop(conn);
    app.wait_until_settled(TIMEOUT).await;
    assert_eq!(app.received().await.len(), 2 * KEYS);
    app.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hanging_endpoint_does_not_slow_other_endpoints() {
    let app =
        TestApp::start(&[("DELIVERY__ATTEMPT_TIMEOUT", "2s"), ("DELIVERY__RETRY_BASE", "1h")])
            .await;
    app.add_merchant("slow", "/slow").await;
    let rule = json!({"path": "/slow/rmas", "steps": [{"do": "hang", "times": "always"}]});
    app.sandbox_request(reqwest::Method::PUT, "/behaviour", &rule).await;
    let mut slow: Vec<_> = (0..200).map(|n| message(None, "slow", n)).collect();
    slow.iter_mut().for_each(|message| message.merchant = "slow".parse().unwrap());
    app.append(&slow).await;
    app.append(&(0..500).map(|n| message(None, "well", n)).collect::<Vec<_>>()).await;
    eventually("the other endpoint's messages arrive", TIMEOUT, async || {
        (app.received().await.len() == 500).then_some(())
    })
    .await;
    eventually("the window shrinks to one", TIMEOUT, async || {
        let size = "SELECT window_size::int8 AS n FROM delivery_endpoints WHERE merchant = 'slow'";
        (app.count(size).await == 1).then_some(())
    })
    .await;
    let queued = "SELECT count(*) AS n FROM deliveries WHERE state = 'queued'";
    eventually("one probe at a time", TIMEOUT, async || {
        (app.count(queued).await <= 1).then_some(())
    })
    .await;
    app.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn hanging_endpoints_leave_memory_for_others() {
    // Memory for 24 messages. With so little, an endpoint may have four in flight.
    let patient = [("DELIVERY__ATTEMPT_TIMEOUT", "2m"), ("DELIVERY__MAX_INFLIGHT", "417792")];
    let app = TestApp::start(&patient).await;
    let rule = json!({"path": "/slow/rmas", "steps": [{"do": "hang", "times": "always"}]});
    app.sandbox_request(reqwest::Method::PUT, "/behaviour", &rule).await;
    for merchant_id in ["slow-1", "slow-2"] {
        app.add_merchant(merchant_id, "/slow").await;
        let mut backlog: Vec<_> = (0..8).map(|n| message(None, "slow", n)).collect();
        backlog.iter_mut().for_each(|message| message.merchant = merchant_id.parse().unwrap());
        app.append(&backlog).await;
    }
    let queued = "SELECT count(*) AS n FROM deliveries \
                  WHERE state = 'queued' AND merchant LIKE 'slow-%'";
    eventually("attempts hang", TIMEOUT, async || (app.count(queued).await == 8).then_some(()))
        .await;
    app.append(&(0..20).map(|n| message(None, "well", n)).collect::<Vec<_>>()).await;
    eventually("the other endpoint's messages arrive", TIMEOUT, async || {
        (app.received().await.len() == 20).then_some(())
    })
    .await;
    assert_eq!(app.count(queued).await, 8, "the others still wait for their responses");
    app.replica.process.tasks.drain(Duration::ZERO).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn hanging_endpoints_get_no_requests_between_probes() {
    let quick = [
        ("DELIVERY__ATTEMPT_TIMEOUT", "200ms"),
        ("DELIVERY__RETRY_BASE", "1h"),
        ("DELIVERY__INITIAL_WINDOW", "1"),
    ];
    let app = TestApp::start(&quick).await;
    let rule = json!({"path": "/slow/rmas", "steps": [{"do": "hang", "times": "always"}]});
    app.sandbox_request(reqwest::Method::PUT, "/behaviour", &rule).await;
    for merchant_id in ["slow-1", "slow-2", "slow-3"] {
        app.add_merchant(merchant_id, "/slow").await;
        let mut backlog: Vec<_> = (0..20).map(|n| message(None, "slow", n)).collect();
        backlog.iter_mut().for_each(|message| message.merchant = merchant_id.parse().unwrap());
        app.append(&backlog).await;
    }
    eventually("the hanging endpoints get no requests", TIMEOUT, async || {
        let waiting = "SELECT count(*) AS n FROM delivery_endpoints AS endpoint \
                       WHERE not_before > now() + INTERVAL '30 seconds' AND EXISTS ( \
                           SELECT FROM deliveries AS row WHERE row.merchant = endpoint.merchant \
                           AND row.state = 'ready' AND row.next_attempt_at <= now()) \
                       AND NOT EXISTS ( \
                           SELECT FROM deliveries AS row WHERE row.merchant = endpoint.merchant \
                           AND row.state = 'queued')";
        (app.count(waiting).await == 3).then_some(())
    })
    .await;
    app.append(&[message(None, "well", 1)]).await;
    eventually("the other endpoint's message arrives", TIMEOUT, async || {
        (app.received().await.len() == 1).then_some(())
    })
    .await;
    app.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn attempts_that_started_together_are_not_probes() {
    let app = TestApp::start(&[("DELIVERY__RETRY_BASE", "60s")]).await;
    app.behave(json!([{"do": "respond", "status": 503, "delay_ms": 500, "times": "always"}])).await;
    let messages: Vec<_> = (0..8).map(|number| message(None, "rma.created", number)).collect();
    app.append(&messages).await;
    let tried = "SELECT count(*) AS n FROM deliveries WHERE attempts = 1";
    eventually("all were tried", TIMEOUT, async || (app.count(tried).await == 8).then_some(()))
        .await;
    let narrow =
        "SELECT count(*) AS n FROM delivery_endpoints WHERE window_size = 1 AND failed_probes = 0";
    assert_eq!(app.count(narrow).await, 1);
    app.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replica_that_does_not_lead_keeps_its_connections() {
    let app = TestApp::start(&[]).await;
    let second = app.start_replica().await;
    for number in 0..60 {
        // Appending wakes the dispatcher of each replica, also of the one that does not lead.
        let deliveries = [&app.replica.deliveries, &second.deliveries];
        for deliveries in deliveries {
            let (conn, now) = (app.pool.get().await.unwrap(), platform::Clock::system().now());
            deliveries.append(&conn, now, &[message(None, "note", number)]).await.unwrap();
        }
        app.wait_until_settled(TIMEOUT).await;
    }
    let ended = app.count(testkit::ENDED_SESSIONS).await;
    assert!(ended < 10, "{ended} connections were made and dropped");
    second.stop().await;
    app.stop().await;
}
