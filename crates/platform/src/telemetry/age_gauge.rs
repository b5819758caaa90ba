//! A gauge of ages that a query reads at intervals.

use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use opentelemetry::{KeyValue, metrics::Gauge};

/// A gauge of ages in seconds. If a query fails, the ages keep growing, so that alerts still fire.
pub struct AgeGauge {
    gauge: Gauge<f64>,
    labels: Vec<Vec<KeyValue>>,
    last: Mutex<LastQuery>,
}

/// The result of the last query that succeeded.
struct LastQuery {
    at: Instant,
    ages: Vec<f64>,
}

impl AgeGauge {
    /// Creates a gauge with one age for each of these sets of labels.
    pub fn new(gauge: Gauge<f64>, labels: Vec<Vec<KeyValue>>) -> Self {
        let last = Mutex::new(LastQuery { at: Instant::now(), ages: vec![0.0; labels.len()] });
        Self { gauge, labels, last }
    }

    /// Records the ages that a query returned, or the growth of the last ones if it failed.
    pub fn record(&self, queried: Option<Vec<f64>>) {
        for (labels, age) in self.labels.iter().zip(self.ages(queried, Instant::now())) {
            self.gauge.record(age, labels);
        }
    }

    fn ages(&self, queried: Option<Vec<f64>>, now: Instant) -> Vec<f64> {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(ages) = queried {
            *last = LastQuery { at: now, ages };
        }
        let growth = now.saturating_duration_since(last.at).as_secs_f64();
        last.ages.iter().map(|age| age + growth).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn ages_grow_while_the_query_fails() {
        let gauge = crate::telemetry::meter().f64_gauge("test_age_seconds").build();
        let gauge = AgeGauge::new(gauge, vec![vec![], vec![]]);
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        assert_eq!(gauge.ages(Some(vec![7.0, 0.0]), at(10)), [7.0, 0.0]);
        assert_eq!(gauge.ages(None, at(15)), [12.0, 5.0]);
        assert_eq!(gauge.ages(None, at(70)), [67.0, 60.0]);
        assert_eq!(gauge.ages(Some(vec![0.0, 0.0]), at(75)), [0.0, 0.0]);
    }
}
