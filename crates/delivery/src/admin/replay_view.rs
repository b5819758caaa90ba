//! A replay as the API shows it.

use chrono::{DateTime, Utc};
use platform::Problem;
use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::store::{self, Filter, Replay, ReplayState};

/// A replay and its progress.
#[derive(Serialize, ToSchema)]
pub(crate) struct ReplayView {
    id: Uuid,
    /// E-mail address of the person, or id of the client, that requested the replay.
    requested_by: String,
    pub(super) state: ReplayState,
    pub(super) filter: Filter,
    force: bool,
    per_second: i32,
    /// Deliveries that matched when the replay was started, counted up to 100,000.
    matched: i64,
    /// Deliveries that are pending again.
    replayed: i64,
    /// Deliveries that were superseded or pending already.
    skipped: i64,
    /// Deliveries that could not be replayed because of an error. The log of the service has the cause.
    failed: i64,
    /// Time at which the replay was started.
    created_at: DateTime<Utc>,
    /// Time at which the replay was finished or stopped.
    finished_at: Option<DateTime<Utc>>,
    /// E-mail address of the person, or id of the client, that last paused, resumed or stopped the replay.
    changed_by: Option<String>,
}

impl ReplayView {
    pub(super) fn new(replay: Replay) -> Result<Self, Problem> {
        Ok(Self {
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
}
