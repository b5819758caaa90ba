//! Which messages of a subscription may be acknowledged: everything up to the oldest one that is
//! under way, in one go.
//!
//! The broker sends no more than the prefetch beyond the last acknowledged message. One that takes
//! long, or that too many others wait behind, is therefore let go of: it counts as settled here,
//! and its row and lease carry it.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use tokio::time::Instant;

/// A message that takes longer than this is let go of.
pub(crate) const SLOW: Duration = Duration::from_secs(1);

/// The messages of one subscription, by the numbers it gave them.
#[derive(Debug)]
pub(crate) struct AckTracker {
    /// So many may have come after one that is under way.
    most_behind: u64,
    under_way: BTreeMap<u64, Instant>,
    /// Those that nobody could read; they are no longer ours to acknowledge.
    dead_letter: BTreeSet<u64>,
    newest: u64,
    acknowledged: u64,
}

impl AckTracker {
    pub(crate) fn new(prefetch: u16) -> Self {
        // The rest of what the broker may send is enough to keep everyone busy meanwhile.
        let most_behind = u64::from(prefetch) * 3 / 4;
        let (under_way, dead_letter) = (BTreeMap::new(), BTreeSet::new());
        Self { most_behind, under_way, dead_letter, newest: 0, acknowledged: 0 }
    }

    pub(crate) fn arrived(&mut self, number: u64) {
        self.newest = self.newest.max(number);
    }

    pub(crate) fn set_out(&mut self, number: u64, now: Instant) {
        self.under_way.insert(number, now);
    }

    pub(crate) fn settled(&mut self, number: u64) {
        self.under_way.remove(&number);
    }

    pub(crate) fn dead_letter(&mut self, number: u64) {
        self.dead_letter.insert(number);
    }

    /// Whatever is under way is no longer waited for.
    pub(crate) fn let_go(&mut self) {
        self.under_way.clear();
    }

    /// Up to which message all are to be acknowledged now, if any are.
    pub(crate) fn due(&mut self, now: Instant) -> Option<u64> {
        let (newest, most_behind) = (self.newest, self.most_behind);
        self.under_way.retain(|number, since| {
            newest - number <= most_behind && now.duration_since(*since) < SLOW
        });
        let mut through = self.under_way.keys().next().map_or(newest, |oldest| oldest - 1);
        while self.dead_letter.contains(&through) {
            through -= 1;
        }
        if through <= self.acknowledged {
            return None;
        }
        self.acknowledged = through;
        Some(through)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PREFETCH: u16 = 8;

    /// AckTracker of messages that came and set out at once.
    fn received(numbers: std::ops::RangeInclusive<u64>, at: Instant) -> AckTracker {
        let mut receipts = AckTracker::new(PREFETCH);
        for number in numbers {
            receipts.arrived(number);
            receipts.set_out(number, at);
        }
        receipts
    }

    #[test]
    fn everything_before_the_oldest_under_way_is_acknowledged_once() {
        let now = Instant::now();
        let mut receipts = received(1..=5, now);
        assert_eq!(receipts.due(now), None);
        [2, 3].into_iter().for_each(|number| receipts.settled(number));
        assert_eq!(receipts.due(now), None);
        receipts.settled(1);
        assert_eq!(receipts.due(now), Some(3));
        assert_eq!(receipts.due(now), None);
        [4, 5].into_iter().for_each(|number| receipts.settled(number));
        assert_eq!(receipts.due(now), Some(5));
    }

    #[test]
    fn a_slow_message_holds_nobody_up_for_longer_than_a_second() {
        let now = Instant::now();
        let mut receipts = received(1..=2, now);
        receipts.settled(2);
        assert_eq!(receipts.due(now + SLOW / 2), None);
        assert_eq!(receipts.due(now + SLOW), Some(2));
    }

    #[test]
    fn a_hanging_message_is_let_go_of_before_the_broker_stops_sending() {
        let now = Instant::now();
        let mut receipts = received(1..=1, now);
        for number in 2..=7 {
            receipts.arrived(number);
            assert_eq!(receipts.due(now), None, "after {number}");
        }
        receipts.arrived(8);
        assert_eq!(receipts.due(now), Some(8));
    }

    #[test]
    fn what_was_put_aside_is_not_acknowledged() {
        let now = Instant::now();
        let mut receipts = received(1..=3, now);
        receipts.arrived(4);
        receipts.dead_letter(4);
        (1..=3).for_each(|number| receipts.settled(number));
        assert_eq!(receipts.due(now), Some(3));
    }
}
