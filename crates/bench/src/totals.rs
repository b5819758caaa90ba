//! Totals of one side of a comparison.

use std::time::Duration;

/// Totals of several rounds.
#[derive(Default)]
pub(crate) struct Totals {
    pub(crate) items: f64,
    elapsed: Duration,
    postgres_cpu: Duration,
}

impl Totals {
    pub(crate) fn add(&mut self, items: f64, elapsed: Duration, postgres_cpu: Duration) {
        self.items += items;
        self.elapsed += elapsed;
        self.postgres_cpu += postgres_cpu;
    }

    pub(crate) fn rate(&self) -> f64 {
        self.items / self.elapsed.as_secs_f64()
    }

    /// CPU time of PostgreSQL per item, in microseconds.
    pub(crate) fn postgres_cpu_micros(&self) -> f64 {
        micros(self.postgres_cpu) / self.items
    }
}

pub(crate) fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}
