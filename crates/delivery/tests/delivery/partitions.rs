//! Daily partitions of the message history.

use diesel_async::SimpleAsyncConnection as _;
use platform::database::Pool;
use testkit::{Database, Namespace, eventually};

use crate::test_app::{TIMEOUT, TestApp, execute, message, migrations};

/// Suffix, first id and end of the partitions of 1 and 2 January 2020.
const DAYS: [(&str, &str, &str); 2] = [
    ("20200101", "016f5e66-e800-0000-0000-000000000000", "016f638d-4400-0000-0000-000000000000"),
    ("20200102", "016f638d-4400-0000-0000-000000000000", "016f68b3-a000-0000-0000-000000000000"),
];
const UNSETTLED: &str = "016f638d-4400-7000-8000-000000000001";

async fn create_old_partitions(pool: &Pool) {
    for (day, from, to) in DAYS {
        for table in ["delivery_messages", "delivery_attempts"] {
            let partition = format!(
                "CREATE TABLE {table}_{day} PARTITION OF {table} \
                 FOR VALUES FROM ('{from}') TO ('{to}')"
            );
            execute(pool, &partition).await;
        }
    }
}

/// Inserts a delivery of the second day.
fn insert_unsettled() -> String {
    format!(
        "INSERT INTO deliveries (id, merchant, kind, sequence, state, next_attempt_at) \
         VALUES ('{UNSETTLED}', 'acme', 'rma', 1, 'ready', 'infinity')"
    )
}

fn partitions(day: &str) -> String {
    format!("SELECT count(*) AS n FROM pg_class WHERE relkind = 'r' AND relname LIKE '%_{day}'")
}

#[tokio::test(flavor = "multi_thread")]
async fn partitions_are_created_ahead_and_dropped_unless_a_delivery_is_unsettled() {
    let database = Database::create(migrations()).await;
    let pool = database.pool();
    create_old_partitions(&pool).await;
    execute(&pool, &insert_unsettled()).await;
    let app = TestApp::start_on(database, Namespace::create(), &[]).await;
    eventually("the old partitions are dropped", TIMEOUT, async || {
        (app.count(&partitions("20200101")).await == 0).then_some(())
    })
    .await;
    assert_eq!(app.count(&partitions("20200102")).await, 2);
    let made = "SELECT count(*) AS n FROM pg_class WHERE relname LIKE 'delivery_messages_20__%' \
                AND relkind = 'r'";
    assert!(app.count(made).await >= 8);
    app.append(&[message(None, "rma.created", 1)]).await;
    eventually("it is delivered", TIMEOUT, async || {
        (app.received().await.len() == 1).then_some(())
    })
    .await;
    app.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_partition_is_not_dropped_while_one_of_its_messages_is_replayed() {
    let app = TestApp::start(&[]).await;
    create_old_partitions(&app.pool).await;
    // A replay reads messages and attempts, then inserts a delivery.
    let mut replay = app.pool.get().await.unwrap();
    replay.batch_execute("BEGIN").await.unwrap();
    let reads = "SELECT FROM delivery_messages_20200102; SELECT FROM delivery_attempts_20200102";
    replay.batch_execute(reads).await.unwrap();
    replay.batch_execute(&insert_unsettled()).await.unwrap();
    let committing = async {
        eventually("maintenance waits for the partition", TIMEOUT, async || {
            let waiting = "SELECT count(*) AS n FROM pg_locks WHERE NOT granted \
                           AND relation = 'delivery_messages_20200102'::regclass";
            (app.count(waiting).await > 0).then_some(())
        })
        .await;
        replay.batch_execute("COMMIT").await.unwrap();
    };
    // A replica maintains the partitions before it is ready.
    let (second, ()) = tokio::join!(app.start_replica(), committing);
    assert_eq!(app.count(&partitions("20200101")).await, 0);
    assert_eq!(app.count(&partitions("20200102")).await, 2);
    second.stop().await;
    app.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_copy_of_a_message_of_a_dropped_partition_delays_no_other() {
    let app = TestApp::start(&[]).await;
    app.publish(&[app.queue_message(UNSETTLED.parse().unwrap(), &[])]).await;
    eventually("the copy is sent", TIMEOUT, async || {
        (app.received().await.len() == 1).then_some(())
    })
    .await;
    app.append(&[message(None, "rma.created", 1)]).await;
    app.wait_until_settled(TIMEOUT).await;
    app.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_partition_is_a_temporary_error() {
    use platform::{ErrorKind, Failure as _};
    let app = TestApp::start(&[]).await;
    let today = platform::Clock::system().now();
    let partition = format!("DROP TABLE delivery_messages_{}", today.format("%Y%m%d"));
    execute(&app.pool, &partition).await;
    let conn = app.pool.get().await.unwrap();
    let messages = [message(None, "rma.created", 1)];
    let refused = app.replica.deliveries.append(&conn, today, &messages).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Unavailable, "{refused:?}");
    drop(conn);
    // The next replica creates the partition again.
    let second = app.start_replica().await;
    app.append(&messages).await;
    app.wait_until_settled(TIMEOUT).await;
    second.stop().await;
    app.stop().await;
}
