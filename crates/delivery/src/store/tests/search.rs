//! Searches of the history, and counts of attempts.

use api::delivery::{Filter, State};

use super::*;
use crate::outcome::Outcome;
use crate::store::history::scan::{MAX_SCANNED, MAX_SET};
use crate::store::{IdOrder, Scan, list, state_of};

#[tokio::test]
async fn a_text_is_found_by_an_index() {
    const MESSAGES: usize = 5000;
    let now = Clock::system().now();
    let (_database, pool) = database(now).await;
    let mut conn = pool.get().await.unwrap();
    let messages: Vec<_> =
        (0..MESSAGES).map(|number| message(Some(&format!("order:{number}")))).collect();
    let ids = super::super::append(&conn, now, &messages).await.unwrap();
    conn.batch_execute("ANALYZE delivery_messages").await.unwrap();
    for text in ["order:77".to_owned(), "77".to_owned(), ids[77].to_string()] {
        let filter = Filter { text: Some(text.clone()), ..Filter::default() };
        conn.batch_execute("BEGIN").await.unwrap();
        let before = messages_read(&mut conn).await;
        let found = list(&mut conn, &filter, IdOrder::NewestFirst, None, 50).await.unwrap().rows;
        let read = messages_read(&mut conn).await - before;
        conn.batch_execute("COMMIT").await.unwrap();
        assert_eq!(found.iter().map(|row| row.id).collect::<Vec<_>>(), [ids[77]], "{text}");
        assert!((1..20).contains(&read), "{text}: read {read} rows");
    }
}

#[tokio::test]
async fn a_filter_without_an_index_reads_a_limited_number_of_messages_for_a_page() {
    let scanned = usize::try_from(MAX_SCANNED).unwrap();
    let now = Clock::system().now();
    let (_database, pool) = database(now).await;
    let mut conn = pool.get().await.unwrap();
    let mut rare = message(None);
    rare.event = "rma.rare".to_owned();
    let first = super::super::append(&conn, now, &[rare]).await.unwrap()[0];
    let mut settled = delivered(first, 0, now);
    settled.attempt.outcome = Outcome::Delivered { status: 200 };
    settle(&mut conn, settled).await;
    let later = now + TimeDelta::seconds(1);
    let messages = vec![message(None); scanned];
    super::super::append(&conn, later, &messages).await.unwrap();
    conn.batch_execute("ANALYZE delivery_messages, delivery_attempts").await.unwrap();
    let (event, merchant) = (Some("rma.rare".to_owned()), Some("acme".to_owned()));
    let outcome = Some("delivered".to_owned());
    for filter in [
        Filter { event: event.clone(), ..Filter::default() },
        Filter { event, merchant, ..Filter::default() },
        Filter { status: Some(200), ..Filter::default() },
        Filter { outcome, ..Filter::default() },
        Filter { state: Some(State::Delivered), ..Filter::default() },
    ] {
        conn.batch_execute("BEGIN").await.unwrap();
        let before = messages_read(&mut conn).await;
        let Scan { rows, scanned_to } =
            list(&mut conn, &filter, IdOrder::NewestFirst, None, 50).await.unwrap();
        let read = messages_read(&mut conn).await - before;
        conn.batch_execute("COMMIT").await.unwrap();
        assert!(rows.is_empty() && scanned_to.is_some(), "{filter:?}");
        assert!(read <= 2 * scanned + 10, "{filter:?}: read {read} rows");
        let next = list(&mut conn, &filter, IdOrder::NewestFirst, scanned_to, 50).await.unwrap();
        let ids: Vec<_> = next.rows.iter().map(|row| row.id).collect();
        assert_eq!((ids, next.scanned_to), (vec![first], None), "{filter:?}");
    }
}

#[tokio::test]
async fn an_id_tells_the_state_of_a_delivery() {
    let now = Clock::system().now();
    let (_database, pool) = database(now).await;
    let mut conn = pool.get().await.unwrap();
    let pending = append(&mut conn, now, Some("rma:1")).await;
    let dead = append_dead(&mut conn, now, "rma:2").await;
    let arrived = append(&mut conn, now, Some("rma:3")).await;
    settle(&mut conn, delivered(arrived, 0, now)).await;
    let states =
        [(pending, "pending"), (dead, "dead"), (arrived, "delivered"), (Uuid::nil(), "none")];
    for (id, state) in states {
        let query = state_of(&format!("'{id}'::uuid"));
        let query = format!("SELECT coalesce({query}, 'none') AS text");
        assert_eq!(query_text(&mut conn, &query).await, state);
    }
}

#[tokio::test]
async fn the_pages_of_a_long_ordering_key_have_all_of_its_deliveries() {
    let now = Clock::system().now();
    let (_database, pool) = database(now).await;
    let mut conn = pool.get().await.unwrap();
    let mut ids = Vec::new();
    for part in 0..=MAX_SET / 500 {
        let messages: Vec<_> = (0..500).map(|_| message(Some("asn:1"))).collect();
        let at = now + TimeDelta::milliseconds(i64::try_from(part).unwrap());
        ids.extend(super::super::append(&conn, at, &messages).await.unwrap());
    }
    ids.sort();
    ids.reverse();
    let filter = Filter { ordering_key: Some("asn:1".to_owned()), ..Filter::default() };
    let (mut found, mut after) = (Vec::new(), None);
    loop {
        let Scan { rows, scanned_to } =
            list(&mut conn, &filter, IdOrder::NewestFirst, after, 300).await.unwrap();
        found.extend(rows.iter().map(|row| row.id));
        after = scanned_to.or(rows.last().map(|row| row.id));
        if rows.len() < 300 && scanned_to.is_none() {
            break;
        }
    }
    assert!(ids.len() > MAX_SET);
    assert_eq!(found, ids);
}

/// Returns the number of messages that the connection has read.
async fn messages_read(conn: &mut AsyncPgConnection) -> usize {
    let read = "SELECT sum(seq_tup_read + COALESCE(idx_tup_fetch, 0))::text AS text \
                FROM pg_stat_xact_user_tables WHERE relname LIKE 'delivery_messages_%'";
    query_text(conn, read).await.parse().unwrap()
}

#[tokio::test]
async fn attempts_of_a_batch_are_merged_by_hour_and_duration() {
    let now = Clock::system().now();
    let (_database, pool) = database(now).await;
    let mut conn = pool.get().await.unwrap();
    let attempt = |millis, outcome| {
        let id = crate::store::new_id(now);
        let mut settlement = settlement(id, Decision::Dead, Signal::Hold, now);
        settlement.attempt.latency = Duration::from_millis(millis);
        settlement.attempt.outcome = outcome;
        settlement
    };
    let delivered = Outcome::Delivered { status: 200 };
    let batch = [
        attempt(100, delivered.clone()),
        attempt(110, delivered.clone()),
        attempt(120, Outcome::TimedOut),
        attempt(3000, delivered),
    ];
    let rows = "SELECT string_agg(concat_ws(' ', merchant, kind, bucket, attempts, delivered), \
                ', ' ORDER BY bucket) AS text FROM delivery_latencies";
    for expected in ["acme rma 13 3 2, acme rma 23 1 1", "acme rma 13 6 4, acme rma 23 2 2"] {
        super::super::settle(&mut conn, now, &mut windows(), &batch).await.unwrap();
        assert_eq!(query_text(&mut conn, rows).await, expected);
    }
}
