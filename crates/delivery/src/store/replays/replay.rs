//! Replays by filter and their progress.

use api::delivery::ReplayState;
use chrono::TimeDelta;
use diesel::dsl::sql;
use diesel::prelude::*;
use diesel::sql_types::Text;
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use platform::{Timestamp, database::DatabaseError};
use serde_json::Value;
use uuid::Uuid;

use crate::store::schema::delivery_replays;

/// Returns the states that can change to a state.
fn predecessors(state: ReplayState) -> &'static [ReplayState] {
    use ReplayState::{Finished, Paused, Running, Stopped};
    match state {
        Running => &[Paused],
        Paused | Finished => &[Running],
        Stopped => &[Running, Paused],
    }
}

/// A replay, the person or client that requested it, and its progress.
#[derive(Debug, Queryable, Selectable, Insertable)]
#[diesel(table_name = delivery_replays)]
pub(crate) struct Replay {
    pub(crate) id: Uuid,
    pub(crate) requested_by: String,
    pub(crate) filter: Value,
    pub(crate) force: bool,
    pub(crate) per_second: i32,
    pub(crate) state: String,
    pub(crate) matched: i64,
    pub(crate) last_delivery_id: Uuid,
    pub(crate) replayed: i64,
    pub(crate) skipped: i64,
    pub(crate) failed: i64,
    pub(crate) created_at: Timestamp,
    pub(crate) advanced_at: Timestamp,
    pub(crate) finished_at: Option<Timestamp>,
    /// The person or client that last paused, resumed or stopped the replay.
    pub(crate) changed_by: Option<String>,
}

pub(crate) async fn insert_replay(
    conn: &mut AsyncPgConnection,
    replay: &Replay,
) -> Result<(), DatabaseError> {
    diesel::insert_into(delivery_replays::table).values(replay).execute(conn).await?;
    Ok(())
}

pub(crate) async fn find_replay(
    conn: &mut AsyncPgConnection,
    id: Uuid,
) -> Result<Option<Replay>, DatabaseError> {
    let replay = delivery_replays::table.find(id).select(Replay::as_select());
    Ok(replay.first(conn).await.optional()?)
}

/// Returns a page of replays, newest first, after `after`: all, or those of one merchant or state.
pub(crate) async fn newest_replays(
    conn: &mut AsyncPgConnection,
    merchant: Option<&str>,
    state: Option<ReplayState>,
    after: Option<Uuid>,
    limit: i64,
) -> Result<Vec<Replay>, DatabaseError> {
    let before = after.unwrap_or(Uuid::max());
    let mut replays = delivery_replays::table
        .filter(delivery_replays::id.lt(before))
        .order(delivery_replays::id.desc())
        .limit(limit)
        .select(Replay::as_select())
        .into_boxed();
    if let Some(merchant) = merchant {
        // The text of the expression is that of an index.
        let own = sql::<Text>("delivery_replays.filter ->> 'merchant'").eq(merchant);
        replays = replays.filter(own);
    }
    if let Some(state) = state {
        replays = replays.filter(delivery_replays::state.eq(state.name()));
    }
    Ok(replays.load(conn).await?)
}

/// Changes the state of a replay for a person or client, and returns the replay. Returns `None` if its state
/// does not allow the change. A process that advances the replay holds its row, so the change waits for that.
pub(crate) async fn change_replay_state(
    conn: &mut AsyncPgConnection,
    now: Timestamp,
    id: Uuid,
    (state, changed_by): (ReplayState, &str),
) -> Result<Option<Replay>, DatabaseError> {
    let predecessors: Vec<_> = predecessors(state).iter().map(|state| state.name()).collect();
    let replay =
        delivery_replays::table.find(id).filter(delivery_replays::state.eq_any(predecessors));
    let finished_at = (state == ReplayState::Stopped).then_some(now);
    let change = diesel::update(replay)
        .set((
            delivery_replays::state.eq(state.name()),
            delivery_replays::finished_at.eq(finished_at),
            delivery_replays::changed_by.eq(changed_by),
        ))
        .returning(Replay::as_returning());
    Ok(change.get_result(conn).await.optional()?)
}

/// Selects running replays that did not advance within the last second. The rate of a replay is per
/// second, however many processes advance it.
#[diesel::dsl::auto_type(no_type_alias)]
pub(super) fn due(now: Timestamp) -> _ {
    let before: Timestamp = now - TimeDelta::seconds(1);
    let running: &'static str = "running";
    delivery_replays::state.eq(running).and(delivery_replays::advanced_at.le(before))
}

/// Returns the first replay after `after` that is due.
pub(crate) async fn next_due_replay(
    conn: &mut AsyncPgConnection,
    now: Timestamp,
    after: Uuid,
) -> Result<Option<Uuid>, DatabaseError> {
    let next = delivery_replays::table
        .filter(due(now).and(delivery_replays::id.gt(after)))
        .order(delivery_replays::id)
        .select(delivery_replays::id);
    Ok(next.first(conn).await.optional()?)
}
