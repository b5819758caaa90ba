//! Searches the message history for operators and replays.
//!
//! Statements are planned for each filter. Failed attempts have an index of their own, so finding a
//! few dead deliveries among millions of delivered ones is cheap.

use chrono::{DateTime, Utc};
use diesel::pg::Pg;
use diesel::prelude::*;
use diesel::query_builder::{BoxedSqlQuery, SqlQuery};
use diesel::sql_query;
use diesel::sql_types::{Array, BigInt, Integer, Nullable, Text, Timestamptz};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use platform::{Timestamp, database::DatabaseError};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use super::min_id_at;
use super::schema::delivery_messages;

/// State of a delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum State {
    /// Waiting, or being sent.
    Pending,
    Delivered,
    /// Given up, and in the dead-letter queue.
    Dead,
}

/// Filter for deliveries. All given fields must match.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Filter {
    /// Id of a single delivery.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) delivery: Option<Uuid>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) merchant: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) kind: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) state: Option<State>,
    /// HTTP status code of the last response.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) status: Option<u16>,
    /// Outcome of the last attempt, for example `timed_out`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) outcome: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) ordering_key: Option<String>,
    /// Id of a delivery, an ordering key, or the identifier in one: of a return, order or ASN.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) text: Option<String>,
    /// For example `rma.created`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) event: Option<String>,
    /// Created at this time or later.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) from: Option<DateTime<Utc>>,
    /// Created before this time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) to: Option<DateTime<Utc>>,
}

/// A message with its delivery, if it is unsettled, and its last attempt.
#[derive(Debug, QueryableByName)]
pub(crate) struct DeliveryRow {
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
    pub(crate) next_attempt_at: Option<Timestamp>,
    #[diesel(sql_type = Nullable<Integer>)]
    pub(crate) attempts: Option<i32>,
    #[diesel(sql_type = Nullable<Integer>)]
    pub(crate) last_number: Option<i32>,
    #[diesel(sql_type = Nullable<Integer>)]
    pub(crate) replay_number: Option<i32>,
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

impl DeliveryRow {
    pub(crate) fn state(&self) -> State {
        match (self.attempts, self.settled.as_deref()) {
            (Some(_), _) | (None, None) => State::Pending,
            (None, Some("delivered")) => State::Delivered,
            (None, Some(_)) => State::Dead,
        }
    }

    /// Whether the delivery was replayed and has not been attempted since.
    pub(crate) fn is_replayed(&self) -> bool {
        self.attempts == Some(0) && self.replay_number.is_some_and(|number| number > 0)
    }
}

pub(super) const SELECT: &str = "SELECT m.id, m.merchant, m.kind, m.ordering_key, m.sequence, m.event, \
     m.created_at, CASE row.state WHEN 'ready' THEN row.next_attempt_at END AS next_attempt_at, \
     row.attempts, last.number AS last_number, row.replay_number, last.settled, last.outcome, last.status, last.detail, last.started_at \
     FROM delivery_messages AS m LEFT JOIN deliveries AS row ON row.id = m.id \
     LEFT JOIN LATERAL ( \
         SELECT * FROM delivery_attempts WHERE delivery = m.id \
         ORDER BY replay_number DESC, settled IS NOT NULL DESC, started_at DESC LIMIT 1 \
     ) AS last ON true ";

pub(super) const WHERE: &str = "WHERE m.id >= $1 AND m.id < $2 \
     AND ($3::text IS NULL OR m.merchant = $3) AND ($4::text IS NULL OR m.kind = $4) \
     AND ($5::text IS NULL OR m.ordering_key = $5) AND ($6::integer IS NULL OR last.status = $6) \
     AND ($7::text IS NULL OR last.outcome = $7) \
     AND ($9::text[] IS NULL OR m.ordering_key = ANY ($9) OR m.id = $10) \
     AND ($11::text IS NULL OR m.event = $11) ";

/// Services begin ordering keys with the type of the identifier that follows.
const KEY_PREFIXES: [&str; 5] = ["", "rma:", "order:", "asn:", "inbound_asn:"];

impl Filter {
    /// Returns the SQL conditions on state, status and outcome, in a form that can use an index.
    pub(super) fn conditions(&self) -> String {
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
        if self.outcome.as_deref().is_some_and(|outcome| outcome != "delivered") {
            text.push_str(
                "AND m.id IN (SELECT delivery FROM delivery_attempts WHERE outcome <> 'delivered' \
                 AND outcome = $7 AND delivery >= $1 AND delivery < $2) ",
            );
        }
        text
    }

    /// Returns the ids that can match: from the first, up to but without the second.
    pub(super) fn id_range(&self) -> (Uuid, Uuid) {
        let from = self.from.map_or(Uuid::nil(), min_id_at);
        let to = self.to.map_or(Uuid::max(), min_id_at);
        self.delivery.map_or((from, to), |only| (from.max(only), to.min(successor(only))))
    }

    /// Returns the ordering keys that contain the text as their identifier.
    fn text_keys(&self) -> Option<Vec<String>> {
        let text = self.text.as_deref()?;
        Some(KEY_PREFIXES.iter().map(|prefix| format!("{prefix}{text}")).collect())
    }

    pub(super) fn bind(
        &self,
        statement: String,
        (from, to): (Uuid, Uuid),
        limit: i64,
    ) -> BoxedSqlQuery<'_, Pg, SqlQuery> {
        sql_query(statement)
            .into_boxed()
            .bind::<diesel::sql_types::Uuid, _>(from)
            .bind::<diesel::sql_types::Uuid, _>(to)
            .bind::<Nullable<Text>, _>(self.merchant.as_deref())
            .bind::<Nullable<Text>, _>(self.kind.as_deref())
            .bind::<Nullable<Text>, _>(self.ordering_key.as_deref())
            .bind::<Nullable<Integer>, _>(self.status.map(i32::from))
            .bind::<Nullable<Text>, _>(self.outcome.as_deref())
            .bind::<BigInt, _>(limit)
            .bind::<Nullable<Array<Text>>, _>(self.text_keys())
            .bind::<Nullable<diesel::sql_types::Uuid>, _>(
                self.text.as_deref().and_then(|text| text.parse::<Uuid>().ok()),
            )
            .bind::<Nullable<Text>, _>(self.event.as_deref())
    }
}

/// Returns a page of deliveries, oldest first, after `after`.
pub(crate) async fn oldest_first(
    conn: &mut AsyncPgConnection,
    filter: &Filter,
    after: Uuid,
    limit: i64,
) -> Result<Vec<DeliveryRow>, DatabaseError> {
    let (from, to) = filter.id_range();
    let from = from.max(successor(after));
    let statement = format!("{SELECT}{WHERE}{} ORDER BY m.id LIMIT $8", filter.conditions());
    Ok(filter.bind(statement, (from, to), limit).load(conn).await?)
}

fn successor(id: Uuid) -> Uuid {
    Uuid::from_u128(id.as_u128().saturating_add(1))
}

pub(crate) async fn find(
    conn: &mut AsyncPgConnection,
    id: Uuid,
) -> Result<Option<DeliveryRow>, DatabaseError> {
    let statement = sql_query(format!("{SELECT}WHERE m.id = $1"));
    Ok(statement.bind::<diesel::sql_types::Uuid, _>(id).get_result(conn).await.optional()?)
}

pub(crate) async fn body(conn: &mut AsyncPgConnection, id: Uuid) -> Result<Vec<u8>, DatabaseError> {
    let message = delivery_messages::table.find(id);
    Ok(message.select(delivery_messages::body).first(conn).await?)
}
