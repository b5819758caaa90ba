//! Metrics of deliveries and their attempts.

use std::collections::HashSet;
use std::time::Instant;

use domain::message_kind::MessageKind;
use opentelemetry::{
    KeyValue,
    metrics::{Counter, Histogram},
};
use platform::telemetry;
use uuid::Uuid;

use crate::attempt::Attempt;
use crate::outcome::Decision;
use crate::recent_dead_letters::RecentDeadLetters;
use crate::settlement::Settlement;

pub(crate) struct Metrics {
    attempts: Counter<u64>,
    attempt_duration: Histogram<f64>,
    settlements: Counter<u64>,
    leases_expired: Counter<u64>,
    dead_letters: RecentDeadLetters,
}

impl Metrics {
    pub(crate) fn new() -> Self {
        let meter = telemetry::meter();
        Self {
            attempts: meter
                .u64_counter("delivery_attempts")
                .with_description("Attempts by kind, outcome and class of the HTTP status")
                .build(),
            attempt_duration: meter
                .f64_histogram("delivery_attempt_duration_seconds")
                .with_description("Time from the start of an attempt to the end of the response")
                .with_boundaries(vec![0.005, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0])
                .build(),
            settlements: meter
                .u64_counter("delivery_results")
                .with_description("Results of deliveries by kind: delivered, retried or dead")
                .build(),
            leases_expired: meter
                .u64_counter("delivery_leases_expired")
                .with_description(
                    "Queued deliveries that were not settled before their lease expired",
                )
                .build(),
            dead_letters: RecentDeadLetters::exported(),
        }
    }

    /// Counts the results of deliveries that were settled, and every attempt of the batch. Duplicates settle nothing.
    pub(crate) fn settled(&self, batch: &[Settlement], ids: &HashSet<Uuid>) {
        for settlement in batch.iter().filter(|settlement| ids.contains(&settlement.id())) {
            let result = match settlement.decision {
                Decision::Delivered => "delivered",
                Decision::Dead => "dead",
                Decision::RetryAt(_) => "retried",
            };
            let labels = [kind_label(settlement.kind()), KeyValue::new("result", result)];
            self.settlements.add(1, &labels);
            if settlement.decision == Decision::Dead {
                let kind = settlement.kind().name();
                self.dead_letters.add(kind, settlement.merchant(), Instant::now());
            }
        }
        for settlement in batch {
            settlement.attempts().for_each(|attempt| self.attempted(settlement.kind(), attempt));
        }
    }

    pub(crate) fn leases_expired(&self, deliveries: usize) {
        self.leases_expired.add(deliveries.try_into().unwrap_or(u64::MAX), &[]);
    }

    fn attempted(&self, kind: MessageKind, attempt: &Attempt) {
        let class = match attempt.outcome.status().map(|status| status / 100) {
            Some(2) => "2xx",
            Some(3) => "3xx",
            Some(4) => "4xx",
            Some(5) => "5xx",
            Some(_) => "other",
            None => "none",
        };
        let outcome = KeyValue::new("outcome", attempt.outcome.name());
        self.attempts.add(1, &[kind_label(kind), outcome, KeyValue::new("status_class", class)]);
        self.attempt_duration.record(attempt.latency.as_secs_f64(), &[kind_label(kind)]);
    }
}

fn kind_label(kind: MessageKind) -> KeyValue {
    KeyValue::new("kind", kind.name())
}
