//! Decides up to which delivery tag a subscription is acknowledged: below the oldest message that is
//! still in flight.
//!
//! The broker delivers at most the prefetch beyond the last acknowledged message. A message that is
//! slow, or has too many behind it, is therefore acknowledged before it is settled. If the process
//! then dies, the lease of its row expires and it is sent again.
//!
//! Each acknowledgement is an entry in the log of the queue, which the broker writes to disk. Messages are
//! therefore acknowledged in groups. Until then, a copy that the broker delivers again is recognised by its claim.
//!
//! The methods are named for what happened to a message.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use tokio::time::Instant;

/// An attempt that takes longer is slow.
pub(crate) const SLOW_AFTER: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(crate) struct AckTracker {
    /// Messages that may be received after one that is in flight.
    max_behind: u64,
    /// Messages that are acknowledged together.
    group: u64,
    in_flight: BTreeMap<u64, Instant>,
    /// Tags that were rejected; acknowledging them again would be an error.
    rejected: BTreeSet<u64>,
    newest: u64,
    acknowledged: u64,
}

impl AckTracker {
    pub(crate) fn new(prefetch: u16) -> Self {
        // The last quarter of the prefetch keeps the sender busy until the acknowledgement arrives.
        let max_behind = u64::from(prefetch) * 3 / 4;
        let group = u64::from(prefetch).div_ceil(4);
        let in_flight = BTreeMap::new();
        let rejected = BTreeSet::new();
        Self { max_behind, group, in_flight, rejected, newest: 0, acknowledged: 0 }
    }

    pub(crate) fn received(&mut self, tag: u64) {
        self.newest = self.newest.max(tag);
    }

    pub(crate) fn started(&mut self, tag: u64, now: Instant) {
        self.in_flight.insert(tag, now);
    }

    pub(crate) fn settled(&mut self, tag: u64) {
        self.in_flight.remove(&tag);
    }

    pub(crate) fn rejected(&mut self, tag: u64) {
        self.rejected.insert(tag);
    }

    /// Lets all messages be acknowledged, settled or not.
    pub(crate) fn release_all(&mut self) {
        self.in_flight.clear();
    }

    /// Whether the broker waits for the acknowledgement of a message.
    pub(crate) fn is_awaited(&self) -> bool {
        self.acknowledged < self.newest
    }

    /// Returns the tag to acknowledge now, together with all before it.
    pub(crate) fn due(&mut self, now: Instant) -> Option<u64> {
        let up_to = self.last_due(now)?;
        self.acknowledged = up_to;
        Some(up_to)
    }

    /// Like [`AckTracker::due`], but only for a whole group, or if the broker is about to deliver nothing more.
    pub(crate) fn due_group(&mut self, now: Instant) -> Option<u64> {
        let up_to = self.last_due(now)?;
        let is_group = up_to - self.acknowledged >= self.group;
        let is_urgent = self.newest - self.acknowledged > self.max_behind;
        (is_group || is_urgent).then(|| {
            self.acknowledged = up_to;
            up_to
        })
    }

    /// Returns the last tag that can be acknowledged, if it is not acknowledged yet.
    fn last_due(&mut self, now: Instant) -> Option<u64> {
        let newest = self.newest;
        let max_behind = self.max_behind;
        self.in_flight.retain(|tag, started| {
            newest - tag <= max_behind && now.duration_since(*started) < SLOW_AFTER
        });
        let mut up_to = self.in_flight.keys().next().map_or(newest, |oldest| oldest - 1);
        while self.rejected.contains(&up_to) {
            up_to -= 1;
        }
        (up_to > self.acknowledged).then_some(up_to)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PREFETCH: u16 = 8;

    /// Tracks messages that were received and started at once.
    fn tracker(tags: std::ops::RangeInclusive<u64>, at: Instant) -> AckTracker {
        let mut acks = AckTracker::new(PREFETCH);
        for tag in tags {
            acks.received(tag);
            acks.started(tag, at);
        }
        acks
    }

    #[test]
    fn messages_before_the_oldest_in_flight_are_acknowledged_once() {
        let now = Instant::now();
        let mut acks = tracker(1..=5, now);
        assert_eq!(acks.due(now), None);
        [2, 3].into_iter().for_each(|tag| acks.settled(tag));
        assert_eq!(acks.due(now), None);
        acks.settled(1);
        assert_eq!(acks.due(now), Some(3));
        assert_eq!(acks.due(now), None);
        [4, 5].into_iter().for_each(|tag| acks.settled(tag));
        assert_eq!(acks.due(now), Some(5));
    }

    #[test]
    fn a_slow_message_delays_acknowledgements_by_a_second_at_most() {
        let now = Instant::now();
        let mut acks = tracker(1..=2, now);
        acks.settled(2);
        assert_eq!(acks.due(now + SLOW_AFTER / 2), None);
        assert_eq!(acks.due(now + SLOW_AFTER), Some(2));
    }

    #[test]
    fn a_message_in_flight_is_acknowledged_before_the_prefetch_is_used_up() {
        let now = Instant::now();
        let mut acks = tracker(1..=1, now);
        for tag in 2..=7 {
            acks.received(tag);
            assert_eq!(acks.due(now), None, "after {tag}");
        }
        acks.received(8);
        assert_eq!(acks.due(now), Some(8));
    }

    #[test]
    fn messages_are_acknowledged_in_groups_while_the_broker_delivers_more() {
        let now = Instant::now();
        let mut acks = tracker(1..=2, now);
        [1, 2].into_iter().for_each(|tag| acks.settled(tag));
        assert_eq!(acks.due_group(now), Some(2));
        assert!(!acks.is_awaited());
        acks.received(3);
        assert_eq!(acks.due_group(now), None);
        assert!(acks.is_awaited());
        assert_eq!(acks.due(now), Some(3));
    }

    #[test]
    fn a_single_message_is_acknowledged_at_once_if_the_prefetch_is_nearly_used_up() {
        let now = Instant::now();
        let mut acks = tracker(1..=6, now);
        acks.settled(1);
        assert_eq!(acks.due_group(now), None);
        acks.received(7);
        acks.started(7, now);
        assert_eq!(acks.due_group(now), Some(1));
    }

    #[test]
    fn a_rejected_message_is_not_acknowledged() {
        let now = Instant::now();
        let mut acks = tracker(1..=3, now);
        acks.received(4);
        acks.rejected(4);
        (1..=3).for_each(|tag| acks.settled(tag));
        assert_eq!(acks.due(now), Some(3));
    }
}
