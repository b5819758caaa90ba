//! Metrics of batches.

use opentelemetry::KeyValue;
use opentelemetry::metrics::{Counter, Histogram};

use crate::telemetry;

pub(super) struct Metrics {
    batch_requests: Histogram<u64>,
    alone: Counter<u64>,
    attributes: [KeyValue; 1],
}

impl Metrics {
    pub(super) fn new(name: &'static str) -> Self {
        let meter = telemetry::meter();
        Self {
            batch_requests: meter
                .u64_histogram("batch_requests")
                .with_description("Requests that were processed in one transaction")
                .with_boundaries(vec![1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0])
                .build(),
            alone: meter
                .u64_counter("batch_requests_alone")
                .with_description("Requests that were processed alone: too large for a batch, or left by their batch")
                .build(),
            attributes: [KeyValue::new("batch", name)],
        }
    }

    pub(super) fn record_batch(&self, requests: usize) {
        self.batch_requests.record(requests.try_into().unwrap_or(u64::MAX), &self.attributes);
    }

    pub(super) fn record_alone(&self) {
        self.alone.add(1, &self.attributes);
    }
}
