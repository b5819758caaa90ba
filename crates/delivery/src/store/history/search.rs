//! Filters of the message history, for operators and replays. See `scan.rs` for the search.

use std::sync::LazyLock;

use chrono::{DateTime, Utc};
use diesel::pg::Pg;
use diesel::prelude::*;
use diesel::query_builder::{BoxedSqlQuery, SqlQuery};
use diesel::sql_query;
use diesel::sql_types::{Array, BigInt, Integer, Nullable, Text};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use platform::{Timestamp, database::DatabaseError};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::store::min_id_at;
use crate::store::ordering_key::has_key;
use crate::store::schema::delivery_messages;

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

impl State {
    fn name(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Delivered => "delivered",
            Self::Dead => "dead",
        }
    }
}

/// Order of deliveries. Ids begin with the time of creation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IdOrder {
    NewestFirst,
    OldestFirst,
}

/// Filter for deliveries. All given fields must match.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Filter {
    /// Id of a single delivery.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) delivery: Option<Uuid>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(min_length = 1, max_length = 63)]
    pub(crate) merchant: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) kind: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) state: Option<State>,
    /// HTTP status code of the last response.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 100, maximum = 999)]
    pub(crate) status: Option<u16>,
    /// Outcome of the last attempt, for example `timed_out`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) outcome: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(min_length = 1, max_length = 1000)]
    pub(crate) ordering_key: Option<String>,
    /// Id of a delivery, an ordering key, or the identifier in one: of a return, order or ASN.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(min_length = 1, max_length = 1000)]
    pub(crate) text: Option<String>,
    /// For example `rma.created`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(min_length = 1, max_length = 1000)]
    pub(crate) event: Option<String>,
    /// Created at this time or later.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) from: Option<DateTime<Utc>>,
    /// Created before this time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) to: Option<DateTime<Utc>>,
}

platform::rows! {
    /// A message with its delivery, if it is unsettled, and its last attempt.
    #[derive(Debug)]
    pub(crate) struct DeliveryRow {
        pub(crate) id: Uuid,
        pub(crate) merchant: String,
        pub(crate) kind: String,
        pub(crate) ordering_key: Option<String>,
        pub(crate) sequence: i64,
        pub(crate) event: String,
        pub(crate) created_at: Timestamp,
        pub(crate) next_attempt_at: Option<Timestamp>,
        pub(crate) attempts: Option<i32>,
        pub(crate) last_number: Option<i32>,
        pub(crate) replay_number: Option<i32>,
        pub(crate) settled: Option<String>,
        pub(crate) outcome: Option<String>,
        pub(crate) status: Option<i32>,
        pub(crate) detail: Option<String>,
        pub(crate) started_at: Option<Timestamp>,
    }
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

/// `LATERAL` with `LIMIT` finds each row by its key, whatever the statistics of the planner are.
const SELECT: &str = include_str!("select_deliveries.sql");

static WHERE: LazyLock<String> = LazyLock::new(|| {
    format!(
        "WHERE ($2::text IS NULL OR m.merchant = $2) \
         AND ($3::text IS NULL OR m.kind = $3) AND ($4::text[] IS NULL OR {}) \
         AND ($5::text[] IS NULL OR m.id = $6 OR {}) \
         AND ($7::text IS NULL OR m.event = $7) AND ($8::integer IS NULL OR last.status = $8) \
         AND ($9::text IS NULL OR last.outcome = $9) AND ($10::text IS NULL OR $10 = CASE \
             WHEN row.state IS NOT NULL THEN 'pending' ELSE last.settled END) ",
        has_key("$4"),
        has_key("$5")
    )
});

/// Services begin ordering keys with the type of the identifier that follows.
const KEY_PREFIXES: [&str; 5] = ["", "rma:", "order:", "asn:", "inbound_asn:"];

impl Filter {
    /// Returns the ids that can match: from the first, up to but without the second.
    pub(super) fn id_range(&self) -> (Uuid, Uuid) {
        let from = self.from.map_or(Uuid::nil(), min_id_at);
        let to = self.to.map_or(Uuid::max(), min_id_at);
        self.delivery.map_or((from, to), |only| (from.max(only), to.min(successor(only))))
    }

    /// Returns the ordering keys that can match: the given one, or those that contain the text as their
    /// identifier. `None` if neither is given.
    pub(super) fn ordering_keys(&self) -> Option<Vec<String>> {
        self.ordering_key.clone().map(|key| vec![key]).or_else(|| self.text_keys())
    }

    fn text_keys(&self) -> Option<Vec<String>> {
        let text = self.text.as_deref()?;
        Some(KEY_PREFIXES.iter().map(|prefix| format!("{prefix}{text}")).collect())
    }

    /// Returns the delivery that the text names.
    pub(super) fn text_id(&self) -> Option<Uuid> {
        self.text.as_deref()?.parse().ok()
    }

    /// Returns a statement about those of the deliveries that match. It is the same for all filters.
    pub(super) fn select<'a>(
        &'a self,
        ids: &'a [Uuid],
        (before, behind): (&str, &str),
    ) -> BoxedSqlQuery<'a, Pg, SqlQuery> {
        sql_query(format!("{before}{SELECT}{}{behind}", *WHERE))
            .into_boxed()
            .bind::<Array<diesel::sql_types::Uuid>, _>(ids)
            .bind::<Nullable<Text>, _>(self.merchant.as_deref())
            .bind::<Nullable<Text>, _>(self.kind.as_deref())
            .bind::<Nullable<Array<Text>>, _>(self.ordering_key.as_deref().map(|key| vec![key]))
            .bind::<Nullable<Array<Text>>, _>(self.text_keys())
            .bind::<Nullable<diesel::sql_types::Uuid>, _>(self.text_id())
            .bind::<Nullable<Text>, _>(self.event.as_deref())
            .bind::<Nullable<Integer>, _>(self.status.map(i32::from))
            .bind::<Nullable<Text>, _>(self.outcome.as_deref())
            .bind::<Nullable<Text>, _>(self.state.map(State::name))
    }
}

/// Returns those of the deliveries that match, at most `limit`, in the order of their ids.
pub(super) async fn matching(
    conn: &mut AsyncPgConnection,
    filter: &Filter,
    ids: &[Uuid],
    order: IdOrder,
    limit: i64,
) -> Result<Vec<DeliveryRow>, DatabaseError> {
    let behind = match order {
        IdOrder::NewestFirst => "ORDER BY m.id DESC LIMIT $11",
        IdOrder::OldestFirst => "ORDER BY m.id LIMIT $11",
    };
    let query = filter.select(ids, ("", behind)).bind::<BigInt, _>(limit);
    Ok(query.load(conn).await?)
}

pub(super) fn successor(id: Uuid) -> Uuid {
    Uuid::from_u128(id.as_u128().saturating_add(1))
}

pub(crate) async fn find(
    conn: &mut AsyncPgConnection,
    id: Uuid,
) -> Result<Option<DeliveryRow>, DatabaseError> {
    let found = matching(conn, &Filter::default(), &[id], IdOrder::NewestFirst, 1).await?;
    Ok(found.into_iter().next())
}

pub(crate) async fn body(conn: &mut AsyncPgConnection, id: Uuid) -> Result<Vec<u8>, DatabaseError> {
    let message = delivery_messages::table.find(id);
    Ok(message.select(delivery_messages::body).first(conn).await?)
}
