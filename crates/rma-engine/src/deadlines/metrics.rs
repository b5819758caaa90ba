//! Metric: how long the oldest deadline has been due.
//!
//! Every replica reads it on its own, apart from the task that works deadlines off: a task that hangs could not report
//! it.

use std::sync::Arc;
use std::time::Duration;

use platform::database::{DatabaseError, Pool};
use platform::telemetry::{self, AgeGauge};
use platform::{Process, chain};

use crate::store::deadlines;

const QUERY_INTERVAL: Duration = Duration::from_secs(15);

pub(super) fn watch(process: &Process) {
    let gauge = telemetry::meter()
        .f64_gauge("return_deadline_oldest_due_age_seconds")
        .with_description("Time since the oldest deadline of a return was due; 0 if none is")
        .build();
    let age = Arc::new(AgeGauge::new(gauge, vec![Vec::new()]));
    let pool = process.pool.clone();
    process.tasks.spawn_interval("deadline age", QUERY_INTERVAL, move || {
        let pool = pool.clone();
        let age = age.clone();
        async move {
            let oldest = oldest_due(&pool).await.inspect_err(|error| {
                tracing::debug!(error = chain(error), "the age of the oldest deadline is unknown");
            });
            age.record(oldest.ok().map(|oldest| vec![oldest.as_secs_f64()]));
        }
    });
}

async fn oldest_due(pool: &Pool) -> Result<Duration, DatabaseError> {
    deadlines::oldest_due(&mut *pool.get().await?).await
}
