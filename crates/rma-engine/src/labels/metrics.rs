//! Metric: how long the oldest label request of the last day has been open.
//!
//! Every replica reads it. Older requests do not count, so that one which nobody ends does not hide others.

use std::sync::Arc;
use std::time::Duration;

use chrono::TimeDelta;
use domain::labels::LabelState;
use opentelemetry::KeyValue;
use platform::database::{DatabaseError, Pool};
use platform::telemetry::{self, AgeGauge};
use platform::{Process, Timestamp, chain};

use crate::store::label_requests::oldest_open;

const QUERY_INTERVAL: Duration = Duration::from_secs(15);
const PERIOD: TimeDelta = TimeDelta::days(1);

pub(crate) fn watch(process: &Process) {
    let gauge = telemetry::meter()
        .f64_gauge("label_request_oldest_open_age_seconds")
        .with_description(
            "Age of the oldest label request of the last day without a label; 0 if there is none",
        )
        .build();
    let states = [LabelState::Requested, LabelState::Accepted];
    let labels = states.map(|state| vec![KeyValue::new("state", state.as_str())]);
    let ages = Arc::new(AgeGauge::new(gauge, labels.to_vec()));
    let (pool, clock) = (process.pool.clone(), process.clock.clone());
    process.tasks.spawn_interval("label age", QUERY_INTERVAL, move || {
        let (pool, ages) = (pool.clone(), ages.clone());
        let since = clock.now() - PERIOD;
        async move {
            let oldest = query(&pool, states, since).await.inspect_err(|error| {
                tracing::debug!(
                    error = chain(error),
                    "the age of the oldest label request is unknown"
                );
            });
            ages.record(oldest.ok());
        }
    });
}

/// The ages of the oldest requests in these states in seconds.
async fn query(
    pool: &Pool,
    states: [LabelState; 2],
    since: Timestamp,
) -> Result<Vec<f64>, DatabaseError> {
    let mut conn = pool.get().await?;
    let mut ages = Vec::new();
    for state in states {
        ages.push(oldest_open(&mut conn, state, since).await?.as_secs_f64());
    }
    Ok(ages)
}
