//! Metrics: how long deliveries have been overdue, and how many endpoints a 410 response disabled.
//!
//! Deliveries wait in the database and not in the broker. Every replica reads their age on its own,
//! apart from the dispatcher: a dispatcher that hangs could not report it.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use domain::message_kind::MessageKind;
use opentelemetry::KeyValue;
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
    let labels = engine.kinds.iter().map(|kind| vec![KeyValue::new("kind", kind.name())]);
    let (engine, ages) = (engine.clone(), Arc::new(AgeGauge::new(gauge, labels.collect())));
    process.tasks.spawn_interval("backlog", QUERY_INTERVAL, move || {
        let (engine, ages, disabled) = (engine.clone(), ages.clone(), disabled.clone());
        async move {
            match disabled_by_kind(&engine).await {
                Ok(counts) => counts.into_iter().for_each(|(kind, count)| {
                    disabled.record(count, &[KeyValue::new("kind", kind)]);
                }),
                Err(error) => {
                    tracing::debug!(error = chain(&error), "the disabled endpoints are unknown");
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
