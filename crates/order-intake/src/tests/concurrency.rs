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

/// The requests about the order wait for its lock, one after the other, while the writer stores all others.
#[tokio::test]
async fn a_locked_order_delays_no_other() {
    let writer = TestWriter::start().await;
    let orders = samples(5);
    check(&writer.publish("acme", &orders[..2]).await, &[OrderOutcome::Stored; 2]);
    let pool = writer.database.pool();
    let mut holder = pool.get().await.unwrap();
    let held = orders[0]["identifier"].as_str().unwrap();
    let hold = format!("BEGIN; SELECT FROM orders WHERE identifier = '{held}' FOR UPDATE");
    holder.batch_execute(&hold).await.unwrap();
    let submit = |order: &Value| writer.submit(writer.publication("acme", one(order)));
    let locked: Vec<_> = (2027..2030).map(|year| updated_in(&orders[0], year)).collect();
    let waiting = futures_util::future::join_all(locked.iter().map(submit));
    let others = async {
        writer.wait_until_blocked().await;
        let newer = updated_in(&orders[1], 2027);
        for order in [&newer, &orders[2], &orders[3], &orders[4]] {
            check(&submit(order).await.unwrap(), &[OrderOutcome::Stored]);
        }
        holder.batch_execute("COMMIT").await.unwrap();
    };
    let (results, ()) = writer.with_writer(futures_util::future::join(waiting, others)).await;
    for result in results {
        // On a slow machine the time of a request can be over before the lock is released.
        let result = result.unwrap();
        assert!(!result.is_err_and(|error| error.kind() != ErrorKind::Limited));
    }
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
    let tasks = Tasks::default();
    let pool = writer.database.pool();
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
    let waiting =
        publications.zip(queues).map(|(publication, queue)| writer.submit_to(queue, publication));
    let results = futures_util::future::join_all(waiting).await;
    assert!(tasks.drain(Duration::from_secs(5)).await);
    let stored = results.iter().filter(|result| match result.as_ref().unwrap() {
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
