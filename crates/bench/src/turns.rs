//! What one side of a comparison came to.

use std::time::Duration;

/// Several turns of one kind.
#[derive(Default)]
pub(crate) struct Turns {
    pub(crate) items: f64,
    took: Duration,
    /// PostgreSQL's CPU time.
    cpu: Duration,
}

impl Turns {
    pub(crate) fn add(&mut self, items: f64, took: Duration, cpu: Duration) {
        self.items += items;
        self.took += took;
        self.cpu += cpu;
    }

    pub(crate) fn rate(&self) -> f64 {
        self.items / self.took.as_secs_f64()
    }

    /// Microseconds of PostgreSQL's CPU time for one item.
    pub(crate) fn cost(&self) -> f64 {
        micros(self.cpu) / self.items
    }
}

pub(crate) fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}
