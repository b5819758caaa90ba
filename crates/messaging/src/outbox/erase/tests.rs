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
