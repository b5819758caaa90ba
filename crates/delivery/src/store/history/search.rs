//! Filters of the message history, for operators and replays. See `scan.rs` for the search.

use std::sync::LazyLock;

use api::delivery::{Filter, State};
use diesel::prelude::*;
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use platform::{
    Timestamp,
    database::{DatabaseError, Parameters, SqlStatement, sql},
};
use uuid::Uuid;

use crate::store::min_id_at;
use crate::store::ordering_key::has_key;
use crate::store::schema::delivery_messages;

/// Order of deliveries. Ids begin with the time of creation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IdOrder {
    NewestFirst,
    OldestFirst,
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

/// A query in SQL for the state of a delivery, whose id is an expression: the name of a [`State`], or NULL if there is
/// no id or the message is not kept any more. See [`DeliveryRow::state`].
pub fn state_of(id: &str) -> String {
    format!(
        "CASE WHEN EXISTS (SELECT FROM deliveries WHERE deliveries.id = {id} OFFSET 0) \
         THEN 'pending' ELSE ( \
             SELECT settled FROM delivery_attempts WHERE delivery = {id} \
             ORDER BY replay_number DESC, settled IS NOT NULL DESC, started_at DESC LIMIT 1 \
         ) END"
    )
}

/// Services begin ordering keys with the type of the identifier that follows.
const KEY_PREFIXES: [&str; 5] = ["", "rma:", "order:", "asn:", "inbound_asn:"];

/// Returns the ids that can match: from the first, up to but without the second.
pub(super) fn id_range(filter: &Filter) -> (Uuid, Uuid) {
    let from = filter.from.map_or(Uuid::nil(), min_id_at);
    let to = filter.to.map_or(Uuid::max(), min_id_at);
    filter.delivery.map_or((from, to), |only| (from.max(only), to.min(successor(only))))
}

/// Returns the ordering keys that can match: the given one, or those that contain the text as their
/// identifier. `None` if neither is given.
pub(super) fn ordering_keys(filter: &Filter) -> Option<Vec<String>> {
    filter.ordering_key.clone().map(|key| vec![key]).or_else(|| text_keys(filter))
}

fn text_keys(filter: &Filter) -> Option<Vec<String>> {
    let text = filter.text.as_deref()?;
    Some(KEY_PREFIXES.iter().map(|prefix| format!("{prefix}{text}")).collect())
}

/// Returns the delivery that the text names.
pub(super) fn text_id(filter: &Filter) -> Option<Uuid> {
    filter.text.as_deref()?.parse().ok()
}

/// Returns a statement about those of the deliveries that match. It is the same for all filters.
pub(super) fn select<'a>(
    filter: &'a Filter,
    ids: &'a [Uuid],
    (before, behind): (&str, &str),
) -> SqlStatement<'a> {
    sql(
        format!("{before}{SELECT}{}{behind}", *WHERE),
        (
            ids,
            filter.merchant.as_deref(),
            filter.kind.as_deref(),
            filter.ordering_key.as_deref().map(|key| vec![key]),
            text_keys(filter),
            text_id(filter),
            filter.event.as_deref(),
            filter.status.map(i32::from),
            filter.outcome.as_deref(),
            filter.state.map(State::name),
        ),
    )
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
    let query = limit.bind_to(select(filter, ids, ("", behind)));
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
