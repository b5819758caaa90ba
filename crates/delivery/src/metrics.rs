//! What the engine counts.

use domain::message_kind::MessageKind;
use opentelemetry::{
    KeyValue,
    metrics::{Counter, Histogram},
};
use platform::telemetry;

use crate::ledger::{Settlement, Tried, Verdict};

pub(crate) struct Metrics {
    requests: Counter<u64>,
    latency: Histogram<f64>,
    settled: Counter<u64>,
    recalled: Counter<u64>,
}

impl Metrics {
    pub(crate) fn new() -> Self {
        let meter = telemetry::meter();
        Self {
            requests: meter
                .u64_counter("delivery_requests")
                .with_description("Requests to merchants, by kind, outcome and status class")
                .build(),
            latency: meter
                .f64_histogram("delivery_latency_seconds")
                .with_description("From the first byte to a merchant to its last")
                .with_boundaries(vec![0.005, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0])
                .build(),
            settled: meter
                .u64_counter("delivery_messages")
                .with_description("Messages by kind and what became of them")
                .build(),
            recalled: meter
                .u64_counter("delivery_recalled")
                .with_description("Messages that were queued and had to be queued again")
                .build(),
        }
    }

    pub(crate) fn settled(&self, batch: &[Settlement]) {
        for settlement in batch {
            let verdict = match settlement.verdict {
                Verdict::Delivered => "delivered",
                Verdict::Dead => "dead",
                Verdict::Retry(_) => "retried",
            };
            self.settled.add(1, &[kind(settlement.kind), KeyValue::new("result", verdict)]);
            settlement.tries.iter().for_each(|tried| self.tried(settlement.kind, tried));
        }
    }

    pub(crate) fn recalled(&self, messages: usize) {
        self.recalled.add(messages.try_into().unwrap_or(u64::MAX), &[]);
    }

    fn tried(&self, of: MessageKind, tried: &Tried) {
        let class = match tried.status.map(|status| status / 100) {
            Some(2) => "2xx",
            Some(3) => "3xx",
            Some(4) => "4xx",
            Some(5) => "5xx",
            Some(_) => "other",
            None => "none",
        };
        let labels =
            [kind(of), KeyValue::new("outcome", tried.outcome), KeyValue::new("class", class)];
        self.requests.add(1, &labels);
        self.latency.record(tried.latency.as_secs_f64(), &[kind(of)]);
    }
}

fn kind(kind: MessageKind) -> KeyValue {
    KeyValue::new("kind", kind.name())
}
