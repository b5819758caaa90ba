//! The days of the log.

use testkit::{Database, Namespace, eventually};

use crate::stage::{SOON, Stage, execute, message, migrations};

/// The ids of 1 and of 2 January 2020 begin with these; the third is the day after.
const DAYS: [(&str, &str, &str); 2] = [
    ("20200101", "016f5e66-e800-0000-0000-000000000000", "016f638d-4400-0000-0000-000000000000"),
    ("20200102", "016f638d-4400-0000-0000-000000000000", "016f68b3-a000-0000-0000-000000000000"),
];
const UNDER_WAY: &str = "016f638d-4400-7000-8000-000000000001";

#[tokio::test(flavor = "multi_thread")]
async fn days_are_made_ahead_and_dropped_unless_something_of_them_is_under_way() {
    let database = Database::create(migrations()).await;
    let pool = database.pool();
    for (day, from, to) in DAYS {
        for table in ["delivery_messages", "delivery_attempts"] {
            let partition = format!(
                "CREATE TABLE {table}_{day} PARTITION OF {table} \
                 FOR VALUES FROM ('{from}') TO ('{to}')"
            );
            execute(&pool, &partition).await;
        }
    }
    let row = format!(
        "INSERT INTO deliveries (id, merchant, kind, sequence, state, due_at) \
         VALUES ('{UNDER_WAY}', 'acme', 'rma', 1, 'ready', 'infinity')"
    );
    execute(&pool, &row).await;
    let stage = Stage::set(database, Namespace::create(), &[]).await;
    let days = |day: &str| {
        format!("SELECT count(*) AS n FROM pg_class WHERE relkind = 'r' AND relname LIKE '%{day}'")
    };
    eventually("the old day is dropped", SOON, async || {
        (stage.number(&days("_20200101")).await == 0).then_some(())
    })
    .await;
    assert_eq!(stage.number(&days("_20200102")).await, 2);
    let made = "SELECT count(*) AS n FROM pg_class WHERE relname LIKE 'delivery_messages_20__%' \
                AND relkind = 'r'";
    assert!(stage.number(made).await >= 8);
    stage.append(&[message(None, "rma.created", 1)]).await;
    eventually("it is delivered", SOON, async || (stage.arrivals().await.len() == 1).then_some(()))
        .await;
    stage.leave().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_log_without_room_for_today_is_a_matter_of_time() {
    use platform::{Failure as _, Kind};
    let stage = Stage::new(&[]).await;
    let today = platform::Clock::system().now();
    let partition = format!("DROP TABLE delivery_messages_{}", today.format("%Y%m%d"));
    execute(&stage.pool, &partition).await;
    let mut conn = stage.pool.get().await.unwrap();
    let note = [message(None, "rma.created", 1)];
    let refused = stage.replica.deliveries.append(&mut conn, today, &note).await.unwrap_err();
    assert_eq!(refused.kind(), Kind::Unavailable, "{refused:?}");
    drop(conn);
    // Whoever starts next makes the day again.
    let second = stage.another().await;
    stage.append(&note).await;
    stage.settled(SOON).await;
    second.leave().await;
    stage.leave().await;
}
