//! Looking things up in the log: for operators, and for replays.
//!
//! These statements are planned anew each time, for the filter at hand. What failed has an index
//! of its own, so looking for the few dead among millions of delivered ones is cheap.

use chrono::{DateTime, Utc};
use diesel::sql_types::{BigInt, Binary, Integer, Nullable, Text, Timestamptz};
use diesel::{OptionalExtension, QueryableByName};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use platform::{Timestamp, database::DatabaseError};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use super::oldest_id;

/// Where a message stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum State {
    /// It waits, or is being tried.
    Pending,
    Delivered,
    /// It lies in the dead-letter queue.
    Dead,
}

/// Which messages; all that is given must fit.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Filter {
    /// Only this one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) delivery: Option<Uuid>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) merchant: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) kind: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) state: Option<State>,
    /// The status code of the last answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) status: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) ordering_key: Option<String>,
    /// Created at this time or later.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) from: Option<DateTime<Utc>>,
    /// Created before this time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) to: Option<DateTime<Utc>>,
}

/// A message, where it stands and its last request.
#[derive(Debug, QueryableByName)]
pub(crate) struct Found {
    #[diesel(sql_type = diesel::sql_types::Uuid)]
    pub(crate) id: Uuid,
    #[diesel(sql_type = Text)]
    pub(crate) merchant: String,
    #[diesel(sql_type = Text)]
    pub(crate) kind: String,
    #[diesel(sql_type = Nullable<Text>)]
    pub(crate) ordering_key: Option<String>,
    #[diesel(sql_type = BigInt)]
    pub(crate) sequence: i64,
    #[diesel(sql_type = Text)]
    pub(crate) event: String,
    #[diesel(sql_type = Timestamptz)]
    pub(crate) created_at: Timestamp,
    #[diesel(sql_type = Nullable<Timestamptz>)]
    pub(crate) due_at: Option<Timestamp>,
    #[diesel(sql_type = Nullable<Integer>)]
    pub(crate) attempts: Option<i32>,
    #[diesel(sql_type = Nullable<Text>)]
    pub(crate) settled: Option<String>,
    #[diesel(sql_type = Nullable<Text>)]
    pub(crate) outcome: Option<String>,
    #[diesel(sql_type = Nullable<Integer>)]
    pub(crate) status: Option<i32>,
    #[diesel(sql_type = Nullable<Text>)]
    pub(crate) detail: Option<String>,
    #[diesel(sql_type = Nullable<Timestamptz>)]
    pub(crate) started_at: Option<Timestamp>,
}

impl Found {
    pub(crate) fn state(&self) -> State {
        match (self.attempts, self.settled.as_deref()) {
            (Some(_), _) | (None, None) => State::Pending,
            (None, Some("delivered")) => State::Delivered,
            (None, Some(_)) => State::Dead,
        }
    }
}

const SELECT: &str = "SELECT m.id, m.merchant, m.kind, m.ordering_key, m.sequence, m.event, m.created_at, \
     CASE row.state WHEN 'ready' THEN row.due_at END AS due_at, row.attempts, last.settled, \
     last.outcome, last.status, last.detail, last.started_at \
     FROM delivery_messages AS m LEFT JOIN deliveries AS row ON row.id = m.id \
     LEFT JOIN LATERAL ( \
         SELECT * FROM delivery_attempts WHERE delivery = m.id \
         ORDER BY round DESC, settled IS NOT NULL DESC, started_at DESC LIMIT 1 \
     ) AS last ON true ";

const FITS: &str = "WHERE m.id >= $1 AND m.id < $2 \
     AND ($3::text IS NULL OR m.merchant = $3) AND ($4::text IS NULL OR m.kind = $4) \
     AND ($5::text IS NULL OR m.ordering_key = $5) AND ($6::integer IS NULL OR last.status = $6) ";

impl Filter {
    /// What the last request and the ledger must say, beyond what every filter asks.
    fn conditions(&self) -> String {
        let mut text = String::new();
        text.push_str(match self.state {
            None => "",
            Some(State::Pending) => "AND m.id IN (SELECT id FROM deliveries) ",
            Some(State::Delivered) => "AND row.id IS NULL AND last.settled = 'delivered' ",
            Some(State::Dead) => {
                "AND row.id IS NULL AND last.settled = 'dead' AND m.id IN ( \
                 SELECT delivery FROM delivery_attempts WHERE outcome <> 'delivered' \
                 AND settled = 'dead' AND delivery >= $1 AND delivery < $2) "
            }
        });
        if self.status.is_some_and(|status| !(200..300).contains(&status)) {
            text.push_str(
                "AND m.id IN (SELECT delivery FROM delivery_attempts WHERE outcome <> 'delivered' \
                 AND status = $6 AND delivery >= $1 AND delivery < $2) ",
            );
        }
        text
    }

    fn range(&self) -> (Uuid, Uuid) {
        let from = self.from.map_or(Uuid::nil(), oldest_id);
        let to = self.to.map_or(Uuid::max(), oldest_id);
        self.delivery.map_or((from, to), |only| (from.max(only), to.min(following(only))))
    }

    async fn load(
        &self,
        conn: &mut AsyncPgConnection,
        (from, to): (Uuid, Uuid),
        ending: &str,
        limit: i64,
    ) -> Result<Vec<Found>, DatabaseError> {
        let text = format!("{SELECT}{FITS}{}{ending}", self.conditions());
        Ok(diesel::sql_query(text)
            .bind::<diesel::sql_types::Uuid, _>(from)
            .bind::<diesel::sql_types::Uuid, _>(to)
            .bind::<Nullable<Text>, _>(self.merchant.as_deref())
            .bind::<Nullable<Text>, _>(self.kind.as_deref())
            .bind::<Nullable<Text>, _>(self.ordering_key.as_deref())
            .bind::<Nullable<Integer>, _>(self.status.map(i32::from))
            .bind::<BigInt, _>(limit)
            .load(conn)
            .await?)
    }
}

/// A page of messages, the newest first, after `after`.
pub(crate) async fn newest_first(
    conn: &mut AsyncPgConnection,
    filter: &Filter,
    after: Option<Uuid>,
    limit: i64,
) -> Result<Vec<Found>, DatabaseError> {
    let (from, to) = filter.range();
    let to = after.map_or(to, |after| after.min(to));
    filter.load(conn, (from, to), "ORDER BY m.id DESC LIMIT $7", limit).await
}

/// A batch of messages, the oldest first, after `after`.
pub(crate) async fn oldest_first(
    conn: &mut AsyncPgConnection,
    filter: &Filter,
    after: Uuid,
    limit: i64,
) -> Result<Vec<Found>, DatabaseError> {
    let (from, to) = filter.range();
    let next = following(after);
    filter.load(conn, (from.max(next), to), "ORDER BY m.id LIMIT $7", limit).await
}

fn following(id: Uuid) -> Uuid {
    Uuid::from_u128(id.as_u128().saturating_add(1))
}

#[derive(QueryableByName)]
struct Counted {
    #[diesel(sql_type = BigInt)]
    n: i64,
}

/// How many messages a filter finds, counted up to `most`.
pub(crate) async fn count(
    conn: &mut AsyncPgConnection,
    filter: &Filter,
    most: i64,
) -> Result<i64, DatabaseError> {
    let (from, to) = filter.range();
    let conditions = filter.conditions();
    let text = format!("SELECT count(*) AS n FROM ({SELECT}{FITS}{conditions} LIMIT $7) AS found");
    let counted: Counted = diesel::sql_query(text)
        .bind::<diesel::sql_types::Uuid, _>(from)
        .bind::<diesel::sql_types::Uuid, _>(to)
        .bind::<Nullable<Text>, _>(filter.merchant.as_deref())
        .bind::<Nullable<Text>, _>(filter.kind.as_deref())
        .bind::<Nullable<Text>, _>(filter.ordering_key.as_deref())
        .bind::<Nullable<Integer>, _>(filter.status.map(i32::from))
        .bind::<BigInt, _>(most)
        .get_result(conn)
        .await?;
    Ok(counted.n)
}

pub(crate) async fn find(
    conn: &mut AsyncPgConnection,
    id: Uuid,
) -> Result<Option<Found>, DatabaseError> {
    let text = format!("{SELECT}WHERE m.id = $1");
    let query = diesel::sql_query(text).bind::<diesel::sql_types::Uuid, _>(id);
    Ok(query.get_result(conn).await.optional()?)
}

#[derive(QueryableByName)]
struct Body {
    #[diesel(sql_type = Binary)]
    body: Vec<u8>,
}

pub(crate) async fn body(conn: &mut AsyncPgConnection, id: Uuid) -> Result<Vec<u8>, DatabaseError> {
    let query = diesel::sql_query("SELECT body FROM delivery_messages WHERE id = $1");
    let found: Body = query.bind::<diesel::sql_types::Uuid, _>(id).get_result(conn).await?;
    Ok(found.body)
}

/// A request as it was logged.
#[derive(QueryableByName)]
pub(crate) struct Logged {
    #[diesel(sql_type = Integer)]
    pub(crate) round: i32,
    #[diesel(sql_type = Integer)]
    pub(crate) number: i32,
    #[diesel(sql_type = Timestamptz)]
    pub(crate) started_at: Timestamp,
    #[diesel(sql_type = Integer)]
    pub(crate) latency_ms: i32,
    #[diesel(sql_type = Text)]
    pub(crate) outcome: String,
    #[diesel(sql_type = Nullable<Integer>)]
    pub(crate) status: Option<i32>,
    #[diesel(sql_type = Text)]
    pub(crate) detail: String,
    #[diesel(sql_type = Text)]
    pub(crate) answer: String,
}

pub(crate) async fn attempts(
    conn: &mut AsyncPgConnection,
    id: Uuid,
) -> Result<Vec<Logged>, DatabaseError> {
    let query = diesel::sql_query(
        "SELECT round, number, started_at, latency_ms, outcome, status, detail, answer \
         FROM delivery_attempts WHERE delivery = $1 ORDER BY started_at",
    );
    Ok(query.bind::<diesel::sql_types::Uuid, _>(id).load(conn).await?)
}
