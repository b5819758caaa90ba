//! A replay as the API shows it.

use api::delivery::ReplayView;
use platform::database::DatabaseError;

use crate::store::{self, Replay};

pub(super) fn show(replay: Replay) -> Result<ReplayView, DatabaseError> {
    Ok(ReplayView {
        id: replay.id,
        requested_by: replay.requested_by,
        state: replay.state.parse().map_err(store::unreadable)?,
        filter: serde_json::from_value(replay.filter).map_err(store::unreadable)?,
        force: replay.force,
        per_second: replay.per_second,
        matched: replay.matched,
        replayed: replay.replayed,
        skipped: replay.skipped,
        failed: replay.failed,
        created_at: replay.created_at,
        finished_at: replay.finished_at,
        changed_by: replay.changed_by,
    })
}
