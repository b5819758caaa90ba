//! How far behind the outbox is, for the metrics.
//!
//! Looked at by every replica and apart from the relay: a relay that waits for the broker could not
//! say so itself.

use std::sync::Arc;
use std::time::Duration;

use diesel::{QueryableByName, sql_query, sql_types::Double};
use diesel_async::RunQueryDsl;
use platform::{
    Process, chain,
    database::{DatabaseError, Pool},
    telemetry::{self, AgeGauge},
};

const LOOK_EVERY: Duration = Duration::from_secs(10);

/// Shows the age of the oldest event that was not published yet.
pub(crate) fn watch(process: &Process) {
    let gauge = telemetry::meter()
        .f64_gauge("outbox_oldest_event_age_seconds")
        .with_description("The age of the oldest event that waits for the broker; 0 when none does")
        .build();
    let (pool, ages) = (process.pool.clone(), Arc::new(AgeGauge::new(gauge, vec![vec![]])));
    process.tasks.spawn_interval("backlog", LOOK_EVERY, move || {
        let (pool, ages) = (pool.clone(), ages.clone());
        async move {
            let oldest = oldest(&pool).await.inspect_err(|error| {
                tracing::debug!(error = chain(error), "the outbox was not seen");
            });
            ages.show(oldest.ok().map(|seconds| vec![seconds]));
        }
    });
}

#[derive(QueryableByName)]
struct Oldest {
    #[diesel(sql_type = Double)]
    seconds: f64,
}

async fn oldest(pool: &Pool) -> Result<f64, DatabaseError> {
    let mut conn = pool.get().await?;
    // Positions are handed out in order, and the index knows the first.
    let oldest: Vec<Oldest> = sql_query(
        "SELECT greatest(0, extract(epoch FROM now() - created_at))::float8 AS seconds \
         FROM outbox ORDER BY sequence LIMIT 1",
    )
    .load(&mut conn)
    .await?;
    Ok(oldest.as_slice().first().map_or(0.0, |oldest| oldest.seconds))
}
