//! The days of the log.

use diesel_async::SimpleAsyncConnection as _;
use platform::database::Pool;
use testkit::{Database, Namespace, eventually};

use crate::stage::{SOON, Stage, copy, execute, message, migrations, publish};

/// The ids of 1 and of 2 January 2020 begin with these; the third is the day after.
const DAYS: [(&str, &str, &str); 2] = [
    ("20200101", "016f5e66-e800-0000-0000-000000000000", "016f638d-4400-0000-0000-000000000000"),
    ("20200102", "016f638d-4400-0000-0000-000000000000", "016f68b3-a000-0000-0000-000000000000"),
];
const UNDER_WAY: &str = "016f638d-4400-7000-8000-000000000001";

async fn make_old_days(pool: &Pool) {
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

/// Puts a message of the second day on the way.
fn under_way() -> String {
    format!(
        "INSERT INTO deliveries (id, merchant, kind, sequence, state, due_at) \
         VALUES ('{UNDER_WAY}', 'acme', 'rma', 1, 'ready', 'infinity')"
    )
}

fn partitions(day: &str) -> String {
    format!("SELECT count(*) AS n FROM pg_class WHERE relkind = 'r' AND relname LIKE '%_{day}'")
}

#[tokio::test(flavor = "multi_thread")]
async fn days_are_made_ahead_and_dropped_unless_something_of_them_is_under_way() {
    let database = Database::create(migrations()).await;
    let pool = database.pool();
    make_old_days(&pool).await;
    execute(&pool, &under_way()).await;
    let stage = Stage::set(database, Namespace::create(), &[]).await;
    eventually("the old day is dropped", SOON, async || {
        (stage.number(&partitions("20200101")).await == 0).then_some(())
    })
    .await;
    assert_eq!(stage.number(&partitions("20200102")).await, 2);
    let made = "SELECT count(*) AS n FROM pg_class WHERE relname LIKE 'delivery_messages_20__%' \
                AND relkind = 'r'";
    assert!(stage.number(made).await >= 8);
    stage.append(&[message(None, "rma.created", 1)]).await;
    eventually("it is delivered", SOON, async || (stage.arrivals().await.len() == 1).then_some(()))
        .await;
    stage.leave().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_day_that_is_being_replayed_is_not_dropped_behind_its_back() {
    let stage = Stage::new(&[]).await;
    make_old_days(&stage.pool).await;
    // What a replay does: it reads the log, then puts a message on the way.
    let mut replay = stage.pool.get().await.unwrap();
    replay.batch_execute("BEGIN").await.unwrap();
    let reads = "SELECT FROM delivery_messages_20200102; SELECT FROM delivery_attempts_20200102";
    replay.batch_execute(reads).await.unwrap();
    replay.batch_execute(&under_way()).await.unwrap();
    let committing = async {
        eventually("somebody wants to drop the day", SOON, async || {
            let waiting = "SELECT count(*) AS n FROM pg_locks WHERE NOT granted \
                           AND relation = 'delivery_messages_20200102'::regclass";
            (stage.number(waiting).await > 0).then_some(())
        })
        .await;
        replay.batch_execute("COMMIT").await.unwrap();
    };
    // Whoever starts looks after the log before it is ready.
    let (second, ()) = tokio::join!(stage.another(), committing);
    assert_eq!(stage.number(&partitions("20200101")).await, 0);
    assert_eq!(stage.number(&partitions("20200102")).await, 2);
    second.leave().await;
    stage.leave().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_copy_of_a_message_of_a_dropped_day_stops_nobody() {
    let stage = Stage::new(&[]).await;
    publish(&stage, &[copy(&stage, UNDER_WAY.parse().unwrap(), &[])]).await;
    eventually("the copy is sent", SOON, async || {
        (stage.arrivals().await.len() == 1).then_some(())
    })
    .await;
    stage.append(&[message(None, "rma.created", 1)]).await;
    stage.settled(SOON).await;
    stage.leave().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_log_without_room_for_today_is_a_matter_of_time() {
    use platform::{ErrorKind, Failure as _};
    let stage = Stage::new(&[]).await;
    let today = platform::Clock::system().now();
    let partition = format!("DROP TABLE delivery_messages_{}", today.format("%Y%m%d"));
    execute(&stage.pool, &partition).await;
    let mut conn = stage.pool.get().await.unwrap();
    let note = [message(None, "rma.created", 1)];
    let refused = stage.replica.deliveries.append(&mut conn, today, &note).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Unavailable, "{refused:?}");
    drop(conn);
    // Whoever starts next makes the day again.
    let second = stage.another().await;
    stage.append(&note).await;
    stage.settled(SOON).await;
    second.leave().await;
    stage.leave().await;
}
