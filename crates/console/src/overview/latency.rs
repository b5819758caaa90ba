//! Percentiles of durations over several services.
//!
//! Percentiles cannot be added up, histograms can. So the services return how many attempts took how
//! long.

use std::collections::BTreeMap;

use api::delivery::DurationBucket;

/// A histogram of durations.
#[derive(Debug, Clone, Default)]
pub(super) struct Histogram {
    /// Upper bound and number of attempts by lower bound.
    buckets: BTreeMap<i64, (i64, i64)>,
}

impl Histogram {
    pub(super) fn add(&mut self, durations: &[DurationBucket]) {
        for DurationBucket { from_ms, to_ms, attempts } in durations {
            let bucket = self.buckets.entry(*from_ms).or_default();
            bucket.0 = to_ms.unwrap_or(*from_ms);
            bucket.1 += attempts;
        }
    }

    /// The duration in milliseconds that this many percent of the attempts did not exceed,
    /// interpolated within its bucket. None without attempts.
    pub(super) fn percentile(&self, percent: i64) -> Option<i64> {
        let all: i64 = self.buckets.values().map(|(_, attempts)| attempts).sum();
        let rank = rounded_up(all * percent, 100);
        let mut before = 0;
        for (lower, (upper, attempts)) in &self.buckets {
            if *attempts > 0 && before + attempts >= rank {
                let width = (upper - lower).max(0);
                return Some(lower + rounded_up(width * (rank - before), *attempts));
            }
            before += attempts;
        }
        None
    }
}

/// The quotient of two positive numbers, rounded up.
fn rounded_up(number: i64, by: i64) -> i64 {
    (number + by - 1) / by
}

#[cfg(test)]
mod tests {
    use super::*;

    fn durations(from_ms: i64, to_ms: Option<i64>, attempts: i64) -> DurationBucket {
        DurationBucket { from_ms, to_ms, attempts }
    }

    #[test]
    fn percentiles_of_several_services_are_those_of_all_attempts() {
        let mut histogram = Histogram::default();
        assert_eq!(histogram.percentile(50), None);
        histogram.add(&[durations(8, Some(11), 94)]);
        histogram.add(&[durations(16_384, Some(23_170), 6)]);
        assert_eq!(histogram.percentile(50), Some(10));
        assert!((16_384..=23_170).contains(&histogram.percentile(95).unwrap()));
        histogram.add(&[durations(8, Some(11), 900)]);
        assert_eq!(histogram.percentile(95), Some(11));
    }

    #[test]
    fn the_longest_durations_have_no_upper_bound() {
        let mut histogram = Histogram::default();
        histogram.add(&[durations(131_072, None, 3)]);
        assert_eq!(histogram.percentile(95), Some(131_072));
    }
}
