//! Sends dead messages again when a failing endpoint works again, if its merchant wants that.
//!
//! The replayer works such a replay off like any other. It has the author `recovery` and leaves out superseded
//! messages; people can pause and stop it.
//!
//! See docs/decisions/dead-letters-and-replay.md.

use api::delivery::{Filter, State};
use chrono::TimeDelta;
use diesel_async::AsyncPgConnection;
use domain::merchant::Interface;
use domain::message_kind::MessageKind;
use platform::{Timestamp, database::DatabaseError};

use crate::engine::Engine;
use crate::store::{self, EndpointKey, RecoveryReplay};

/// Slow, because the endpoint has just recovered.
const PER_SECOND: i32 = 10;
/// Matches are counted among this many attempts.
const MAX_COUNTED: i64 = 100_000;

/// The replays of endpoints that recovered, as far as they have dead messages that their merchants want again.
pub(crate) async fn of_recovered(
    engine: &Engine,
    conn: &mut AsyncPgConnection,
    recovered: &[EndpointKey],
    now: Timestamp,
) -> Result<Vec<RecoveryReplay>, DatabaseError> {
    let mut replays = Vec::new();
    for (merchant, kind) in recovered {
        let Some(days) = replay_days(engine, merchant, kind) else { continue };
        let filter = Filter {
            merchant: Some(merchant.clone()),
            kind: Some(kind.clone()),
            state: Some(State::Dead),
            from: Some(now - TimeDelta::days(days.into())),
            to: Some(now),
            ..Filter::default()
        };
        let matched = store::match_counts(conn, &filter, MAX_COUNTED).await?.total;
        if matched > 0 {
            replays.push(RecoveryReplay { filter, per_second: PER_SECOND, matched });
        }
    }
    Ok(replays)
}

/// The setting of an endpoint.
fn replay_days(engine: &Engine, merchant: &str, kind: &str) -> Option<u16> {
    let interface = Interface::Message(kind.parse::<MessageKind>().ok()?);
    let merchant = engine.merchants.get(&merchant.parse().ok()?)?;
    merchant.endpoints.get(&interface)?.recovery_replay_days
}
