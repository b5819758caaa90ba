//! Metrics of the writer.

use domain::order::OrderOutcome;
use opentelemetry::KeyValue;
use opentelemetry::metrics::{Counter, Histogram};
use platform::telemetry;

use super::publish_error::PublishResult;

pub(super) struct Metrics {
    orders: Counter<u64>,
    batch_requests: Histogram<u64>,
}

impl Metrics {
    pub(super) fn new() -> Self {
        let meter = telemetry::meter();
        Self {
            orders: meter
                .u64_counter("orders_received")
                .with_description("Orders from merchants by result: stored, unchanged or stale")
                .build(),
            batch_requests: meter
                .u64_histogram("order_write_batch_requests")
                .with_description("Requests whose orders were stored in one transaction")
                .with_boundaries(vec![1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0])
                .build(),
        }
    }

    /// Records the results of a batch that was stored.
    pub(super) fn record_batch(&self, results: &[PublishResult]) {
        self.batch_requests.record(results.len().try_into().unwrap_or(u64::MAX), &[]);
        for outcome in results.iter().flatten().flatten() {
            let word = match outcome {
                OrderOutcome::Stored => "stored",
                OrderOutcome::Unchanged => "unchanged",
                OrderOutcome::Stale => "stale",
            };
            self.orders.add(1, &[KeyValue::new("result", word)]);
        }
    }
}
