//! Metrics: how long deliveries have been overdue, and how many endpoints fail.
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
use crate::store::{self, EndpointKey};

const QUERY_INTERVAL: Duration = Duration::from_secs(15);
/// Failing endpoints are counted up to this number.
const MAX_FAILING: i64 = 10_000;

/// Records, for each kind, how long the oldest delivery has been due.
pub(crate) fn watch(engine: &Arc<Engine>, process: &Process) {
    let gauge = telemetry::meter()
        .f64_gauge("delivery_oldest_due_age_seconds")
        .with_description("Time since the oldest delivery that can be sent was due; 0 if none is")
        .build();
    let failing = telemetry::meter()
        .u64_gauge("delivery_endpoints_failing")
        .with_description(
            "Endpoints that have failed since their last success and are not paused, up to 10,000",
        )
        .build();
    let labels = engine.kinds.iter().map(|kind| vec![KeyValue::new("kind", kind.name())]);
    let engine = engine.clone();
    let ages = Arc::new(AgeGauge::new(gauge, labels.collect()));
    process.tasks.spawn_interval("backlog", QUERY_INTERVAL, move || {
        let engine = engine.clone();
        let ages = ages.clone();
        let failing = failing.clone();
        async move {
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

/// Counts the failing endpoints of each kind. Those that are paused or no longer set would count for ever,
/// because they get no message that could succeed.
async fn failing_by_kind(engine: &Engine) -> Result<Vec<(&'static str, u64)>, DatabaseError> {
    let mut conn = engine.pool.get().await?;
    let failing = store::failing_endpoints(&mut conn, None, None, MAX_FAILING).await?;
    Ok(count_by_kind(&engine.kinds, &failing, |merchant, kind| engine.is_active(merchant, kind)))
}

fn count_by_kind(
    kinds: &[MessageKind],
    endpoints: &[EndpointKey],
    is_active: impl Fn(&str, MessageKind) -> bool,
) -> Vec<(&'static str, u64)> {
    let count = |kind: &MessageKind| {
        let own = endpoints.iter().filter(|(_, name)| name.as_str() == kind.name());
        let active = own.filter(|(merchant, _)| is_active(merchant, *kind)).count();
        (kind.name(), active.try_into().unwrap_or(u64::MAX))
    };
    kinds.iter().map(count).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paused_and_removed_endpoints_do_not_count_as_failing() {
        let key = |merchant: &str, kind: MessageKind| (merchant.to_owned(), kind.to_string());
        let (rma, order) = (MessageKind::Rma, MessageKind::ExchangeOrder);
        let failing = [key("acme", rma), key("beta", rma), key("paused", rma), key("acme", order)];
        let is_active = |merchant: &str, kind: MessageKind| kind == rma && merchant != "paused";
        let counts = count_by_kind(&[rma, order], &failing, is_active);
        assert_eq!(counts, [("rma", 2), ("exchange-order", 0)]);
    }
}
