//! Statements whose plans were made while their tables were empty read few rows of the full tables.

use api::delivery::{Filter, State};

use super::*;
use crate::store::{
    ErasedMessages, IdOrder, Period, ReportFilter, advance_replay, attempts, body, delete_settled,
    find, first_attempts, list, match_counts, messages_between, next_due_replay, oldest_due,
    outdated_dead_letters, report, retry_now, still_queued, unsettled,
};

/// Messages of each of two merchants.
const ROWS: i64 = 1000;
/// Rows that a statement about a few deliveries may read: some entries of indexes, and rows, for each.
const MAX_ROWS: i64 = 160;
/// Executions after which PostgreSQL keeps a plan.
const WARM_UPS: usize = 6;

const STATEMENTS: [&str; 30] = [
    "due endpoints",
    "endpoints after",
    "wake-ups",
    "claim",
    "release",
    "expire",
    "still queued",
    "make settled ready",
    "make settled ready by force",
    "delete",
    "retry now",
    "unsettled",
    "page of all",
    "page of a merchant",
    "dead of a merchant",
    "ordering key",
    "counts of dead",
    "find",
    "body",
    "attempts",
    "first attempts",
    "outdated dead letters",
    "new messages",
    "oldest due",
    "replay",
    "report",
    "erase",
    // These insert rows, so the tables are not empty afterwards.
    "settle",
    "retry later",
    "append",
];

/// Runs one of [`STATEMENTS`] for a settled and an unsettled delivery of the same ordering key.
#[expect(clippy::too_many_lines, reason = "one arm for each statement")]
async fn run(name: &str, conn: &mut AsyncPgConnection, now: Timestamp, [dead, ready]: [Uuid; 2]) {
    let acme = || Some("acme".to_owned());
    let page = async |conn: &mut AsyncPgConnection, filter: Filter| {
        list(conn, &filter, IdOrder::NewestFirst, None, 5).await.unwrap();
    };
    match name {
        "append" => drop(append(conn, now, Some("rma:500")).await),
        "due endpoints" => {
            let due = super::super::due_endpoints(conn, (now - LEASE, now), 10, &[]).await;
            drop(due.unwrap());
        }
        "endpoints after" => {
            let after = endpoint("a");
            drop(super::super::endpoints_after(conn, &after, 10).await.unwrap());
        }
        "wake-ups" => drop(super::super::take_wake_ups(conn).await.unwrap()),
        "claim" => drop(claim(conn, now).await),
        "release" => super::super::release_claim(conn, now, &[ready]).await.unwrap(),
        "expire" => {
            super::super::expire_leases(conn, now, &[ready]).await.unwrap();
        }
        "still queued" => drop(still_queued(conn, &[ready]).await.unwrap()),
        "settle" => settle(conn, delivered(ready, 0, now)).await,
        "retry later" => {
            let retry = Decision::RetryAt(now + TimeDelta::hours(1));
            settle(conn, settlement(ready, retry, Signal::Hold, now)).await;
        }
        "make settled ready" => {
            super::super::make_settled_ready(conn, now, &[dead], Superseded::Skip).await.unwrap();
        }
        "make settled ready by force" => {
            super::super::make_settled_ready(conn, now, &[dead], Superseded::Send).await.unwrap();
        }
        "delete" => assert!(delete_settled(conn, dead).await.unwrap()),
        "retry now" => {
            retry_now(conn, now, ready).await.unwrap();
        }
        "unsettled" => drop(unsettled(conn, &[ready], 8).await.unwrap()),
        "page of all" => page(conn, Filter::default()).await,
        "page of a merchant" => page(conn, Filter { merchant: acme(), ..Filter::default() }).await,
        "dead of a merchant" => {
            let state = Some(State::Dead);
            page(conn, Filter { merchant: acme(), state, ..Filter::default() }).await;
        }
        "ordering key" => {
            let ordering_key = Some("rma:500".to_owned());
            page(conn, Filter { ordering_key, ..Filter::default() }).await;
        }
        "counts of dead" => {
            let filter = Filter { state: Some(State::Dead), ..Filter::default() };
            match_counts(conn, &filter, 5000).await.unwrap();
        }
        "find" => drop(find(conn, dead).await.unwrap()),
        "body" => drop(body(conn, dead).await.ok()),
        "attempts" => drop(attempts(conn, dead, 10).await.unwrap()),
        "first attempts" => drop(first_attempts(conn, &[dead, ready]).await.unwrap()),
        "outdated dead letters" => {
            let letters = [(dead, 0), (ready, 0)].into_iter();
            drop(outdated_dead_letters(conn, letters, Uuid::nil()).await.unwrap());
        }
        "new messages" => {
            let range = (ready, Uuid::max());
            drop(messages_between(conn, "acme", range, 5).await.unwrap());
        }
        "oldest due" => drop(oldest_due(conn, now, Some("acme"), (&[], &[])).await.unwrap()),
        "replay" => {
            next_due_replay(conn, now, Uuid::nil()).await.unwrap();
            advance_replay(conn, now, Uuid::nil()).await.unwrap();
        }
        "report" => {
            let filter = ReportFilter { merchant: acme(), kind: None, from: now - LEASE, to: now };
            drop(report(conn, &filter, Period::Hour).await.unwrap());
        }
        "erase" => {
            let keys = ["rma:500".to_owned()];
            let messages = ErasedMessages { ordering_keys: &keys, before: None };
            let (merchant, erase) = ("acme".parse().unwrap(), domain::erasure::erase);
            super::super::erase(conn, &merchant, messages, |_| true, erase).await.unwrap();
        }
        other => panic!("{other} is not a statement"),
    }
}

/// One delivery in a hundred is dead, the others are ready.
fn fill(now: Timestamp) -> String {
    let start = now.timestamp_millis() - 3 * ROWS;
    format!(
        "INSERT INTO delivery_messages (id, merchant, kind, version, ordering_key, sequence, event, body, \
             created_at) \
         SELECT (lpad(to_hex({start} + n), 12, '0') || '70008000' || lpad(to_hex(n), 12, '0'))::uuid, \
             CASE WHEN n <= {ROWS} THEN 'acme' ELSE 'rival' END, 'rma', 3, 'rma:' || n, 1, 'rma.created', \
             '\\x7b7d', now() FROM generate_series(1, 2 * {ROWS}) AS n; \
         INSERT INTO delivery_ordering_keys SELECT merchant, ordering_key, 1 FROM delivery_messages; \
         INSERT INTO delivery_attempts (delivery, merchant, replay_number, number, started_at, latency_ms, \
             outcome, status, detail, response_body, settled) \
         SELECT id, merchant, 0, number, now(), 3, 'rejected', 500, '', '', \
             CASE WHEN ordering_key LIKE '%00' AND number = 2 THEN 'dead' END \
         FROM delivery_messages, generate_series(1, 2) AS number; \
         INSERT INTO deliveries (id, merchant, kind, ordering_key, sequence, state, next_attempt_at) \
         SELECT id, merchant, kind, ordering_key, sequence, 'ready', now() - interval '1 second' \
         FROM delivery_messages WHERE ordering_key NOT LIKE '%00'"
    )
}

async fn id_of(conn: &mut AsyncPgConnection, ordering_key: &str) -> Uuid {
    let id = format!(
        "SELECT id::text AS text FROM delivery_messages WHERE ordering_key = '{ordering_key}'"
    );
    query_text(conn, &id).await.parse().unwrap()
}

#[tokio::test]
async fn plans_made_while_partitions_were_empty_read_few_rows_of_full_ones() {
    let now = Clock::system().now();
    let (database, pool) = database(now).await;
    let off = "ALTER TABLE deliveries SET (autovacuum_enabled = off); \
               ALTER TABLE delivery_ordering_keys SET (autovacuum_enabled = off)";
    database.execute_raw(off).await;
    let (mut leader, mut pooled) = (pool.dedicated().await.unwrap(), pool.get().await.unwrap());
    for conn in [&mut leader, &mut *pooled] {
        database.execute_raw("VACUUM ANALYZE").await;
        let ids = [super::super::new_id(now), super::super::new_id(now)];
        for name in STATEMENTS.iter().flat_map(|name| [name; WARM_UPS]) {
            let work = async |conn: &mut AsyncPgConnection| run(name, conn, now, ids).await;
            testkit::reads(conn, work).await;
        }
    }
    database.execute_raw(&fill(now)).await;
    let ids = [id_of(&mut pooled, "rma:500").await, id_of(&mut pooled, "rma:501").await];
    let mut expensive = Vec::new();
    for (connection, conn) in [("leader", &mut leader), ("pooled", &mut *pooled)] {
        for name in STATEMENTS {
            let work = async |conn: &mut AsyncPgConnection| run(name, conn, now, ids).await;
            let ((), reads) = testkit::reads(conn, work).await;
            if reads.rows > MAX_ROWS {
                expensive.push(format!("{name} ({connection}): {reads:?}"));
            }
        }
    }
    assert!(expensive.is_empty(), "{expensive:#?}");
}
