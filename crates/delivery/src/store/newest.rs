//! Pages of deliveries, newest first.
//!
//! Some conditions have no index, because it would slow every delivery: the event, the kind, and the
//! outcome `delivered` with its statuses. A page with only such conditions looks at a limited number of
//! messages. It may then have few deliveries or none, and its cursor continues the search.

use diesel::prelude::*;
use diesel::sql_query;
use diesel::sql_types::{BigInt, Nullable, Text};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use platform::database::DatabaseError;
use uuid::Uuid;

use super::search::{DeliveryRow, Filter, SELECT, State, WHERE};

/// Limit on the messages that one page looks at without an index.
pub(super) const MAX_SCANNED: i64 = 20_000;

/// Deliveries, newest first.
#[derive(Debug)]
pub(crate) struct Newest {
    pub(crate) rows: Vec<DeliveryRow>,
    /// The oldest message that was looked at, if older ones may match.
    pub(crate) scanned_to: Option<Uuid>,
}

/// Returns up to `limit` deliveries that are older than `after`.
pub(crate) async fn newest_first(
    conn: &mut AsyncPgConnection,
    filter: &Filter,
    after: Option<Uuid>,
    limit: i64,
) -> Result<Newest, DatabaseError> {
    let (from, to) = filter.id_range();
    let to = after.map_or(to, |after| after.min(to));
    let scanned_to =
        if filter.has_index() { None } else { last_scanned(conn, filter, (from, to)).await? };
    let range = (scanned_to.unwrap_or(from), to);
    let statement = format!("{SELECT}{WHERE}{} ORDER BY m.id DESC LIMIT $8", filter.conditions());
    Ok(Newest { rows: filter.bind(statement, range, limit).load(conn).await?, scanned_to })
}

#[derive(QueryableByName)]
struct Last {
    #[diesel(sql_type = diesel::sql_types::Uuid)]
    id: Uuid,
}

/// Returns the last message that a page may look at, if there are that many.
async fn last_scanned(
    conn: &mut AsyncPgConnection,
    filter: &Filter,
    (from, to): (Uuid, Uuid),
) -> Result<Option<Uuid>, DatabaseError> {
    let statement = sql_query(
        "SELECT id FROM delivery_messages WHERE id >= $1 AND id < $2 \
         AND ($3::text IS NULL OR merchant = $3) ORDER BY id DESC OFFSET $4 LIMIT 1",
    )
    .bind::<diesel::sql_types::Uuid, _>(from)
    .bind::<diesel::sql_types::Uuid, _>(to)
    .bind::<Nullable<Text>, _>(filter.merchant.as_deref())
    .bind::<BigInt, _>(MAX_SCANNED - 1);
    let last: Option<Last> = statement.get_result(conn).await.optional()?;
    Ok(last.map(|last| last.id))
}

impl Filter {
    /// Whether an index finds the deliveries: all, or those of a merchant, an ordering key, a state or
    /// a failure.
    fn has_index(&self) -> bool {
        let is_failure = |status: u16| !(200..300).contains(&status);
        let is_selective = self.delivery.is_some()
            || self.ordering_key.is_some()
            || self.text.is_some()
            || matches!(self.state, Some(State::Pending | State::Dead))
            || self.status.is_some_and(is_failure)
            || self.outcome.as_deref().is_some_and(|outcome| outcome != "delivered");
        let is_restricted = self.kind.is_some()
            || self.event.is_some()
            || self.status.is_some()
            || self.outcome.is_some()
            || self.state.is_some();
        is_selective || !is_restricted
    }
}
