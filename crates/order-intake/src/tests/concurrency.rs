//! Concurrent batches, of one writer and of several.

use std::slice::from_ref as one;
use std::time::Duration;

use diesel_async::SimpleAsyncConnection as _;
use domain::order::OrderOutcome;
use platform::{ErrorKind, Failure as _, Tasks};
use serde_json::{Value, json};

use super::test_writer::{TestWriter, check, refunded, samples, with};
use crate::writer::{PublishError, PublishResult};

/// The same order, updated at the beginning of the year.
fn updated_in(order: &Value, year: u32) -> Value {
    with(order.clone(), |order| order["updated_at"] = json!(format!("{year}-01-01T00:00:00Z")))
}

/// Publishes the first order while another connection locks its row, then the second order. When both
/// are in flight, the connection executes `then`.
async fn publish_while_blocked(
    writer: &TestWriter,
    first: &Value,
    second: &Value,
    then: &str,
) -> [PublishResult; 2] {
    let pool = writer.database.pool();
    let mut holder = pool.get().await.unwrap();
    let held = first["identifier"].as_str().unwrap();
    let hold = format!("BEGIN; SELECT FROM orders WHERE identifier = '{held}' FOR UPDATE");
    holder.batch_execute(&hold).await.unwrap();
    let submit = |order| writer.submit(writer.publication("acme", one(order)));
    writer
        .with_writer(async {
            let later = async {
                writer.wait_until_blocked().await;
                let unblocking = async {
                    testkit::eventually(
                        "the second batch is in flight",
                        Duration::from_secs(300),
                        async || (writer.queue.depth() == 0).then_some(()),
                    )
                    .await;
                    holder.batch_execute(then).await.unwrap();
                };
                tokio::join!(biased; submit(second), unblocking).0
            };
            let (first, second) = tokio::join!(submit(first), later);
            [first.unwrap(), second.unwrap()]
        })
        .await
}

#[tokio::test]
async fn the_next_batch_is_sent_before_the_first_is_committed() {
    let writer = TestWriter::start().await;
    let orders = samples(2);
    check(&writer.publish("acme", one(&orders[0])).await, &[OrderOutcome::Stored]);
    let newer = updated_in(&orders[0], 2027);
    let results = publish_while_blocked(&writer, &newer, &orders[1], "COMMIT").await;
    results.iter().for_each(|result| check(result, &[OrderOutcome::Stored]));
    assert_eq!(writer.events().await.len(), 3);
}

#[tokio::test]
async fn a_conflict_does_not_affect_the_previous_batch() {
    let writer = TestWriter::start().await;
    let orders = samples(2);
    check(&writer.publish("acme", &orders).await, &[OrderOutcome::Stored; 2]);
    let (newer, older) = (updated_in(&orders[0], 2027), updated_in(&orders[1], 2020));
    let [ahead, behind] = publish_while_blocked(&writer, &newer, &older, "COMMIT").await;
    check(&ahead, &[OrderOutcome::Stored]);
    check(&behind, &[OrderOutcome::Stale]);
    assert_eq!(writer.events().await.len(), 3);
}

/// The precondition holds, and another writer then changes the row before it is written.
#[tokio::test]
async fn a_conflict_does_not_affect_the_next_batch() {
    let writer = TestWriter::start().await;
    let orders = samples(2);
    check(&writer.publish("acme", one(&orders[0])).await, &[OrderOutcome::Stored]);
    let newer = updated_in(&orders[0], 2027);
    let change = "UPDATE orders SET updated_at = '2028-01-01'; COMMIT";
    let [conflicting, behind] = publish_while_blocked(&writer, &newer, &orders[1], change).await;
    check(&conflicting, &[OrderOutcome::Stale]);
    check(&behind, &[OrderOutcome::Stored]);
    assert_eq!(writer.events().await.len(), 2);
}

/// The refund is inserted by another writer after the precondition was checked.
#[tokio::test]
async fn a_concurrent_refund_is_a_conflict() {
    let writer = TestWriter::start().await;
    let order = refunded();
    check(&writer.publish("acme", one(&order)).await, &[OrderOutcome::Stored]);
    let new = with(updated_in(&order, 2027), |order| {
        order["refunds"][0]["identifier"] = json!("in between");
        order["refunds"][0]["refund_line_items"][0]["identifier"] = json!("its line");
    });
    let come = "INSERT INTO refunds VALUES ('acme', 'in between', sha256('another order'), sha256('x'), now()); COMMIT";
    let [refused, behind] = publish_while_blocked(&writer, &new, &samples(101)[100], come).await;
    assert!(matches!(refused, Err(PublishError::Refunds(_))), "{refused:?}");
    check(&behind, &[OrderOutcome::Stored]);
}

/// A lock held on one order must not fail the other orders of the batch.
#[tokio::test]
async fn a_timed_out_order_fails_alone() {
    let writer = TestWriter::with_statement_timeout(Duration::from_secs(1)).await;
    let orders = samples(5);
    check(&writer.publish("acme", &orders[..2]).await, &[OrderOutcome::Stored; 2]);
    let pool = writer.database.pool();
    let mut holder = pool.get().await.unwrap();
    let publish = async |orders: Vec<Value>| {
        let publications = orders.iter().map(|order| writer.publication("acme", one(order)));
        writer.publish_batch(publications.collect()).await
    };

    let held = orders[0]["identifier"].as_str().unwrap();
    let hold = format!("BEGIN; SELECT FROM orders WHERE identifier = '{held}' FOR UPDATE");
    holder.batch_execute(&hold).await.unwrap();
    let newer = updated_in(&orders[0], 2027);
    let results = publish(vec![orders[2].clone(), newer, orders[3].clone()]).await;
    let [before, Err(timed_out), behind] = &results[..] else { panic!("{results:?}") };
    assert_eq!(timed_out.kind(), ErrorKind::Unavailable);
    [before, behind].into_iter().for_each(|result| check(result, &[OrderOutcome::Stored]));

    // After several timeouts the rest of the batch is rejected immediately.
    holder.batch_execute("COMMIT; BEGIN; SELECT FROM orders FOR UPDATE").await.unwrap();
    let newer = orders[..3].iter().map(|order| updated_in(order, 2027));
    let results = publish(newer.chain([orders[4].clone()]).collect()).await;
    results.iter().for_each(|result| assert!(result.is_err(), "{results:?}"));
}

#[tokio::test]
async fn batches_fail_with_their_connection_and_the_next_is_stored() {
    let writer = TestWriter::start().await;
    let orders = samples(2);
    check(&writer.publish("acme", one(&orders[0])).await, &[OrderOutcome::Stored]);
    let newer = updated_in(&orders[0], 2027);
    let cut = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
               WHERE datname = current_database() AND wait_event_type = 'Lock'; COMMIT";
    for result in publish_while_blocked(&writer, &newer, &orders[1], cut).await {
        let Err(error @ PublishError::Database(_)) = result else { panic!("{result:?}") };
        assert_eq!(error.kind(), ErrorKind::Unavailable);
    }
    check(&writer.publish("acme", &[newer, orders[1].clone()]).await, &[OrderOutcome::Stored; 2]);
}

/// Four writers stand for four replicas. A writer that loses a race retries in checked mode.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn concurrent_writers_of_one_order_lose_nothing() {
    let writer = TestWriter::start().await;
    let (tasks, pool) = (Tasks::default(), writer.database.pool());
    let queues = [(); 4].map(|()| TestWriter::new_queue());
    for queue in &queues {
        tasks.spawn("writer", |stop| writer.new_writer(pool.clone(), queue).run(stop));
    }
    let order = refunded();
    let snapshot = |second: u32| {
        let updated_at = format!("2026-02-01T00:00:{second:02}Z");
        with(order.clone(), |order| order["updated_at"] = json!(updated_at))
    };
    let publications = (0..60).map(|second| writer.publication("acme", &[snapshot(second)]));
    let queues = queues.iter().cycle();
    let waiting = publications.zip(queues).map(|(publication, queue)| queue.submit(publication));
    let results = futures_util::future::join_all(waiting).await;
    assert!(tasks.drain(Duration::from_secs(5)).await);
    let stored = results.iter().filter(|result| match &result.as_ref().unwrap().1 {
        Ok(outcomes) => outcomes == &[OrderOutcome::Stored],
        Err(error) => panic!("{error}"),
    });
    assert_eq!(writer.events().await.len(), stored.count());
    let last = writer.lines("SELECT document::jsonb ->> 'updated_at' AS line FROM orders").await;
    assert_eq!(last, ["2026-02-01T00:00:59Z"]);
}

/// Consumers order snapshots with the same `updated_at` by the sequence numbers of their events.
#[tokio::test]
async fn an_event_draws_its_sequence_number_after_locking_the_order() {
    let writer = TestWriter::start().await;
    let order = samples(1).remove(0);
    check(&writer.publish("acme", one(&order)).await, &[OrderOutcome::Stored]);
    let pool = writer.database.pool();
    let mut other = pool.get().await.unwrap();
    other.batch_execute("BEGIN; SELECT FROM orders FOR UPDATE").await.unwrap();
    let newer = with(order, |order| order["updated_at"] = json!("2027-01-01T00:00:00Z"));
    let publishing = writer.publish("acme", one(&newer));
    let drawing = async {
        writer.wait_until_blocked().await;
        other.batch_execute("SELECT nextval('outbox_sequence_seq'); COMMIT").await.unwrap();
    };
    let (result, ()) = tokio::join!(publishing, drawing);
    check(&result, &[OrderOutcome::Stored]);
    let positions =
        writer.lines("SELECT sequence::text AS line FROM outbox ORDER BY sequence").await;
    assert_eq!(positions, ["1", "3"]);
}
