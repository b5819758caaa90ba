//! Advances replays step by step.

use api::delivery::{Filter, ReplayState};
use diesel::prelude::*;
use diesel_async::{AsyncConnection, AsyncPgConnection, RunQueryDsl};
use platform::{ErrorKind, Failure, Timestamp, chain, database::DatabaseError};
use uuid::Uuid;

use super::make_ready::{Superseded, make_settled_ready};
use super::replay::{Replay, due};
use crate::store::history::scan::{Scan, oldest_first};
use crate::store::schema::delivery_replays;
use crate::store::unreadable;

/// Numbers of deliveries of one step.
struct Step {
    replayed: usize,
    failed: usize,
}

/// Advances a replay by one second's worth of deliveries, in the caller's transaction. Returns false
/// if another process just did, or if the replay is no longer running. Progress commits with the work,
/// so a replay resumes where it stopped.
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
    let Scan { rows, scanned_to } =
        oldest_first(conn, &filter, replay.last_delivery_id, limit).await?;
    let ids: Vec<_> = rows.iter().map(|row| row.id).collect();
    let step = make_all_ready(conn, now, &ids, Superseded::forced(replay.force)).await?;
    let count = |deliveries: usize| i64::try_from(deliveries).unwrap_or_default();
    let skipped = ids.len() - step.replayed - step.failed;
    let is_finished = count(ids.len()) < limit && scanned_to.is_none();
    let done_to = scanned_to.or(ids.last().copied());
    let state = if is_finished { ReplayState::Finished } else { ReplayState::Running };
    diesel::update(delivery_replays::table.find(id))
        .set((
            delivery_replays::last_delivery_id.eq(done_to.unwrap_or(replay.last_delivery_id)),
            delivery_replays::replayed.eq(delivery_replays::replayed + count(step.replayed)),
            delivery_replays::skipped.eq(delivery_replays::skipped + count(skipped)),
            delivery_replays::failed.eq(delivery_replays::failed + count(step.failed)),
            delivery_replays::state.eq(state.name()),
            delivery_replays::advanced_at.eq(now),
            delivery_replays::finished_at.eq(is_finished.then_some(now)),
        ))
        .execute(conn)
        .await?;
    Ok(true)
}

/// Makes deliveries ready together, or each alone if that fails: one that cannot be replayed must not stop
/// the replay. An unavailable database fails the step, which is tried again.
async fn make_all_ready(
    conn: &mut AsyncPgConnection,
    now: Timestamp,
    ids: &[Uuid],
    superseded: Superseded,
) -> Result<Step, DatabaseError> {
    let together =
        conn.transaction(async |conn| make_settled_ready(conn, now, ids, superseded).await).await;
    match together {
        Ok(ready) => return Ok(Step { replayed: ready.len(), failed: 0 }),
        Err(error) if error.kind() == ErrorKind::Unavailable => return Err(error),
        Err(_) => {}
    }
    let mut step = Step { replayed: 0, failed: 0 };
    for id in ids {
        let alone =
            conn.transaction(async |conn| make_settled_ready(conn, now, &[*id], superseded).await);
        match alone.await {
            Ok(ready) => step.replayed += ready.len(),
            Err(error) if error.kind() == ErrorKind::Unavailable => return Err(error),
            Err(error) => {
                step.failed += 1;
                tracing::error!(
                    delivery.id = %id, error = chain(&error), "delivery {id} cannot be replayed",
                );
            }
        }
    }
    Ok(step)
}
