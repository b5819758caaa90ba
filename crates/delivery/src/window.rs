//! How many messages of one endpoint may be under way at once.
//!
//! A window is never below one, so an endpoint that fails is still probed, and never above its
//! limit. It opens fast until the first failure, and carefully above half of where that was:
//! an endpoint that comes back from an outage meets its backlog step by step. Between probes that
//! fail there are growing pauses: many endpoints that hang must not hold every place there is.

use std::num::NonZeroU32;
use std::time::Duration;

use crate::outcome::Signal;

/// The longest pause between probes: so many times the first, and never more than a minute.
const LONGEST: u32 = 6;
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// Where windows start, and where they end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    pub initial: NonZeroU32,
    pub largest: NonZeroU32,
    /// After the first probe that failed; then twice as long each time, as far as it grows.
    pub probe_pause: Duration,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    size: u32,
    /// Below, every success opens the window by one; from here on, a whole window of them.
    slow_start_threshold: u32,
    /// Successes since the last careful step.
    credit: u32,
    /// Probes that failed in a row: messages that set out alone, from a window that could not be
    /// smaller.
    failed_probes: u32,
    largest: u32,
    probe_pause: Duration,
}

impl Window {
    pub fn new(limits: Limits) -> Self {
        let largest = limits.largest.get();
        Self {
            size: limits.initial.get().min(largest),
            slow_start_threshold: largest,
            credit: 0,
            failed_probes: 0,
            largest,
            probe_pause: limits.probe_pause,
        }
    }

    /// A window as it was written down: see [`Window::parts`]. Limits may have changed since.
    pub fn restored(
        limits: Limits,
        [size, slow_start_threshold, credit, failed_probes]: [i32; 4],
    ) -> Self {
        let largest = limits.largest.get();
        let read = |part: i32| u32::try_from(part).unwrap_or_default();
        Self {
            size: read(size).clamp(1, largest),
            slow_start_threshold: read(slow_start_threshold).clamp(1, largest),
            credit: read(credit),
            failed_probes: read(failed_probes),
            largest,
            probe_pause: limits.probe_pause,
        }
    }

    /// What must be written down of it: size, from where it opens with care, credit, and how many
    /// probes failed.
    pub fn parts(&self) -> [i32; 4] {
        [self.size, self.slow_start_threshold, self.credit, self.failed_probes]
            .map(|part| part.try_into().unwrap_or(i32::MAX))
    }

    /// How long to leave the endpoint alone before the next message.
    pub fn pause(&self) -> Duration {
        match self.failed_probes.checked_sub(1) {
            None => Duration::ZERO,
            Some(doubled) => {
                let factor = 2_u32.saturating_pow(doubled).min(LONGEST);
                self.probe_pause.saturating_mul(factor).min(LONGEST_PAUSE)
            }
        }
    }

    /// Whether another success would change nothing.
    pub fn is_wide_open(&self) -> bool {
        self.size == self.largest
    }

    pub fn size(&self) -> u32 {
        self.size
    }

    pub fn learn(&mut self, signal: Signal) {
        match signal {
            Signal::Grow => self.grow(),
            // It was prompt, so this was no probe that failed.
            Signal::Hold => self.failed_probes = 0,
            Signal::Shrink => self.shrink(),
        }
    }

    fn grow(&mut self) {
        self.failed_probes = 0;
        if self.size < self.slow_start_threshold {
            self.size += 1;
        } else {
            self.credit += 1;
            if self.credit >= self.size {
                self.credit = 0;
                self.size += 1;
            }
        }
        self.size = self.size.min(self.largest);
    }

    fn shrink(&mut self) {
        if self.size == 1 {
            self.failed_probes = self.failed_probes.saturating_add(1);
        }
        self.narrow();
    }

    /// Learns of a failure that is no probe's: its message had set out before the last failure was
    /// known, together with others.
    pub fn narrow(&mut self) {
        self.size = (self.size / 2).max(1);
        self.slow_start_threshold = self.size;
        self.credit = 0;
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;
    use std::time::Duration;

    use proptest::prelude::*;

    use super::{Limits, Window};
    use crate::outcome::Signal::{self, Grow, Hold, Shrink};

    fn limits(initial: u32, largest: u32) -> Limits {
        let limit = |n| NonZeroU32::new(n).unwrap();
        let probe_pause = Duration::from_secs(10);
        Limits { initial: limit(initial), largest: limit(largest), probe_pause }
    }

    fn after(mut window: Window, signals: &[(Signal, u32)]) -> u32 {
        for (signal, times) in signals {
            (0..*times).for_each(|_| window.learn(*signal));
        }
        window.size()
    }

    #[track_caller]
    fn check(signals: &[(Signal, u32)], want: u32) {
        assert_eq!(after(Window::new(limits(8, 64)), signals), want);
    }

    #[test]
    fn a_window_opens_fast_halves_and_then_opens_with_care() {
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
    fn a_window_reads_back_as_it_was_written() {
        let mut window = Window::new(limits(8, 64));
        for signal in [Grow, Grow, Shrink, Grow, Hold, Shrink, Shrink, Shrink, Shrink, Shrink] {
            window.learn(signal);
            assert_eq!(Window::restored(limits(8, 64), window.parts()), window);
        }
        assert_eq!(Window::restored(limits(1, 4), [64, 64, 0, 0]).size(), 4);
        assert_eq!(Window::restored(limits(1, 4), [0, -1, -1, -1]).size(), 1);
    }

    #[test]
    fn pauses_between_failing_probes_grow_and_end_with_the_first_prompt_answer() {
        let mut window = Window::new(limits(8, 64));
        let mut pauses = |signal| {
            window.learn(signal);
            window.pause().as_secs()
        };
        let failing = [Shrink; 9].map(&mut pauses);
        assert_eq!(failing, [0, 0, 0, 10, 20, 40, 60, 60, 60]);
        assert_eq!([Hold, Shrink, Shrink].map(&mut pauses), [0, 10, 20]);
        assert_eq!([Grow, Shrink, Shrink].map(pauses), [0, 0, 10]);
    }

    #[test]
    fn a_window_begins_no_wider_than_it_may_become() {
        assert_eq!(Window::new(limits(100, 64)).size(), 64);
    }

    fn signals() -> impl Strategy<Value = Vec<Signal>> {
        prop::collection::vec(
            prop_oneof![4 => Just(Grow), 1 => Just(Hold), 1 => Just(Shrink)],
            0..400,
        )
    }

    proptest! {
        #[test]
        fn a_window_stays_between_one_and_its_limit(
            initial in 1..=200_u32, largest in 1..=200_u32, signals in signals(),
        ) {
            let mut window = Window::new(limits(initial, largest));
            for signal in signals {
                let before = window.size();
                window.learn(signal);
                let size = window.size();
                prop_assert!((1..=largest).contains(&size));
                match signal {
                    Grow => prop_assert!(size == before || size == before + 1),
                    Hold => prop_assert_eq!(size, before),
                    Shrink => prop_assert_eq!(size, (before / 2).max(1)),
                }
            }
        }

        #[test]
        fn eight_failures_end_at_one_probe_and_success_always_leads_back(
            signals in signals(), largest in 1..=200_u32,
        ) {
            let mut window = Window::new(limits(8, largest));
            signals.into_iter().for_each(|signal| window.learn(signal));
            (0..8).for_each(|_| window.learn(Shrink));
            prop_assert_eq!(window.size(), 1);
            (0..largest * largest).for_each(|_| window.learn(Grow));
            prop_assert_eq!(window.size(), largest);
        }
    }
}
