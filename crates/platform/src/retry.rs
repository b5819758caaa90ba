//! Exponential back-off. Only this module uses the `backoff` crate.

use std::time::Duration;

use backoff::{ExponentialBackoff, ExponentialBackoffBuilder, backoff::Backoff as _};

/// Pauses that double up to a maximum, with jitter.
pub struct Backoff(ExponentialBackoff);

impl Backoff {
    pub fn new(first: Duration, ceiling: Duration) -> Self {
        Self(
            ExponentialBackoffBuilder::new()
                .with_initial_interval(first)
                .with_max_interval(ceiling)
                .with_multiplier(2.0)
                .with_randomization_factor(0.2)
                .with_max_elapsed_time(None)
                .build(),
        )
    }

    /// The next pause.
    pub fn pause(&mut self) -> Duration {
        self.0.next_backoff().unwrap_or(self.0.max_interval)
    }

    /// Starts again with the first pause, after a success.
    pub fn reset(&mut self) {
        self.0.reset();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_to_the_ceiling_and_start_over() {
        let (first, ceiling) = (Duration::from_millis(100), Duration::from_secs(2));
        let mut backoff = Backoff::new(first, ceiling);
        let pauses: Vec<_> = (0..10).map(|_| backoff.pause()).collect();
        assert!(pauses[0] >= Duration::from_millis(80) && pauses[0] <= Duration::from_millis(120));
        assert!(
            pauses[9] >= Duration::from_millis(1600) && pauses[9] <= Duration::from_millis(2400)
        );
        backoff.reset();
        assert!(backoff.pause() <= Duration::from_millis(120));
    }
}
