//! Metrics: how long deliveries have been overdue, and how many endpoints fail or were
//! disabled by a 410 response.
//!
//! Deliveries wait in the database and not in the broker. Every replica reads their age on its own,
//! apart from the dispatcher: a dispatcher that hangs could not report it.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use domain::message_kind::MessageKind;
use opentelemetry::{KeyValue, metrics::Gauge};
use platform::{Process, chain, database::DatabaseError, telemetry, telemetry::AgeGauge};

use crate::engine::Engine;
use crate::store;

const QUERY_INTERVAL: Duration = Duration::from_secs(15);

/// Records, for each kind, how long the oldest delivery has been due.
pub(crate) fn watch(engine: &Arc<Engine>, process: &Process) {
    let gauge = telemetry::meter()
        .f64_gauge("delivery_oldest_due_age_seconds")
        .with_description("Time since the oldest delivery that can be sent was due; 0 if none is")
        .build();
    let disabled = telemetry::meter()
        .u64_gauge("delivery_endpoints_disabled")
        .with_description("Endpoints that a 410 response disabled; their messages wait")
        .build();
    let failing = telemetry::meter()
        .u64_gauge("delivery_endpoints_failing")
        .with_description("Endpoints that have failed since their last success, up to 10,000")
        .build();
    let labels = engine.kinds.iter().map(|kind| vec![KeyValue::new("kind", kind.name())]);
    let (engine, ages) = (engine.clone(), Arc::new(AgeGauge::new(gauge, labels.collect())));
    process.tasks.spawn_interval("backlog", QUERY_INTERVAL, move || {
        let (engine, ages) = (engine.clone(), ages.clone());
        let (disabled, failing) = (disabled.clone(), failing.clone());
        async move {
            match disabled_by_kind(&engine).await {
                Ok(counts) => record(&disabled, counts),
                Err(error) => {
                    tracing::debug!(error = chain(&error), "the disabled endpoints are unknown");
                }
            }
            match failing_by_kind(&engine).await {
                Ok(counts) => record(&failing, counts),
                Err(error) => {
                    tracing::debug!(error = chain(&error), "the failing endpoints are unknown");
                }
            }
            let oldest = oldest_due_seconds(&engine).await.inspect_err(|error| {
                tracing::debug!(error = chain(error), "the age of the oldest delivery is unknown");
            });
            let ages_by_kind = |oldest: HashMap<String, f64>| {
                let age = |name| oldest.get(name).copied().unwrap_or_default();
                engine.kinds.iter().map(|kind| age(kind.name())).collect()
            };
            ages.record(oldest.ok().map(ages_by_kind));
        }
    });
}

fn record(gauge: &Gauge<u64>, counts: Vec<(&'static str, u64)>) {
    for (kind, count) in counts {
        gauge.record(count, &[KeyValue::new("kind", kind)]);
    }
}

async fn oldest_due_seconds(engine: &Engine) -> Result<HashMap<String, f64>, DatabaseError> {
    let (merchants, kinds) = engine.paused();
    let mut conn = engine.pool.get().await?;
    store::oldest_due_seconds(&mut conn, engine.clock.now(), (&merchants, &kinds)).await
}

/// Counts the disabled endpoints of each kind.
async fn disabled_by_kind(engine: &Engine) -> Result<Vec<(&'static str, u64)>, DatabaseError> {
    let mut conn = engine.pool.get().await?;
    let disabled = store::disabled_endpoints(&mut conn).await?;
    let count = |kind: &MessageKind| {
        let count = disabled.iter().filter(|disabled| disabled.kind == kind.name()).count();
        (kind.name(), count.try_into().unwrap_or(u64::MAX))
    };
    Ok(engine.kinds.iter().map(count).collect())
}

/// Counts the failing endpoints of each kind.
async fn failing_by_kind(engine: &Engine) -> Result<Vec<(&'static str, u64)>, DatabaseError> {
    let mut conn = engine.pool.get().await?;
    let failing: HashMap<_, _> = store::failing_by_kind(&mut conn).await?.into_iter().collect();
    let count = |kind: &MessageKind| {
        let count = failing.get(kind.name()).copied().unwrap_or_default();
        (kind.name(), count.try_into().unwrap_or(u64::MAX))
    };
    Ok(engine.kinds.iter().map(count).collect())
}
