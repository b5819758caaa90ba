//! The size of a run.

use std::time::Duration;

/// Enough for carrier events about different returns on 32 connections.
const MIN_MESSAGES: usize = 256;

#[derive(Clone, Copy)]
pub(crate) struct Size {
    /// Messages, orders or requests of a closed loop.
    pub(crate) messages: usize,
    /// Divides times and numbers.
    divisor: usize,
}

impl Size {
    /// `messages` overrides the number of messages.
    pub(crate) fn new(is_small: bool, messages: Option<usize>) -> Self {
        let full = messages.unwrap_or(20_000);
        let divisor = if is_small { 20 } else { 1 };
        Self { messages: (full / divisor).max(MIN_MESSAGES * 10), divisor }
    }

    /// A number of other items.
    pub(crate) fn items(self, full: usize) -> usize {
        full / self.divisor
    }

    pub(crate) fn time(self, full: Duration) -> Duration {
        full.div_f64(crate::processes::count(self.divisor))
    }

    /// The number of messages at a fixed rate for some time.
    #[expect(
        clippy::as_conversions,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "rates and times are small and not negative"
    )]
    pub(crate) fn at_rate(self, per_second: f64, full: Duration) -> usize {
        ((per_second * self.time(full).as_secs_f64()) as usize).max(MIN_MESSAGES)
    }
}
