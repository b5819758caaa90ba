//! The cost of relaying an event does not grow while an older transaction is open.

use std::time::Instant;

use diesel_async::{AsyncPgConnection, SimpleAsyncConnection as _};
use testkit::{Database, Reads, fill_rows, reads};

use super::cursor::RelayCursor;
use super::published::{ConfirmedEvents, maintain};
use super::relay::read_batch;

/// Events that are measured one at a time.
const MEASURED: i64 = 20;
const BATCH: i64 = 500;
/// Pages that an event may read more: the planner reads up to 100 pages of dead rows at the end of an index.
const MORE_PAGES: i64 = 110;

async fn insert(conn: &mut AsyncPgConnection, events: i64) {
    let statement = format!(
        "INSERT INTO outbox (event_id, routing_key, event, created_at) \
         SELECT gen_random_uuid(), 'note.written.v1', '{{\"subject\":\"note/1\"}}', now() \
         FROM generate_series(1, {events})"
    );
    conn.batch_execute(&statement).await.unwrap();
}

/// Inserts and relays many events.
async fn relay_many(conn: &mut AsyncPgConnection, cursor: &mut RelayCursor, events: i64) {
    for _ in 0..events / BATCH {
        insert(conn, BATCH).await;
        relay(conn, cursor, BATCH).await;
    }
}

/// Relays up to `limit` events as the relay does, and returns what its two statements read.
async fn relay(conn: &mut AsyncPgConnection, cursor: &mut RelayCursor, limit: i64) -> Reads {
    let now = Instant::now();
    let (start, skipped) = (cursor.start(now), cursor.skipped(now));
    if start == i64::MIN {
        cursor.full_poll_ended(std::time::Duration::from_secs(3600), now);
    }
    let polled = async |conn: &mut AsyncPgConnection| {
        read_batch(conn, start, &skipped, limit).await.unwrap()
    };
    let (rows, polled) = reads(conn, polled).await;
    let move_all = async |conn: &mut AsyncPgConnection| {
        let mut confirmed = ConfirmedEvents::default();
        rows.iter().for_each(|row| confirmed.push(row));
        confirmed.move_all(conn).await.unwrap();
    };
    let ((), moving) = reads(conn, move_all).await;
    // The measured move was rolled back.
    move_all(conn).await;
    cursor.deleted(&rows.iter().map(|row| row.sequence).collect::<Vec<_>>(), now);
    Reads { rows: polled.rows + moving.rows, pages: polled.pages + moving.pages }
}

/// Relays single events and returns what they read together.
async fn measure(conn: &mut AsyncPgConnection, cursor: &mut RelayCursor) -> Reads {
    let mut sum = Reads { rows: 0, pages: 0 };
    for _ in 0..MEASURED {
        insert(conn, 1).await;
        let Reads { rows, pages } = relay(conn, cursor, BATCH).await;
        sum = Reads { rows: sum.rows + rows, pages: sum.pages + pages };
    }
    sum
}

#[tokio::test]
async fn an_open_transaction_does_not_raise_the_cost_of_events() {
    let database = Database::create(vec![crate::MIGRATIONS]).await;
    let pool = database.pool();
    let (mut conn, mut backup) = (pool.dedicated().await.unwrap(), pool.dedicated().await.unwrap());
    maintain(&mut conn, 7).await.unwrap();
    conn.batch_execute("SET statement_timeout = 0").await.unwrap();
    backup.batch_execute("SET idle_in_transaction_session_timeout = 0").await.unwrap();
    backup
        .batch_execute("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM outbox")
        .await
        .unwrap();
    let mut cursor = RelayCursor::new(Instant::now());
    // A few events differ more than the pages of many dead rows.
    let events = fill_rows().max(10_000);
    relay_many(&mut conn, &mut cursor, events / 10).await;
    let first = measure(&mut conn, &mut cursor).await;
    relay_many(&mut conn, &mut cursor, events).await;
    let last = measure(&mut conn, &mut cursor).await;
    backup.batch_execute("ROLLBACK").await.unwrap();
    assert!(last.rows <= 6 * MEASURED, "{last:?} for {MEASURED} events");
    let most = first.pages + MORE_PAGES * MEASURED;
    assert!(last.pages <= most, "{last:?}, at the start {first:?}");
    let kept = database.count("SELECT count(*) FROM published_events").await;
    assert!(kept >= events, "{kept} events were relayed");
}
