//! Histograms of the durations of attempts. Their buckets can be added up, over hours and merchants.

use std::time::Duration;

/// Upper bounds of the buckets in milliseconds: powers of the square root of two. Longer attempts are
/// in one more bucket.
const BOUNDS_MS: [i64; 34] = [
    1, 2, 3, 4, 6, 8, 11, 16, 23, 32, 45, 64, 91, 128, 181, 256, 362, 512, 724, 1024, 1448, 2048,
    2896, 4096, 5793, 8192, 11_585, 16_384, 23_170, 32_768, 46_341, 65_536, 92_682, 131_072,
];

/// Returns the number of the bucket of a duration.
pub(crate) fn bucket(latency: Duration) -> i16 {
    let millis = i64::try_from(latency.as_millis()).unwrap_or(i64::MAX);
    BOUNDS_MS.partition_point(|bound| *bound < millis).try_into().unwrap_or(i16::MAX)
}

/// Attempts by duration, and the number of those that delivered their message.
#[derive(Clone, Debug)]
pub(crate) struct Histogram {
    buckets: [i64; BOUNDS_MS.len()],
    pub(crate) attempts: i64,
    pub(crate) delivered: i64,
}

impl Default for Histogram {
    fn default() -> Self {
        Self { buckets: [0; BOUNDS_MS.len()], attempts: 0, delivered: 0 }
    }
}

impl Histogram {
    pub(crate) fn add(&mut self, bucket: i16, attempts: i64, delivered: i64) {
        let index = usize::try_from(bucket).unwrap_or_default();
        if let Some(count) = self.buckets.get_mut(index) {
            *count += attempts;
        }
        self.attempts += attempts;
        self.delivered += delivered;
    }

    /// Returns the duration in milliseconds that this many percent of the attempts did not exceed,
    /// interpolated within its bucket; `None` without attempts. It is at most the last bound.
    pub(crate) fn percentile_ms(&self, percent: i64) -> Option<i64> {
        let rank = (self.attempts * percent + 99) / 100;
        let mut before = 0;
        let mut lower = 0;
        for (upper, count) in BOUNDS_MS.into_iter().zip(self.buckets) {
            if count > 0 && before + count >= rank {
                let part = (upper - lower) * (rank - before);
                return Some(lower + (part + count - 1) / count);
            }
            before += count;
            lower = upper;
        }
        (self.attempts > 0).then_some(lower)
    }

    /// Returns the buckets that have attempts: the two bounds in milliseconds and the number of
    /// attempts. The longest durations have no upper bound.
    pub(crate) fn buckets(&self) -> Vec<(i64, Option<i64>, i64)> {
        let longest = self.attempts - self.buckets.iter().sum::<i64>();
        let upper = BOUNDS_MS.into_iter().map(Some).chain([None]);
        let buckets = [0].into_iter().chain(BOUNDS_MS).zip(upper);
        let counts = self.buckets.iter().copied().chain([longest]);
        let buckets = buckets.zip(counts).map(|((lower, upper), count)| (lower, upper, count));
        buckets.filter(|(_, _, count)| *count > 0).collect()
    }

    /// Returns the part of the attempts that delivered, from 0 to 1; `None` without attempts.
    pub(crate) fn success_rate(&self) -> Option<f64> {
        let ten_thousandths = (self.delivered * 10_000).checked_div(self.attempts)?;
        Some(f64::from(u32::try_from(ten_thousandths).unwrap_or_default()) / 10_000.0)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn histogram(millis: &[u64]) -> Histogram {
        let mut histogram = Histogram::default();
        for millis in millis {
            histogram.add(bucket(Duration::from_millis(*millis)), 1, 1);
        }
        histogram
    }

    #[test]
    fn a_duration_is_in_the_bucket_of_the_next_bound() {
        for (millis, expected) in
            [(0, 0), (1, 0), (2, 1), (3, 2), (5, 4), (1024, 19), (1025, 20), (131_072, 33)]
        {
            assert_eq!(bucket(Duration::from_millis(millis)), expected, "{millis} ms");
        }
        assert_eq!(bucket(Duration::MAX), 34);
    }

    #[test]
    fn percentiles_are_interpolated() {
        assert_eq!(Histogram::default().percentile_ms(50), None);
        assert_eq!(histogram(&[100]).percentile_ms(50), Some(128));
        let hundred = histogram(&[100; 100]);
        assert_eq!((hundred.percentile_ms(50), hundred.percentile_ms(100)), (Some(110), Some(128)));
        let slow_tail = histogram(&[&[10; 94][..], &[20_000; 6]].concat());
        assert_eq!(slow_tail.percentile_ms(50), Some(10));
        assert!((16_384..=23_170).contains(&slow_tail.percentile_ms(95).unwrap()));
        assert_eq!(histogram(&[200_000; 3]).percentile_ms(95), Some(131_072));
    }

    #[test]
    fn buckets_without_attempts_are_left_out() {
        let histogram = histogram(&[1, 100, 100, 200_000]);
        assert_eq!(histogram.buckets(), [(0, Some(1), 1), (91, Some(128), 2), (131_072, None, 1)]);
    }

    #[test]
    fn the_success_rate_counts_deliveries() {
        let mut histogram = Histogram::default();
        assert_eq!(histogram.success_rate(), None);
        histogram.add(3, 2, 1);
        histogram.add(9, 1, 1);
        assert_eq!((histogram.attempts, histogram.delivered), (3, 2));
        assert_eq!(histogram.success_rate(), Some(0.6666));
    }

    proptest! {
        #[test]
        fn a_percentile_is_within_a_bucket_of_the_exact_one(
            mut millis in prop::collection::vec(1..=131_072_u64, 1..200), percent in 1..=100_i64,
        ) {
            millis.sort_unstable();
            let rank = (millis.len() * usize::try_from(percent).unwrap()).div_ceil(100);
            let exact = i64::try_from(millis[rank - 1]).unwrap();
            let estimated = histogram(&millis).percentile_ms(percent).unwrap();
            prop_assert!(estimated <= exact * 2 && exact <= estimated * 2, "{estimated} for {exact}");
        }
    }
}
