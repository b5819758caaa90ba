//! The window of an endpoint: how many of its messages may be in flight.
//!
//! It works like TCP congestion control. A window grows by one per success (slow start) up to half
//! of its size at the last failure, then by one per full window of successes. It grows only while it is
//! full: a window that is not used would be used at once by an endpoint that begins to hang. A failure
//! halves it, down to one message: a probe. The delay between failing probes grows, so that endpoints
//! that hang do not occupy the senders.
//!
//! Messages in flight are rate times latency (Little's law). An endpoint that responds slowly therefore
//! gets a smaller window, so that it holds no more memory than a fast endpoint that gets more messages.
//!
//! See docs/decisions/windows-and-slow-endpoints.md.

use std::num::NonZeroU32;
use std::time::Duration;

use crate::outcome::Signal;

/// Bounds the delay between probes, as a multiple of the first delay and absolutely.
const MAX_PROBE_DELAY_FACTOR: u32 = 6;
const MAX_PROBE_DELAY: Duration = Duration::from_secs(60);

/// Up to this latency an endpoint may have the maximum window; ten times the latency justifies a tenth.
const FAST_LATENCY: Duration = Duration::from_millis(100);
/// The window that any latency justifies.
const SLOW_WINDOW: u32 = 32;

/// Sizes of windows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    pub initial: NonZeroU32,
    pub max: NonZeroU32,
    /// Delay after the first failed probe. It doubles with each further one.
    pub probe_delay: Duration,
}

impl Limits {
    /// Returns the largest window of an endpoint with this latency.
    pub fn max_for_latency(&self, latency: Duration) -> u32 {
        let max = self.max.get();
        let fast = FAST_LATENCY.as_millis();
        let size = u128::from(max) * fast / latency.as_millis().max(fast);
        u32::try_from(size).unwrap_or(max).max(SLOW_WINDOW.min(max))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    size: u32,
    /// Below this size, every success grows the window; above, a full window of successes does.
    slow_start_threshold: u32,
    /// Successes above the threshold since the window last grew.
    acks: u32,
    /// Consecutive failures of a window of one.
    failed_probes: u32,
    max: u32,
    probe_delay: Duration,
}

impl Window {
    pub fn new(limits: Limits) -> Self {
        let max = limits.max.get();
        Self {
            size: limits.initial.get().min(max),
            slow_start_threshold: max,
            acks: 0,
            failed_probes: 0,
            max,
            probe_delay: limits.probe_delay,
        }
    }

    /// Restores a window from its [`Window::parts`]. The limits may have changed since.
    pub fn from_parts(
        limits: Limits,
        [size, slow_start_threshold, acks, failed_probes]: [i32; 4],
    ) -> Self {
        let max = limits.max.get();
        let read = |part: i32| u32::try_from(part).unwrap_or_default();
        Self {
            size: read(size).clamp(1, max),
            slow_start_threshold: read(slow_start_threshold).clamp(1, max),
            acks: read(acks),
            failed_probes: read(failed_probes),
            max,
            probe_delay: limits.probe_delay,
        }
    }

    /// Returns the columns of a stored window: `window_size`, `slow_start_threshold`, `window_acks`,
    /// `failed_probes`.
    pub fn parts(&self) -> [i32; 4] {
        [self.size, self.slow_start_threshold, self.acks, self.failed_probes]
            .map(|part| part.try_into().unwrap_or(i32::MAX))
    }

    /// Delay before the next message.
    pub fn probe_delay(&self) -> Duration {
        match self.failed_probes.checked_sub(1) {
            None => Duration::ZERO,
            Some(doublings) => {
                let factor = 2_u32.saturating_pow(doublings).min(MAX_PROBE_DELAY_FACTOR);
                self.probe_delay.saturating_mul(factor).min(MAX_PROBE_DELAY)
            }
        }
    }

    pub fn size(&self) -> u32 {
        self.size
    }

    pub fn apply(&mut self, signal: Signal) {
        match signal {
            Signal::Grow => self.grow(),
            // The endpoint responded, so the probe did not fail.
            Signal::Hold => self.reset_probes(),
            Signal::Shrink => self.shrink(),
        }
    }

    /// Ends probing without growth, after a success whose message did not fill the window.
    pub fn reset_probes(&mut self) {
        self.failed_probes = 0;
    }

    /// Shrinks a window that is larger than `max`, by half at most: one slow response among fast ones
    /// changes little.
    pub fn shrink_towards(&mut self, max: u32) {
        if self.size > max {
            self.size = max.max(self.size / 2);
            self.acks = 0;
        }
    }

    fn grow(&mut self) {
        self.failed_probes = 0;
        if self.size < self.slow_start_threshold {
            self.size += 1;
        } else {
            self.acks += 1;
            if self.acks >= self.size {
                self.acks = 0;
                self.size += 1;
            }
        }
        self.size = self.size.min(self.max);
    }

    fn shrink(&mut self) {
        if self.size == 1 {
            self.failed_probes = self.failed_probes.saturating_add(1);
        }
        self.halve();
    }

    /// Applies a failure that is not a failed probe: its message was sent together with others,
    /// before the last failure was known.
    pub fn halve(&mut self) {
        self.size = (self.size / 2).max(1);
        self.slow_start_threshold = self.size;
        self.acks = 0;
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;
    use std::time::Duration;

    use proptest::prelude::*;

    use super::{Limits, Window};
    use crate::outcome::Signal::{self, Grow, Hold, Shrink};

    fn limits(initial: u32, max: u32) -> Limits {
        let limit = |n| NonZeroU32::new(n).unwrap();
        let probe_delay = Duration::from_secs(10);
        Limits { initial: limit(initial), max: limit(max), probe_delay }
    }

    fn after(mut window: Window, signals: &[(Signal, u32)]) -> u32 {
        for (signal, times) in signals {
            (0..*times).for_each(|_| window.apply(*signal));
        }
        window.size()
    }

    #[track_caller]
    fn check(signals: &[(Signal, u32)], expected: u32) {
        assert_eq!(after(Window::new(limits(8, 64)), signals), expected);
    }

    #[test]
    fn a_window_grows_fast_halves_and_then_grows_slowly() {
        check(&[], 8);
        check(&[(Grow, 1)], 9);
        check(&[(Grow, 56)], 64);
        check(&[(Grow, 1000)], 64);
        check(&[(Shrink, 1)], 4);
        check(&[(Shrink, 2)], 2);
        check(&[(Shrink, 3)], 1);
        check(&[(Shrink, 100)], 1);
        check(&[(Hold, 100)], 8);
        check(&[(Grow, 56), (Shrink, 1)], 32);
        check(&[(Grow, 56), (Shrink, 1), (Grow, 31)], 32);
        check(&[(Grow, 56), (Shrink, 1), (Grow, 32)], 33);
        check(&[(Shrink, 100), (Grow, 1)], 2);
        check(&[(Shrink, 100), (Grow, 2)], 2);
        check(&[(Shrink, 100), (Grow, 3)], 3);
        check(&[(Shrink, 100), (Grow, 6)], 4);
        check(&[(Shrink, 100), (Grow, 10_000)], 64);
    }

    #[test]
    fn a_window_is_restored_from_its_parts() {
        let mut window = Window::new(limits(8, 64));
        for signal in [Grow, Grow, Shrink, Grow, Hold, Shrink, Shrink, Shrink, Shrink, Shrink] {
            window.apply(signal);
            assert_eq!(Window::from_parts(limits(8, 64), window.parts()), window);
        }
        assert_eq!(Window::from_parts(limits(1, 4), [64, 64, 0, 0]).size(), 4);
        assert_eq!(Window::from_parts(limits(1, 4), [0, -1, -1, -1]).size(), 1);
    }

    #[test]
    fn the_probe_delay_grows_until_the_endpoint_responds() {
        let mut window = Window::new(limits(8, 64));
        let mut delay = |signal| {
            window.apply(signal);
            window.probe_delay().as_secs()
        };
        let failing = [Shrink; 9].map(&mut delay);
        assert_eq!(failing, [0, 0, 0, 10, 20, 40, 60, 60, 60]);
        assert_eq!([Hold, Shrink, Shrink].map(&mut delay), [0, 10, 20]);
        assert_eq!([Grow, Shrink, Shrink].map(delay), [0, 0, 10]);
    }

    #[test]
    fn the_initial_size_is_limited_by_the_maximum() {
        assert_eq!(Window::new(limits(100, 64)).size(), 64);
    }

    #[test]
    fn a_slow_endpoint_gets_a_small_window() {
        let max = |ms| limits(8, 1024).max_for_latency(Duration::from_millis(ms));
        assert_eq!([0, 5, 100].map(max), [1024; 3]);
        assert_eq!([200, 1000, 3000].map(max), [512, 102, 34]);
        assert_eq!([10_000, 120_000].map(max), [32; 2]);
        assert_eq!(limits(8, 2).max_for_latency(Duration::from_secs(10)), 2);
    }

    #[test]
    fn a_window_that_is_too_large_shrinks_by_half_at_most() {
        let mut window = Window::new(limits(8, 1024));
        (0..2000).for_each(|_| window.apply(Grow));
        let sizes = [32; 6].map(|max| {
            window.shrink_towards(max);
            window.size()
        });
        assert_eq!(sizes, [512, 256, 128, 64, 32, 32]);
        window.shrink_towards(1024);
        assert_eq!(window.size(), 32);
        window.apply(Grow);
        assert_eq!(window.size(), 33, "it grows fast again");
    }

    #[test]
    fn a_success_that_did_not_fill_the_window_ends_the_back_off_only() {
        let mut window = Window::new(limits(8, 64));
        (0..5).for_each(|_| window.apply(Shrink));
        assert!(window.probe_delay() > Duration::ZERO);
        window.reset_probes();
        assert_eq!((window.size(), window.probe_delay()), (1, Duration::ZERO));
    }

    fn signals() -> impl Strategy<Value = Vec<Signal>> {
        prop::collection::vec(
            prop_oneof![4 => Just(Grow), 1 => Just(Hold), 1 => Just(Shrink)],
            0..400,
        )
    }

    proptest! {
        #[test]
        fn a_window_stays_between_one_and_the_maximum(
            initial in 1..=200_u32, max in 1..=200_u32, signals in signals(),
        ) {
            let mut window = Window::new(limits(initial, max));
            for signal in signals {
                let before = window.size();
                window.apply(signal);
                let size = window.size();
                prop_assert!((1..=max).contains(&size));
                match signal {
                    Grow => prop_assert!(size == before || size == before + 1),
                    Hold => prop_assert_eq!(size, before),
                    Shrink => prop_assert_eq!(size, (before / 2).max(1)),
                }
            }
        }

        #[test]
        fn eight_failures_lead_to_a_probe_and_successes_to_the_maximum(
            signals in signals(), max in 1..=200_u32,
        ) {
            let mut window = Window::new(limits(8, max));
            signals.into_iter().for_each(|signal| window.apply(signal));
            (0..8).for_each(|_| window.apply(Shrink));
            prop_assert_eq!(window.size(), 1);
            (0..max * max).for_each(|_| window.apply(Grow));
            prop_assert_eq!(window.size(), max);
        }
    }
}
