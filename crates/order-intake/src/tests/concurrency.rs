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

/// Publishes an order while another connection locks its row. When the writer waits for the lock, the connection
/// executes `then`.
async fn publish_while_blocked(writer: &TestWriter, order: &Value, then: &str) -> PublishResult {
    let pool = writer.database.pool();
    let mut holder = pool.get().await.unwrap();
    let held = order["identifier"].as_str().unwrap();
    let hold = format!("BEGIN; SELECT FROM orders WHERE identifier = '{held}' FOR UPDATE");
    holder.batch_execute(&hold).await.unwrap();
    let unblocking = async {
        writer.wait_until_blocked().await;
        holder.batch_execute(then).await.unwrap();
    };
    tokio::join!(writer.publish("acme", one(order)), unblocking).0
}

/// The precondition holds, and another writer then changes the row before it is written.
#[tokio::test]
async fn an_order_that_changes_while_it_is_written_is_decided_again() {
    let writer = TestWriter::start().await;
    let order = samples(1).remove(0);
    check(&writer.publish("acme", one(&order)).await, &[OrderOutcome::Stored]);
    let newer = updated_in(&order, 2027);
    let change = "UPDATE orders SET updated_at = '2028-01-01'; COMMIT";
    check(&publish_while_blocked(&writer, &newer, change).await, &[OrderOutcome::Stale]);
    assert_eq!(writer.events().await.len(), 1);
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
    let refused = publish_while_blocked(&writer, &new, come).await;
    assert!(matches!(refused, Err(PublishError::Refunds(_))), "{refused:?}");
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
async fn a_batch_fails_with_its_connection_and_the_next_is_stored() {
    let writer = TestWriter::start().await;
    let orders = samples(2);
    check(&writer.publish("acme", one(&orders[0])).await, &[OrderOutcome::Stored]);
    let newer = updated_in(&orders[0], 2027);
    let cut = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
               WHERE datname = current_database() AND wait_event_type = 'Lock'; COMMIT";
    let failed = publish_while_blocked(&writer, &newer, cut).await;
    let Err(error @ PublishError::Database(_)) = failed else { panic!("{failed:?}") };
    assert_eq!(error.kind(), ErrorKind::Unavailable);
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
    let newer = updated_in(&order, 2027);
    let draw = "SELECT nextval('outbox_sequence_seq'); COMMIT";
    let result = publish_while_blocked(&writer, &newer, draw).await;
    check(&result, &[OrderOutcome::Stored]);
    let positions =
        writer.lines("SELECT sequence::text AS line FROM outbox ORDER BY sequence").await;
    assert_eq!(positions, ["1", "3"]);
}
