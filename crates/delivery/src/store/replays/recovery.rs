//! Replays that the recovery of an endpoint starts.

use api::delivery::Filter;
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use platform::{
    Timestamp,
    database::{DatabaseError, sql},
};
use uuid::Uuid;

use crate::store::new_id;

/// The replay of an endpoint that recovered.
#[derive(Debug)]
pub(crate) struct RecoveryReplay {
    /// It names the merchant and the kind.
    pub(crate) filter: Filter,
    pub(crate) per_second: i32,
    /// Deliveries that match now.
    pub(crate) matched: i64,
}

platform::rows! { struct StartedId { id: Uuid } }

/// Starts a replay, or lets the unfinished one of the endpoint begin again: messages behind its position may be dead
/// again. Returns its id.
pub(crate) async fn start_recovery(
    conn: &mut AsyncPgConnection,
    now: Timestamp,
    replay: &RecoveryReplay,
) -> Result<Uuid, DatabaseError> {
    let filter = serde_json::to_value(&replay.filter)
        .map_err(|error| diesel::result::Error::SerializationError(error.into()))?;
    let statement = sql(
        include_str!("start_recovery.sql"),
        (new_id(now), filter, replay.per_second, replay.matched, now),
    );
    let started: StartedId = statement.get_result(conn).await?;
    Ok(started.id)
}
