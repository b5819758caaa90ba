//! Quantiles of times.

use std::time::Duration;

use crate::processes::count;

/// The time at a quantile between 0 and 1. The times are sorted.
pub(crate) fn quantile(times: &[Duration], quantile: f64) -> Duration {
    #[expect(
        clippy::as_conversions,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the index is below the number of times"
    )]
    let index = (count(times.len()) * quantile) as usize;
    times.get(index.min(times.len().saturating_sub(1))).copied().unwrap_or_default()
}

pub(crate) fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}
