//! Finds dead letters that are outdated.

use std::collections::HashSet;

use chrono::TimeDelta;
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use platform::Timestamp;
use platform::database::{DatabaseError, agreed_time, prepared, sql};
use uuid::Uuid;

use super::min_id_at;

platform::rows! {
    struct DeadLetterKey {
        id: Uuid,
        replay_number: i32,
    }
}

/// A missing message alone does not make a dead letter outdated: the database may have been restored
/// from a backup that is older than the message. `LATERAL` with `LIMIT` finds each row by its key, see `claim`.
const OUTDATED: &str = include_str!("outdated_dead_letters.sql");

/// Returns the smallest id of the messages whose retention has not ended, by the clock of the database. No retention
/// ends while the clock of this process, `now`, differs; erased messages must not wait for that.
pub(crate) async fn oldest_kept(
    conn: &mut AsyncPgConnection,
    now: Timestamp,
    retention_days: u32,
) -> Result<Uuid, DatabaseError> {
    let now = agreed_time(conn, now).await?;
    let retention = TimeDelta::days(retention_days.into());
    let oldest = now.and_then(|now| now.checked_sub_signed(retention));
    Ok(oldest.map_or(Uuid::nil(), min_id_at))
}

/// Returns the outdated ones among these dead letters, as delivery id and replay number: those that a
/// later replay superseded, whose delivery succeeded after all, whose message was erased, or whose
/// message is from before `oldest_kept` and no longer stored.
pub(crate) async fn outdated_dead_letters(
    conn: &mut AsyncPgConnection,
    dead_letters: impl Iterator<Item = (Uuid, i32)>,
    oldest_kept: Uuid,
) -> Result<HashSet<(Uuid, i32)>, DatabaseError> {
    let (ids, replay_numbers): (Vec<_>, Vec<_>) = dead_letters.unzip();
    let query = sql(OUTDATED, (ids, replay_numbers, oldest_kept));
    let outdated: Vec<DeadLetterKey> = prepared(query).load(conn).await?;
    Ok(outdated.into_iter().map(|letter| (letter.id, letter.replay_number)).collect())
}
