//! The cost of relaying an event does not grow while an older transaction is open.

use std::time::Instant;

use diesel_async::{AsyncPgConnection, SimpleAsyncConnection as _};
use domain::access::{Revocation, Revoked};
use testkit::{Database, Reads, fill_rows, reads};

use super::Outbox;
use super::cursor::{Poll, RelayCursor};
use super::published::{ConfirmedEvents, maintain, read_after};
use super::relay::read_batch;
use crate::inbox::Inbox;

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
    let poll = cursor.next_poll(now);
    let skipped = cursor.skipped(now);
    if poll == Poll::Full {
        cursor.end_full_poll(std::time::Duration::from_secs(3600), now);
    }
    let polled = async |conn: &mut AsyncPgConnection| {
        read_batch(conn, poll, &skipped, &[], limit).await.unwrap()
    };
    let (rows, polled) = reads(conn, polled).await;
    let move_free = async |conn: &mut AsyncPgConnection| {
        let mut confirmed = ConfirmedEvents::default();
        rows.iter().for_each(|row| confirmed.push(row));
        confirmed.move_free(conn).await.unwrap();
    };
    let ((), moving) = reads(conn, move_free).await;
    // The measured move was rolled back.
    move_free(conn).await;
    cursor.advance(&rows.iter().map(|row| row.sequence).collect::<Vec<_>>(), now);
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
    let mut conn = pool.dedicated().await.unwrap();
    let mut backup = pool.dedicated().await.unwrap();
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

#[tokio::test]
async fn events_that_wait_to_be_moved_are_not_read_again() {
    let database = Database::create(vec![crate::MIGRATIONS]).await;
    let mut conn = database.pool().get().await.unwrap();
    insert(&mut conn, 6).await;
    let all = read_batch(&mut conn, Poll::Full, &[], &[], 10).await.unwrap();
    let all: Vec<_> = all.iter().map(|row| row.sequence).collect();
    let published = [all[0], all[1], all[4]];
    let full = read_batch(&mut conn, Poll::Full, &[], &published, 2).await.unwrap();
    assert_eq!(full.iter().map(|row| row.sequence).collect::<Vec<_>>(), all[2..4]);
    let from = Poll::From(all[3]);
    let rest = read_batch(&mut conn, from, &all[1..3], &published, 10).await.unwrap();
    let rest: Vec<_> = rest.iter().map(|row| row.sequence).collect();
    assert_eq!(rest, [all[2], all[3], all[5]]);
}

/// Executions after which PostgreSQL keeps a plan.
const WARM_UPS: usize = 6;
const STATEMENTS: [&str; 5] = ["append", "read", "move", "read after", "inbox"];

/// Runs one of [`STATEMENTS`] for the events with these sequence numbers.
async fn run(name: &str, conn: &mut AsyncPgConnection, inbox: &Inbox, sequences: [i64; 2]) {
    let now = inbox.clock.now();
    let [first, second] = sequences;
    match name {
        "append" => {
            let revoked = Revoked::Client("c".to_owned());
            let revocation = Revocation { revoked, expires_at: now };
            Outbox::new("test").append(conn, now, [revocation]).await.unwrap();
        }
        "read" => drop(read_batch(conn, Poll::From(second), &[first], &[], 2).await.unwrap()),
        "move" => {
            let rows = read_batch(conn, Poll::From(second), &[first], &[], 2).await.unwrap();
            let mut confirmed = ConfirmedEvents::default();
            rows.iter().for_each(|row| confirmed.push(row));
            confirmed.move_free(conn).await.unwrap();
        }
        "read after" => {
            let since = now - chrono::TimeDelta::seconds(1);
            drop(read_after(conn, (since, first), now, 2).await.unwrap());
        }
        "inbox" => {
            let ids = vec![uuid::Uuid::nil(), uuid::Uuid::now_v7()];
            inbox.insert_new(conn, ids).await.unwrap();
        }
        other => panic!("{other} is not a statement"),
    }
}

#[tokio::test]
async fn plans_made_while_tables_were_empty_read_few_rows_of_full_ones() {
    const ROWS: i64 = 2000;
    let database = Database::create(vec![crate::MIGRATIONS]).await;
    let pool = database.pool();
    let mut leader = pool.dedicated().await.unwrap();
    let mut pooled = pool.get().await.unwrap();
    maintain(&mut leader, 7).await.unwrap();
    let off = "ALTER TABLE outbox SET (autovacuum_enabled = off); \
               ALTER TABLE inbox SET (autovacuum_enabled = off)";
    database.execute_raw(off).await;
    let inbox = Inbox {
        pool: pool.clone(),
        queue: "test.note.written.v1".to_owned(),
        clock: platform::Clock::system(),
    };
    let sequences = [ROWS / 2, ROWS / 2 + 10];
    for conn in [&mut leader, &mut *pooled] {
        database.execute_raw("VACUUM ANALYZE").await;
        for name in STATEMENTS.iter().flat_map(|name| [name; WARM_UPS]) {
            let work =
                async |conn: &mut AsyncPgConnection| run(name, conn, &inbox, sequences).await;
            reads(conn, work).await;
        }
    }
    database
        .execute_raw("SELECT setval(pg_get_serial_sequence('outbox', 'sequence'), 1, false)")
        .await;
    insert(&mut pooled, ROWS).await;
    let fill = format!(
        "INSERT INTO published_events (published_at, sequence, event_id, routing_key, event, created_at) \
         SELECT now() - n * interval '1 second', n, gen_random_uuid(), 'note.written.v1', '{{}}', now() \
         FROM generate_series(1, {ROWS}) AS n; \
         INSERT INTO inbox SELECT 'test.note.written.v1', gen_random_uuid(), now() \
         FROM generate_series(1, {ROWS})"
    );
    database.execute_raw(&fill).await;
    let mut expensive = Vec::new();
    for (connection, conn) in [("leader", &mut leader), ("pooled", &mut *pooled)] {
        for name in STATEMENTS {
            let work =
                async |conn: &mut AsyncPgConnection| run(name, conn, &inbox, sequences).await;
            let ((), reads) = reads(conn, work).await;
            if reads.rows > 50 {
                expensive.push(format!("{name} ({connection}): {reads:?}"));
            }
        }
    }
    assert!(expensive.is_empty(), "{expensive:#?}");
}
