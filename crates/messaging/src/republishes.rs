//! Requests to publish events again, and their progress. All times are the database's.
//!
//! See docs/decisions/publishing-events-again.md.

use diesel::prelude::*;
use diesel::sql_types::Timestamptz;
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use platform::{
    Timestamp,
    database::{DatabaseError, prepared, sql},
};
use uuid::Uuid;

use crate::schema::event_republishes;

/// Matching events are counted up to this number.
const MAX_COUNTED: i64 = 1_000_000;
const RUNNING: &str = "running";
const STOPPED: &str = "stopped";
const FINISHED: &str = "finished";

/// The events to publish again.
#[derive(Debug, Clone)]
pub(crate) struct Selection {
    /// First published at this time or later, and before `until`.
    pub(crate) since: Timestamp,
    pub(crate) until: Timestamp,
    /// Empty for all types.
    pub(crate) types: Vec<String>,
}

/// A request and its progress.
#[derive(Debug, Queryable, Selectable, Insertable)]
#[diesel(table_name = event_republishes)]
pub(crate) struct Republish {
    pub(crate) id: Uuid,
    pub(crate) requested_by: String,
    pub(crate) since: Timestamp,
    pub(crate) until: Timestamp,
    pub(crate) types: Vec<String>,
    pub(crate) state: String,
    pub(crate) total: i64,
    pub(crate) done: i64,
    last_published_at: Timestamp,
    last_sequence: i64,
    pub(crate) created_at: Timestamp,
    pub(crate) finished_at: Option<Timestamp>,
}

impl Republish {
    /// A request that has published nothing yet.
    pub(crate) fn new(
        requested_by: &str,
        selection: Selection,
        total: i64,
        created_at: Timestamp,
    ) -> Self {
        let Selection { since, until, types } = selection;
        Self {
            id: Uuid::now_v7(),
            requested_by: requested_by.to_owned(),
            since,
            until,
            types,
            state: RUNNING.to_owned(),
            total,
            done: 0,
            // Sequence numbers start at one.
            last_published_at: since,
            last_sequence: 0,
            created_at,
            finished_at: None,
        }
    }

    /// Events up to this position are done.
    pub(crate) fn position(&self) -> (Timestamp, i64) {
        (self.last_published_at, self.last_sequence)
    }

    /// Whether events of a type are published again.
    pub(crate) fn selects(&self, event_type: &str) -> bool {
        self.types.is_empty() || self.types.iter().any(|selected| selected == event_type)
    }
}

/// The time of the database, which is that of published events.
pub(crate) async fn database_time(
    conn: &mut AsyncPgConnection,
) -> Result<Timestamp, DatabaseError> {
    let now = diesel::select(diesel::dsl::sql::<Timestamptz>("clock_timestamp()"));
    Ok(now.get_result(conn).await?)
}

platform::rows! { struct Count { n: i64 } }

const COUNT: &str = include_str!("count_published_events.sql");

/// Number of kept events that a request would publish, up to [`MAX_COUNTED`].
pub(crate) async fn count(
    conn: &mut AsyncPgConnection,
    selection: &Selection,
) -> Result<i64, DatabaseError> {
    let query = sql(COUNT, (selection.since, selection.until, &selection.types, MAX_COUNTED));
    let Count { n } = prepared(query).get_result(conn).await?;
    Ok(n)
}

/// Stores a request. Returns false if another one is running.
pub(crate) async fn insert(
    conn: &mut AsyncPgConnection,
    republish: &Republish,
) -> Result<bool, DatabaseError> {
    let insert = diesel::insert_into(event_republishes::table).values(republish);
    Ok(insert.on_conflict_do_nothing().execute(conn).await? > 0)
}

/// The request that is running.
pub(crate) async fn running(
    conn: &mut AsyncPgConnection,
) -> Result<Option<Republish>, DatabaseError> {
    let running = event_republishes::table
        .filter(event_republishes::state.eq(RUNNING))
        .select(Republish::as_select());
    Ok(running.first(conn).await.optional()?)
}

/// Requests that were started before another one, newest first.
pub(crate) async fn newest(
    conn: &mut AsyncPgConnection,
    before: Option<Uuid>,
    limit: i64,
) -> Result<Vec<Republish>, DatabaseError> {
    let newest = event_republishes::table
        .filter(event_republishes::id.lt(before.unwrap_or(Uuid::max())))
        .order(event_republishes::id.desc())
        .select(Republish::as_select())
        .limit(limit);
    Ok(newest.load(conn).await?)
}

/// Records that the broker has the events up to a position.
pub(crate) async fn advance(
    conn: &mut AsyncPgConnection,
    id: Uuid,
    (published_at, sequence): (Timestamp, i64),
    published: usize,
) -> Result<(), DatabaseError> {
    let published = i64::try_from(published).unwrap_or_default();
    diesel::update(event_republishes::table.find(id))
        .set((
            event_republishes::last_published_at.eq(published_at),
            event_republishes::last_sequence.eq(sequence),
            event_republishes::done.eq(event_republishes::done + published),
        ))
        .execute(conn)
        .await?;
    Ok(())
}

/// Finishes a request, unless it was stopped.
pub(crate) async fn finish(conn: &mut AsyncPgConnection, id: Uuid) -> Result<(), DatabaseError> {
    let running = event_republishes::table.find(id).filter(event_republishes::state.eq(RUNNING));
    diesel::update(running)
        .set((
            event_republishes::state.eq(FINISHED),
            event_republishes::finished_at.eq(diesel::dsl::now),
        ))
        .execute(conn)
        .await?;
    Ok(())
}

/// Stops the running request and returns it. A batch that is being published is still published.
pub(crate) async fn stop(conn: &mut AsyncPgConnection) -> Result<Option<Republish>, DatabaseError> {
    let running = event_republishes::table.filter(event_republishes::state.eq(RUNNING));
    let stopped = diesel::update(running)
        .set((
            event_republishes::state.eq(STOPPED),
            event_republishes::finished_at.eq(diesel::dsl::now),
        ))
        .returning(Republish::as_returning());
    Ok(stopped.get_result(conn).await.optional()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_without_types_selects_all_events() {
        let selects = |types: &[&str], event_type: &str| {
            let types = types.iter().map(|it| (*it).to_owned()).collect();
            let at = Timestamp::UNIX_EPOCH;
            let selection = Selection { since: at, until: at, types };
            Republish::new("operator", selection, 0, at).selects(event_type)
        };
        assert!(selects(&[], "order.stored.v1"));
        assert!(selects(&["delivery.dead.v1"], "delivery.dead.v1"));
        assert!(!selects(&["delivery.dead.v1"], "order.stored.v1"));
    }
}
