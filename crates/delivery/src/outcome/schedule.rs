//! When a failed message is tried again: base × factor^n, each delay moved by up to ±10 %.

use std::time::Duration;

/// The delays between the first try and the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Schedule {
    base: Duration,
    factor: u32,
    retries: u32,
}

impl Schedule {
    /// No single delay may be longer than this: a slip of the pen would park messages for years.
    pub const LONGEST_DELAY: Duration = Duration::from_secs(7 * 24 * 3600);

    pub fn new(base: Duration, factor: u32, retries: u32) -> Result<Self, BadSchedule> {
        let schedule = Self { base, factor, retries };
        if base.is_zero() {
            return Err(BadSchedule::NoBase);
        }
        if factor == 0 {
            return Err(BadSchedule::NoFactor);
        }
        match retries.checked_sub(1).map(|last| schedule.plain_delay(last)) {
            None => Ok(schedule),
            Some(Some(longest)) if longest <= Self::LONGEST_DELAY => Ok(schedule),
            Some(_) => Err(BadSchedule::TooLong),
        }
    }

    /// How long to wait after the failure of attempt `number` (1 is the first try); nothing when
    /// that was the last one.
    pub fn delay_after(&self, number: u32, roll: Jitter) -> Option<Duration> {
        if number > self.retries {
            return None;
        }
        self.plain_delay(number.saturating_sub(1)).map(|delay| roll.jitter(delay))
    }

    fn plain_delay(&self, exponent: u32) -> Option<Duration> {
        self.base.checked_mul(self.factor.checked_pow(exponent)?)
    }
}

impl Default for Schedule {
    fn default() -> Self {
        Self { base: Duration::from_secs(10), factor: 4, retries: 5 }
    }
}

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadSchedule {
    #[error("the base delay of the retry schedule is zero")]
    NoBase,
    #[error("the factor of the retry schedule is zero")]
    NoFactor,
    #[error("the last delay of the retry schedule is longer than seven days")]
    TooLong,
}

/// A random number, drawn by the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Jitter(u32);

impl Jitter {
    pub const LOWEST: Self = Self(0);
    pub const MIDDLE: Self = Self(u32::MAX / 2 + 1);
    pub const HIGHEST: Self = Self(u32::MAX);

    pub const fn new(number: u32) -> Self {
        Self(number)
    }

    /// Draws from the system's randomness; without any, the middle is as good as a guess.
    pub fn draw() -> Self {
        let mut bytes = [0; 4];
        match aws_lc_rs::rand::fill(&mut bytes) {
            Ok(()) => Self(u32::from_ne_bytes(bytes)),
            Err(_) => Self::MIDDLE,
        }
    }

    /// Moves a span evenly by −10 % to +10 %.
    pub fn jitter(self, span: Duration) -> Duration {
        self.between(span.saturating_mul(9) / 10, span.saturating_mul(11) / 10)
    }

    /// A span between two others, to the millisecond.
    pub fn between(self, shortest: Duration, longest: Duration) -> Duration {
        let room = longest.saturating_sub(shortest).as_millis();
        let share = room.saturating_mul(u128::from(self.0)) / u128::from(u32::MAX);
        shortest + Duration::from_millis(u64::try_from(share).unwrap_or(u64::MAX))
    }
}
