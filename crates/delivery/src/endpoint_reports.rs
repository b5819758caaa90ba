//! Reports endpoints that have failed for some minutes, and their recovery, so that their merchants are told.
//!
//! Settlements store only since when an endpoint fails. This task compares that with the reported failures every few
//! seconds: an endpoint that accepts some messages and refuses others, many times a second, costs settlements nothing
//! and is not reported. Every replica runs the task; a row is noted as reported in the transaction of its event, which
//! also starts the replay of a recovered endpoint (`recovery_replays.rs`).
//!
//! See docs/decisions/notices.md.

use std::sync::Arc;
use std::time::Duration;

use chrono::TimeDelta;
use domain::delivery::EndpointHealthChanged;
use platform::{Process, chain, database::DatabaseError};

use crate::engine::Engine;
use crate::recovery_replays;
use crate::store::{self, HealthChange};

const INTERVAL: Duration = Duration::from_secs(5);
/// A failure that ends sooner is not reported.
const FAILING_AFTER: TimeDelta = TimeDelta::minutes(5);
/// Failures, and recoveries, in one transaction.
const BATCH: usize = 100;
/// Failing endpoints among which active ones are looked for.
const MAX_FAILING: i64 = 10_000;

pub(crate) fn start(engine: &Arc<Engine>, process: &Process) {
    let engine = engine.clone();
    process.tasks.spawn_interval("endpoint reports", INTERVAL, move || {
        let engine = engine.clone();
        async move {
            if let Err(error) = report(&engine).await {
                tracing::warn!(error = chain(&error), "failing endpoints cannot be reported");
            }
        }
    });
}

/// Reports failures of endpoints that are set and not paused, and recoveries. Before the merchants are loaded, no
/// endpoint is known to be set.
async fn report(engine: &Engine) -> Result<(), DatabaseError> {
    let now = engine.clock.now();
    let began_by = now - FAILING_AFTER;
    let mut conn = engine.pool.get().await?;
    let mut failing = store::unreported_failures(&mut conn, began_by, MAX_FAILING).await?;
    failing.retain(|(merchant, kind)| engine.is_endpoint_active(merchant, kind));
    failing.truncate(BATCH);
    let limit = i64::try_from(BATCH).unwrap_or(i64::MAX);
    let recovered = store::unreported_recoveries(&mut conn, limit).await?;
    if failing.is_empty() && recovered.is_empty() {
        return Ok(());
    }
    let replays = recovery_replays::of_recovered(engine, &mut conn, &recovered, now).await?;
    conn.transaction(async |conn| {
        // Before the endpoints are locked: an unfinished replay may be locked by the replayer, which waits for
        // settlements, and these wait for endpoints.
        for replay in &replays {
            let id = store::start_recovery(conn, now, replay).await?;
            tracing::info!(replay.id = %id, matched = replay.matched, "a recovery starts replay {id}");
        }
        let mut changes = store::report_failures(conn, &failing, began_by).await?;
        changes.extend(store::report_recoveries(conn, &recovered, now).await?);
        engine.outbox.append(conn, now, changes.iter().filter_map(event)).await
    })
    .await?;
    if !replays.is_empty() {
        engine.replayed.notify_one();
    }
    Ok(())
}

/// The event of a change. An endpoint of a kind that this version does not know has none.
fn event(change: &HealthChange) -> Option<EndpointHealthChanged> {
    Some(EndpointHealthChanged {
        merchant: change.merchant.parse().ok()?,
        kind: change.kind.parse().ok()?,
        failing_since: change.failing_since,
        recovered_at: change.recovered_at,
        status: change.last_failure_status.and_then(|status| status.try_into().ok()),
    })
}
