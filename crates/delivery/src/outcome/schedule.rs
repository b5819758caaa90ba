//! The retry schedule: exponential back-off (base × factor^n) with ±10 % jitter.

use std::time::Duration;

/// Delays between the attempts of one message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Schedule {
    base: Duration,
    factor: u32,
    retries: u32,
}

impl Schedule {
    /// Bounds each delay, so that a typing error does not postpone messages for years.
    pub const MAX_DELAY: Duration = Duration::from_secs(7 * 24 * 3600);

    pub fn new(base: Duration, factor: u32, retries: u32) -> Result<Self, ScheduleError> {
        let schedule = Self { base, factor, retries };
        if base.is_zero() {
            return Err(ScheduleError::ZeroBase);
        }
        if factor == 0 {
            return Err(ScheduleError::ZeroFactor);
        }
        match retries.checked_sub(1).map(|last| schedule.exact_delay(last)) {
            None => Ok(schedule),
            Some(Some(longest)) if longest <= Self::MAX_DELAY => Ok(schedule),
            Some(_) => Err(ScheduleError::TooLong),
        }
    }

    /// Delay after attempt `number` (1 is the first) failed; `None` after the last one.
    pub fn delay_after(&self, number: u32, jitter: Jitter) -> Option<Duration> {
        if number > self.retries {
            return None;
        }
        self.exact_delay(number.saturating_sub(1)).map(|delay| jitter.apply(delay))
    }

    /// The delays after the failed attempts, without jitter.
    pub fn delays(&self) -> impl Iterator<Item = Duration> {
        (0..self.retries).filter_map(|exponent| self.exact_delay(exponent))
    }

    pub fn max_attempts(&self) -> u32 {
        self.retries.saturating_add(1)
    }

    fn exact_delay(&self, exponent: u32) -> Option<Duration> {
        self.base.checked_mul(self.factor.checked_pow(exponent)?)
    }
}

impl Default for Schedule {
    fn default() -> Self {
        Self { base: Duration::from_secs(10), factor: 4, retries: 5 }
    }
}

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum ScheduleError {
    #[error("the base delay of the retry schedule is zero")]
    ZeroBase,
    #[error("the factor of the retry schedule is zero")]
    ZeroFactor,
    #[error("the last delay of the retry schedule is longer than seven days")]
    TooLong,
}

/// Random number that spreads delays. The caller draws it, so decisions are deterministic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Jitter(u32);

impl Jitter {
    pub const LOWEST: Self = Self(0);
    pub const MIDDLE: Self = Self(u32::MAX / 2 + 1);
    pub const HIGHEST: Self = Self(u32::MAX);

    pub const fn new(number: u32) -> Self {
        Self(number)
    }

    /// Draws a random jitter; the middle if the system has no randomness.
    pub fn draw() -> Self {
        let mut bytes = [0; 4];
        match aws_lc_rs::rand::fill(&mut bytes) {
            Ok(()) => Self(u32::from_ne_bytes(bytes)),
            Err(_) => Self::MIDDLE,
        }
    }

    /// Changes a delay by −10 % to +10 %.
    pub fn apply(self, delay: Duration) -> Duration {
        self.between(delay.saturating_mul(9) / 10, delay.saturating_mul(11) / 10)
    }

    /// Picks a duration between two others, to the millisecond.
    pub fn between(self, min: Duration, max: Duration) -> Duration {
        let range = max.saturating_sub(min).as_millis();
        let offset = range.saturating_mul(u128::from(self.0)) / u128::from(u32::MAX);
        min + Duration::from_millis(u64::try_from(offset).unwrap_or(u64::MAX))
    }
}
