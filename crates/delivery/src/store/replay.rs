//! Replays by filter and their progress.

use chrono::TimeDelta;
use diesel::prelude::*;
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use platform::{Timestamp, database::DatabaseError};
use serde_json::{Value, json};
use uuid::Uuid;

use super::requeue::{Superseded, requeue};
use super::schema::delivery_replays;
use super::search::{Filter, oldest_first};
use super::unreadable;

/// A replay, the client that requested it, and its progress.
#[derive(Debug, Queryable, Selectable, Insertable)]
#[diesel(table_name = delivery_replays)]
pub(crate) struct Replay {
    pub(crate) id: Uuid,
    pub(crate) requested_by: String,
    pub(crate) filter: Value,
    pub(crate) force: bool,
    pub(crate) per_second: i32,
    pub(crate) last_delivery_id: Uuid,
    pub(crate) replayed: i64,
    pub(crate) skipped: i64,
    pub(crate) created_at: Timestamp,
    pub(crate) advanced_at: Timestamp,
    pub(crate) finished_at: Option<Timestamp>,
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

/// Returns a page of replays, newest first, after `after`: all, or those of one merchant.
pub(crate) async fn newest_replays(
    conn: &mut AsyncPgConnection,
    merchant: Option<&str>,
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
        let own = delivery_replays::filter.contains(json!({ "merchant": merchant }));
        replays = replays.filter(own);
    }
    Ok(replays.load(conn).await?)
}

/// Selects unfinished replays that did not advance within the last second. The rate of a replay is
/// per second, however many processes advance it.
#[diesel::dsl::auto_type(no_type_alias)]
fn due(now: Timestamp) -> _ {
    let before: Timestamp = now - TimeDelta::seconds(1);
    delivery_replays::finished_at.is_null().and(delivery_replays::advanced_at.le(before))
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

/// Advances a replay by one second's worth of deliveries, in the caller's transaction. Returns false
/// if another process just did. Progress commits with the work, so a replay resumes where it stopped.
pub(crate) async fn advance_replay(
    conn: &mut AsyncPgConnection,
    now: Timestamp,
    id: Uuid,
) -> Result<bool, DatabaseError> {
    let unlocked = delivery_replays::table
        .filter(due(now).and(delivery_replays::id.eq(id)))
        .select(Replay::as_select())
        .for_update()
        .skip_locked();
    let Some(replay) = unlocked.first(conn).await.optional()? else { return Ok(false) };
    let filter: Filter = serde_json::from_value(replay.filter).map_err(unreadable)?;
    let limit = i64::from(replay.per_second);
    let found = oldest_first(conn, &filter, replay.last_delivery_id, limit).await?;
    let ids: Vec<_> = found.iter().map(|found| found.id).collect();
    let requeued = requeue(conn, now, &ids, Superseded::forced(replay.force)).await?;
    let count = |ids: &[Uuid]| i64::try_from(ids.len()).unwrap_or_default();
    let (total, replayed) = (count(&ids), count(&requeued));
    diesel::update(delivery_replays::table.find(id))
        .set((
            delivery_replays::last_delivery_id
                .eq(ids.last().copied().unwrap_or(replay.last_delivery_id)),
            delivery_replays::replayed.eq(delivery_replays::replayed + replayed),
            delivery_replays::skipped.eq(delivery_replays::skipped + (total - replayed)),
            delivery_replays::advanced_at.eq(now),
            delivery_replays::finished_at.eq((total < limit).then_some(now)),
        ))
        .execute(conn)
        .await?;
    Ok(true)
}
