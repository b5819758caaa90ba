use diesel_async::SimpleAsyncConnection as _;
use serde_json::json;
use testkit::{Database, count};

use super::*;
use crate::outbox::published::maintain;

/// An event about an order, with a note of this length.
fn event(length: usize) -> String {
    let event = json!({
        "specversion": "1.0", "id": uuid::Uuid::now_v7(), "source": "/backhaul/test",
        "type": "note.written.v1", "subject": "acme/A", "time": "2026-03-01T00:00:00Z",
        "datacontenttype": "application/json", "data": { "note": "x".repeat(length) },
    });
    event.to_string()
}

#[tokio::test]
async fn events_are_erased_in_all_pages_of_the_outbox_and_all_parts_of_the_kept_ones() {
    let database = Database::create(vec![crate::MIGRATIONS]).await;
    let pool = database.pool();
    let mut conn = pool.get().await.unwrap();
    maintain(&mut conn, 7).await.unwrap();
    let insert = format!(
        "INSERT INTO outbox (event_id, routing_key, event, created_at) \
         SELECT gen_random_uuid(), 'note.written.v1', \
             CASE WHEN n % {OUTBOX_PAGE} = 1 THEN '{}' ELSE '{{\"subject\":\"acme/B\"}}' END, now() \
         FROM generate_series(1, 2 * {OUTBOX_PAGE} + 1) AS n; \
         INSERT INTO published_events (published_at, sequence, event_id, routing_key, event, created_at) \
         SELECT now(), n, gen_random_uuid(), 'note.written.v1', '{}', now() \
         FROM generate_series(1, 3) AS n",
        event(1),
        event(3 * 1024 * 1024),
    );
    conn.batch_execute(&insert).await.unwrap();
    let subjects = ["acme/A".to_owned()];
    let erased = erase_events(&mut conn, &subjects, domain::erasure::erase).await.unwrap();
    assert_eq!(erased, 6);
    let left = "SELECT count(*) AS n FROM ( \
                    SELECT event FROM outbox UNION ALL SELECT event FROM published_events \
                ) AS events WHERE event LIKE '%\"note\":\"x%'";
    assert_eq!(count(&mut conn, left).await, 0);
}

/// Events in each of the two tables.
const ROWS: i64 = 2000;

/// Reads and updates one event of each table.
async fn rewrite(conn: &mut AsyncPgConnection, at: Timestamp) {
    for table in [&OUTBOX, &PUBLISHED] {
        let found = [Key { at, sequence: ROWS / 2, bytes: 1 }];
        erase_rows(conn, table, &found, domain::erasure::erase).await.unwrap();
        let erased = ErasedEvent { at, sequence: ROWS / 2, event: event(2) };
        write(conn, table.update, vec![erased]).await.unwrap();
    }
}

#[tokio::test]
async fn plans_made_while_tables_were_empty_read_few_rows_of_full_ones() {
    let database = Database::create(vec![crate::MIGRATIONS]).await;
    let pool = database.pool();
    let mut conn = pool.get().await.unwrap();
    maintain(&mut conn, 7).await.unwrap();
    database.execute_raw("ALTER TABLE outbox SET (autovacuum_enabled = off)").await;
    database.execute_raw("VACUUM ANALYZE").await;
    // In whole seconds, because the text of a time has more digits than PostgreSQL stores.
    let at = Timestamp::from_timestamp(platform::Clock::system().now().timestamp(), 0).unwrap();
    // PostgreSQL keeps a plan after five executions.
    for _ in 0..6 {
        testkit::reads(&mut conn, async |conn: &mut AsyncPgConnection| rewrite(conn, at).await)
            .await;
    }
    let fill = format!(
        "INSERT INTO outbox (event_id, routing_key, event, created_at) \
         SELECT gen_random_uuid(), 'note.written.v1', '{0}', now() FROM generate_series(1, {ROWS}); \
         INSERT INTO published_events (published_at, sequence, event_id, routing_key, event, created_at) \
         SELECT '{at}'::timestamptz + (n - {ROWS} / 2) * interval '1 ms', n, gen_random_uuid(), 'note.written.v1', '{0}', now() \
         FROM generate_series(1, {ROWS}) AS n",
        event(1),
    );
    database.execute_raw(&fill).await;
    let ((), reads) =
        testkit::reads(&mut conn, async |conn: &mut AsyncPgConnection| rewrite(conn, at).await)
            .await;
    assert!((4..50).contains(&reads.rows), "{reads:?}");
}
