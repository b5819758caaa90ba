//! Writing down what came of attempts: one batch, one transaction, opened by the caller.
//!
//! Whoever settles a message first settles it: the row must still stand at the attempt that was
//! made. A second copy of the same message finds nothing to settle and is only logged.

use std::collections::HashSet;
use std::time::Duration;

use diesel::{
    QueryableByName, sql_query,
    sql_types::{Array, Integer, Nullable, Text, Timestamptz},
};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use domain::message_kind::MessageKind;
use platform::{
    Timestamp,
    database::{DatabaseError, prepared},
};
use uuid::Uuid;

use super::Windows;
use crate::outcome::Signal;

/// What is to become of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Delivered,
    Dead,
    Retry(Timestamp),
}

/// One request, as the log keeps it.
#[derive(Clone, Debug)]
pub(crate) struct Tried {
    pub(crate) at: Timestamp,
    pub(crate) latency: Duration,
    pub(crate) outcome: &'static str,
    pub(crate) status: Option<u16>,
    pub(crate) detail: String,
    pub(crate) answer: String,
}

/// An attempt and what follows from it.
#[derive(Clone, Debug)]
pub(crate) struct Settlement {
    pub(crate) id: Uuid,
    pub(crate) merchant: String,
    pub(crate) kind: MessageKind,
    pub(crate) round: i32,
    pub(crate) number: i32,
    pub(crate) verdict: Verdict,
    pub(crate) signal: Signal,
    /// In order; the last one decided.
    pub(crate) tries: Vec<Tried>,
    /// The endpoint is gone; the merchant's version when it said so.
    pub(crate) disabled_at_version: Option<i64>,
}

#[derive(QueryableByName)]
struct Settled {
    #[diesel(sql_type = diesel::sql_types::Uuid)]
    id: Uuid,
    #[diesel(sql_type = Text)]
    merchant: String,
    #[diesel(sql_type = Nullable<Text>)]
    ordering_key: Option<String>,
    #[diesel(sql_type = diesel::sql_types::Bool)]
    over: bool,
}

/// Settles a batch and returns the ids of those that this settled.
pub(crate) async fn settle(
    conn: &mut AsyncPgConnection,
    windows: &mut Windows,
    batch: &[Settlement],
) -> Result<HashSet<Uuid>, DatabaseError> {
    let settled = move_on(conn, batch).await?;
    let ids: HashSet<_> = settled.iter().map(|settled| settled.id).collect();
    let over = settled.iter().filter(|settled| settled.over);
    let ordering_keys: Vec<_> =
        over.filter_map(|s| Some((s.merchant.as_str(), s.ordering_key.as_deref()?))).collect();
    if !ordering_keys.is_empty() {
        release(conn, ordering_keys).await?;
    }
    record(conn, batch, &ids).await?;
    windows.learn(conn, batch).await?;
    Ok(ids)
}

/// The rows are found by their ids, whatever the planner believes of the table; see `pick`. What
/// else must hold is looked up in a table of what was given: `IS TRUE` keeps it from becoming a join.
async fn move_on(
    conn: &mut AsyncPgConnection,
    batch: &[Settlement],
) -> Result<Vec<Settled>, DatabaseError> {
    let retries = batch.iter().map(|settlement| match settlement.verdict {
        Verdict::Retry(at) => Some(at),
        Verdict::Delivered | Verdict::Dead => None,
    });
    Ok(prepared(
        sql_query(
            "WITH given AS ( \
                 SELECT * FROM unnest($1, $2, $3, $4) AS given (id, round, number, due_at) \
             ), over AS ( \
                 DELETE FROM deliveries AS row WHERE row.id = ANY ($1) \
                 AND ((row.id, row.round, row.attempts + 1) IN ( \
                     SELECT id, round, number FROM given WHERE due_at IS NULL \
                 )) IS TRUE \
                 RETURNING row.id, row.merchant, row.ordering_key \
             ), again AS ( \
                 UPDATE deliveries AS row \
                 SET state = 'ready', attempts = given.number, due_at = given.due_at, requeues = 0 \
                 FROM given \
                 WHERE row.id = ANY (ARRAY (SELECT id FROM given WHERE due_at IS NOT NULL)) \
                 AND row.id = given.id AND row.round = given.round \
                 AND row.attempts = given.number - 1 AND given.due_at IS NOT NULL \
                 RETURNING row.id, row.merchant, row.ordering_key \
             ) \
             SELECT *, true AS over FROM over UNION ALL SELECT *, false FROM again",
        )
        .bind::<Array<diesel::sql_types::Uuid>, _>(batch.iter().map(|s| s.id).collect::<Vec<_>>())
        .bind::<Array<Integer>, _>(batch.iter().map(|s| s.round).collect::<Vec<_>>())
        .bind::<Array<Integer>, _>(batch.iter().map(|s| s.number).collect::<Vec<_>>())
        .bind::<Array<Nullable<Timestamptz>>, _>(retries.collect::<Vec<_>>()),
    )
    .load(conn)
    .await?)
}

/// Lets the next message of each ordering_key go. A statement of its own: it must see what was held while
/// the one before waited for a lock.
pub(super) async fn release(
    conn: &mut AsyncPgConnection,
    ordering_keys: Vec<(&str, &str)>,
) -> Result<(), DatabaseError> {
    let (merchants, ordering_keys): (Vec<_>, Vec<_>) = ordering_keys.into_iter().unzip();
    prepared(
        sql_query(
            "WITH next AS ( \
                 SELECT first.id FROM unnest($1, $2) AS given (merchant, ordering_key), LATERAL ( \
                     SELECT id, state FROM deliveries AS row \
                     WHERE row.merchant = given.merchant AND row.ordering_key = given.ordering_key \
                     ORDER BY row.sequence LIMIT 1 \
                 ) AS first \
                 WHERE first.state = 'held' \
             ) \
             UPDATE deliveries SET state = 'ready' \
             WHERE id = ANY (ARRAY (SELECT id FROM next)) AND state = 'held'",
        )
        .bind::<Array<Text>, _>(merchants)
        .bind::<Array<Text>, _>(ordering_keys),
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// A request as it is logged: whose it is, what came of it, and the word that settles it.
type Row<'a> = (&'a Settlement, &'a Tried, Option<&'static str>);

fn rows<'a>(batch: &'a [Settlement], settled: &HashSet<Uuid>) -> Vec<Row<'a>> {
    let mut rows = Vec::with_capacity(batch.len());
    for settlement in batch {
        let word = match settlement.verdict {
            _ if !settled.contains(&settlement.id) => None,
            Verdict::Delivered => Some("delivered"),
            Verdict::Dead => Some("dead"),
            Verdict::Retry(_) => None,
        };
        rows.extend(settlement.tries.iter().map(|tried| (settlement, tried, None)));
        if let Some((.., last)) = rows.last_mut() {
            *last = word;
        }
    }
    rows
}

/// Logs every request and counts it for the reports.
async fn record(
    conn: &mut AsyncPgConnection,
    batch: &[Settlement],
    settled: &HashSet<Uuid>,
) -> Result<(), DatabaseError> {
    let rows = rows(batch, settled);
    prepared(
        sql_query(RECORD)
            .bind::<Array<Text>, _>(each(&rows, |(of, ..)| of.merchant.as_str()))
            .bind::<Array<Text>, _>(each(&rows, |(of, ..)| of.kind.name()))
            .bind::<Array<diesel::sql_types::Uuid>, _>(each(&rows, |(of, ..)| of.id))
            .bind::<Array<Integer>, _>(each(&rows, |(of, ..)| of.round))
            .bind::<Array<Integer>, _>(each(&rows, |(of, ..)| of.number))
            .bind::<Array<Timestamptz>, _>(each(&rows, |(_, tried, _)| tried.at))
            .bind::<Array<Integer>, _>(each(&rows, |(_, tried, _)| millis(tried.latency)))
            .bind::<Array<Text>, _>(each(&rows, |(_, tried, _)| tried.outcome))
            .bind::<Array<Nullable<Integer>>, _>(each(&rows, |(_, tried, _)| {
                tried.status.map(i32::from)
            }))
            .bind::<Array<Text>, _>(each(&rows, |(_, tried, _)| tried.detail.as_str()))
            .bind::<Array<Text>, _>(each(&rows, |(_, tried, _)| tried.answer.as_str()))
            .bind::<Array<Nullable<Text>>, _>(each(&rows, |(.., word)| *word)),
    )
    .execute(conn)
    .await?;
    Ok(())
}

const RECORD: &str = "WITH given AS ( \
     SELECT * FROM unnest($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12) AS given \
     (merchant, kind, delivery, round, number, started_at, latency_ms, outcome, status, \
     detail, answer, settled) \
 ), logged AS ( \
     INSERT INTO delivery_attempts (delivery, round, number, started_at, latency_ms, \
     outcome, status, detail, answer, settled) \
     SELECT delivery, round, number, started_at, latency_ms, outcome, status, detail, \
     answer, settled FROM given \
 ) \
 INSERT INTO delivery_counts AS known (hour, merchant, kind, outcome, status, requests) \
 SELECT date_trunc('hour', started_at, 'UTC'), merchant, kind, outcome, \
 COALESCE(status, 0), count(*) FROM given GROUP BY 1, 2, 3, 4, 5 ORDER BY 1, 2, 3, 4, 5 \
 ON CONFLICT (hour, merchant, kind, outcome, status) \
 DO UPDATE SET requests = known.requests + excluded.requests";

fn each<'a, T>(rows: &[Row<'a>], column: impl Fn(&Row<'a>) -> T) -> Vec<T> {
    rows.iter().map(column).collect()
}

fn millis(span: Duration) -> i32 {
    i32::try_from(span.as_millis()).unwrap_or(i32::MAX)
}
