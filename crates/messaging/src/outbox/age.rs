//! Metric: the age of the oldest event in the outbox.
//!
//! Every replica measures it, independently of the relay: a relay that hangs cannot report. Deleted rows stay in
//! the index while an older transaction is open, so the search starts near the row that was the oldest before.

use std::{
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
    time::Duration,
};

use diesel::{ExpressionMethods as _, OptionalExtension as _, QueryDsl as _};
use diesel_async::RunQueryDsl;
use platform::{
    Process, Timestamp, chain,
    database::{DatabaseError, Pool},
    telemetry::{self, AgeGauge},
};

use super::relay::last_sequence;
use crate::schema::outbox;

const INTERVAL: Duration = Duration::from_secs(10);
/// Sequence numbers before the newest one that the first search reads.
const FIRST_OVERLAP: i64 = 1_000_000;
/// Sequence numbers before the oldest row that later searches read. Transactions draw numbers before they commit.
const OVERLAP: i64 = 10_000;

pub(crate) fn report_age(process: &Process) {
    let gauge = telemetry::meter()
        .f64_gauge("outbox_oldest_event_age_seconds")
        .with_description("Age of the oldest event that waits for the broker, 0 if none waits")
        .build();
    let ages = Arc::new(AgeGauge::new(gauge, vec![vec![]]));
    let pool = process.pool.clone();
    let clock = process.clock.clone();
    let start = Arc::new(AtomicI64::new(i64::MIN));
    process.tasks.spawn_interval("outbox age", INTERVAL, move || {
        let pool = pool.clone();
        let clock = clock.clone();
        let ages = ages.clone();
        let start = start.clone();
        async move {
            let oldest = oldest_created_at(&pool, &start).await.inspect_err(|error| {
                tracing::debug!(error = chain(error), "outbox age query failed");
            });
            let age = |created_at: Timestamp| (clock.now() - created_at).as_seconds_f64().max(0.0);
            ages.record(oldest.ok().map(|oldest| vec![oldest.map_or(0.0, age)]));
        }
    });
}

/// Returns the time of the oldest row from `start` on, and moves the start for the next search.
async fn oldest_created_at(
    pool: &Pool,
    start: &AtomicI64,
) -> Result<Option<Timestamp>, DatabaseError> {
    let mut conn = pool.get().await?;
    let newest = last_sequence(&mut conn).await?;
    let from = start.load(Ordering::Relaxed).max(newest.saturating_sub(FIRST_OVERLAP));
    let oldest = outbox::table
        .filter(outbox::sequence.ge(from.min(newest)))
        .order(outbox::sequence)
        .select((outbox::sequence, outbox::created_at));
    let oldest: Option<(i64, Timestamp)> = oldest.first(&mut conn).await.optional()?;
    let next = oldest.map_or(newest, |(sequence, _)| sequence);
    start.store(next.saturating_sub(OVERLAP), Ordering::Relaxed);
    Ok(oldest.map(|(_, created_at)| created_at))
}
