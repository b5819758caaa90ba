//! A gauge of ages that are queried at intervals.

use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use opentelemetry::{KeyValue, metrics::Gauge};

/// A gauge of ages in seconds. If a query fails, the ages keep growing, so that alerts still fire.
pub struct AgeGauge {
    gauge: Gauge<f64>,
    labels: Vec<Vec<KeyValue>>,
    last: Mutex<(Instant, Vec<f64>)>,
}

impl AgeGauge {
    /// One age for each of these sets of labels.
    pub fn new(gauge: Gauge<f64>, labels: Vec<Vec<KeyValue>>) -> Self {
        let last = Mutex::new((Instant::now(), vec![0.0; labels.len()]));
        Self { gauge, labels, last }
    }

    /// Shows the ages, or that they could not be seen.
    pub fn show(&self, looked: Option<Vec<f64>>) {
        for (labels, age) in self.labels.iter().zip(self.now(looked, Instant::now())) {
            self.gauge.record(age, labels);
        }
    }

    fn now(&self, looked: Option<Vec<f64>>, now: Instant) -> Vec<f64> {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(seen) = looked {
            *last = (now, seen);
        }
        let (at, ages) = &*last;
        let since = now.saturating_duration_since(*at).as_secs_f64();
        ages.iter().map(|age| age + since).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn what_cannot_be_seen_grows_older() {
        let gauge = crate::telemetry::meter().f64_gauge("test_age_seconds").build();
        let ages = AgeGauge::new(gauge, vec![vec![], vec![]]);
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        assert_eq!(ages.now(Some(vec![7.0, 0.0]), at(10)), [7.0, 0.0]);
        assert_eq!(ages.now(None, at(15)), [12.0, 5.0]);
        assert_eq!(ages.now(None, at(70)), [67.0, 60.0]);
        assert_eq!(ages.now(Some(vec![0.0, 0.0]), at(75)), [0.0, 0.0]);
    }
}
