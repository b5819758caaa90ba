//! How many messages of one endpoint may be under way at once.
//!
//! A window is never below one, so an endpoint that fails is still probed, and never above its
//! limit. It opens fast until the first failure, and carefully above half of where that was:
//! an endpoint that comes back from an outage meets its backlog step by step.

use std::num::NonZeroU32;

use crate::outcome::Signal;

/// Where windows start, and where they end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    pub initial: NonZeroU32,
    pub largest: NonZeroU32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    size: u32,
    /// Below, every success opens the window by one; from here on, a whole window of them.
    careful_from: u32,
    /// Successes since the last careful step.
    credit: u32,
    largest: u32,
}

impl Window {
    pub fn new(limits: Limits) -> Self {
        let largest = limits.largest.get();
        Self { size: limits.initial.get().min(largest), careful_from: largest, credit: 0, largest }
    }

    /// A window known to have failed before, for instance before a restart.
    pub fn probing(limits: Limits) -> Self {
        Self { size: 1, careful_from: 1, credit: 0, largest: limits.largest.get() }
    }

    /// A window as it was written down: see [`Window::parts`]. Limits may have changed since.
    pub fn restored(limits: Limits, [size, careful_from, credit]: [i32; 3]) -> Self {
        let largest = limits.largest.get();
        let read = |part: i32| u32::try_from(part).unwrap_or_default();
        Self {
            size: read(size).clamp(1, largest),
            careful_from: read(careful_from).clamp(1, largest),
            credit: read(credit),
            largest,
        }
    }

    /// What must be written down of it: size, from where it opens with care, and credit.
    pub fn parts(&self) -> [i32; 3] {
        [self.size, self.careful_from, self.credit].map(|part| part.try_into().unwrap_or(i32::MAX))
    }

    /// Whether another success would change nothing.
    pub fn is_wide_open(&self) -> bool {
        self.size == self.largest
    }

    pub fn size(&self) -> u32 {
        self.size
    }

    /// How many more may be sent beside those under way.
    pub fn room(&self, under_way: u32) -> u32 {
        self.size.saturating_sub(under_way)
    }

    pub fn learn(&mut self, signal: Signal) {
        match signal {
            Signal::Grow => self.grow(),
            Signal::Hold => {}
            Signal::Shrink => self.shrink(),
        }
    }

    fn grow(&mut self) {
        if self.size < self.careful_from {
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
        self.size = (self.size / 2).max(1);
        self.careful_from = self.size;
        self.credit = 0;
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use proptest::prelude::*;

    use super::{Limits, Window};
    use crate::outcome::Signal::{self, Grow, Hold, Shrink};

    fn limits(initial: u32, largest: u32) -> Limits {
        let limit = |n| NonZeroU32::new(n).unwrap();
        Limits { initial: limit(initial), largest: limit(largest) }
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
        for signal in [Grow, Grow, Shrink, Grow, Grow, Hold] {
            window.learn(signal);
            assert_eq!(Window::restored(limits(8, 64), window.parts()), window);
        }
        assert_eq!(Window::restored(limits(1, 4), [64, 64, 0]).size(), 4);
        assert_eq!(Window::restored(limits(1, 4), [0, -1, -1]).size(), 1);
    }

    #[test]
    fn room_is_what_the_window_leaves() {
        let window = Window::new(limits(8, 64));
        assert_eq!([0, 7, 8, 9].map(|under_way| window.room(under_way)), [8, 1, 0, 0]);
        assert_eq!(Window::probing(limits(8, 64)).room(0), 1);
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
