//! Metric: the age of the oldest event in the outbox.
//!
//! Every replica measures it, independently of the relay: a relay that hangs cannot report.

use std::{sync::Arc, time::Duration};

use diesel::{OptionalExtension as _, QueryDsl as _};
use diesel_async::RunQueryDsl;
use platform::{
    Process, Timestamp, chain,
    database::{DatabaseError, Pool},
    telemetry::{self, AgeGauge},
};

use crate::schema::outbox;

const INTERVAL: Duration = Duration::from_secs(10);

pub(crate) fn report_age(process: &Process) {
    let gauge = telemetry::meter()
        .f64_gauge("outbox_oldest_event_age_seconds")
        .with_description("Age of the oldest event that waits for the broker, 0 if none waits")
        .build();
    let ages = Arc::new(AgeGauge::new(gauge, vec![vec![]]));
    let (pool, clock) = (process.pool.clone(), process.clock.clone());
    process.tasks.spawn_interval("outbox age", INTERVAL, move || {
        let (pool, clock, ages) = (pool.clone(), clock.clone(), ages.clone());
        async move {
            let oldest = oldest_created_at(&pool).await.inspect_err(|error| {
                tracing::debug!(error = chain(error), "outbox age query failed");
            });
            let age = |created_at: Timestamp| (clock.now() - created_at).as_seconds_f64().max(0.0);
            ages.record(oldest.ok().map(|oldest| vec![oldest.map_or(0.0, age)]));
        }
    });
}

async fn oldest_created_at(pool: &Pool) -> Result<Option<Timestamp>, DatabaseError> {
    let oldest = outbox::table.select(outbox::created_at).order(outbox::sequence);
    Ok(oldest.first(&mut pool.get().await?).await.optional()?)
}
