//! Endpoints that have due deliveries, and when the dispatcher checks each of them again.
//!
//! Endpoints without due deliveries are not here, so the schedule is as large as the work that waits.

use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap, VecDeque};

use platform::Timestamp;

use crate::store::EndpointKey;

/// The event after which the dispatcher checks an endpoint again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wait {
    /// It is the endpoint's turn.
    Turn,
    /// A delivery in flight is settled, because the window is full.
    Settlement,
    /// The time of the next probe.
    Probe(Timestamp),
    /// The merchant resumes the endpoint.
    Resume,
}

#[derive(Debug)]
struct Waiting {
    /// No ready delivery of the endpoint is due before this time.
    from: Timestamp,
    wait: Wait,
}

#[derive(Debug, Default)]
pub(super) struct Schedule {
    endpoints: HashMap<EndpointKey, Waiting>,
    /// Endpoints whose wait is [`Wait::Turn`], except those that were taken and not put back yet.
    turns: VecDeque<EndpointKey>,
    /// Times of probes. An endpoint that was checked earlier has an outdated entry.
    probes: BTreeSet<(Timestamp, EndpointKey)>,
    full_windows: usize,
}

impl Schedule {
    /// Notes that a delivery of the endpoint is due since `first_at`. An endpoint that waits for
    /// something keeps waiting.
    pub(super) fn found(&mut self, key: EndpointKey, first_at: Timestamp) {
        match self.endpoints.entry(key) {
            Entry::Occupied(mut known) => {
                let from = &mut known.get_mut().from;
                *from = (*from).min(first_at);
            }
            Entry::Vacant(new) => {
                self.turns.push_back(new.key().clone());
                new.insert(Waiting { from: first_at, wait: Wait::Turn });
            }
        }
    }

    /// Looks at an endpoint again, whatever it waits for.
    pub(super) fn revisit(&mut self, key: EndpointKey, first_at: Timestamp) {
        self.found(key.clone(), first_at);
        self.set_wait(&key, Wait::Turn);
    }

    /// Takes up to `max` endpoints whose turn it is, with the time before which none of their
    /// deliveries is due. Each must be put back, or removed.
    pub(super) fn take_turns(&mut self, max: usize) -> Vec<(EndpointKey, Timestamp)> {
        let count = max.min(self.turns.len());
        let turns = self.turns.drain(..count);
        turns.filter_map(|key| self.endpoints.get(&key).map(|it| (key, it.from))).collect()
    }

    /// Whether it is the turn of an endpoint.
    pub(super) fn has_turns(&self) -> bool {
        !self.turns.is_empty()
    }

    pub(super) fn from(&self, key: &EndpointKey) -> Option<Timestamp> {
        self.endpoints.get(key).map(|endpoint| endpoint.from)
    }

    /// Puts an endpoint back that has more due deliveries, none of them before `from`.
    pub(super) fn put_back(&mut self, key: &EndpointKey, from: Timestamp) {
        if let Some(endpoint) = self.endpoints.get_mut(key) {
            endpoint.from = from;
            self.turns.push_back(key.clone());
        }
    }

    /// Puts an endpoint back that must wait.
    pub(super) fn put_back_waiting(&mut self, key: &EndpointKey, wait: Wait) {
        if let Wait::Probe(at) = wait {
            self.probes.insert((at, key.clone()));
        }
        self.set_wait(key, wait);
    }

    /// Removes an endpoint that has no due deliveries.
    pub(super) fn remove(&mut self, key: &EndpointKey) {
        self.endpoints.remove(key);
    }

    /// Looks at an endpoint again if it waits for a settlement or a probe, and returns whether it does. A
    /// message that was sent together with failed ones may have succeeded, so that no probe is needed.
    pub(super) fn settled(&mut self, key: &EndpointKey) -> bool {
        let wait = self.endpoints.get(key).map(|endpoint| endpoint.wait);
        let waits = matches!(wait, Some(Wait::Settlement | Wait::Probe(_)));
        if waits {
            self.set_wait(key, Wait::Turn);
        }
        waits
    }

    /// Looks at endpoints again whose probe is due.
    pub(super) fn start_probes(&mut self, now: Timestamp) {
        while let Some((at, key)) = self.probes.pop_first() {
            if at > now {
                self.probes.insert((at, key));
                return;
            }
            if self.endpoints.get(&key).is_some_and(|endpoint| endpoint.wait == Wait::Probe(at)) {
                self.set_wait(&key, Wait::Turn);
            }
        }
    }

    /// Looks at endpoints again that waited for their merchant. `is_over` decides for each wait.
    pub(super) fn merchants_changed(&mut self, is_over: impl Fn(&EndpointKey, Wait) -> bool) {
        let waiting = self.endpoints.iter().filter(|(key, endpoint)| is_over(key, endpoint.wait));
        for key in waiting.map(|(key, _)| key.clone()).collect::<Vec<_>>() {
            self.set_wait(&key, Wait::Turn);
        }
    }

    /// Whether an endpoint waits for a settlement.
    pub(super) fn has_full_windows(&self) -> bool {
        self.full_windows > 0
    }

    fn set_wait(&mut self, key: &EndpointKey, wait: Wait) {
        let Some(endpoint) = self.endpoints.get_mut(key) else { return };
        let before = std::mem::replace(&mut endpoint.wait, wait);
        if before == wait {
            return;
        }
        let full = |wait| usize::from(wait == Wait::Settlement);
        self.full_windows = self.full_windows + full(wait) - full(before);
        if wait == Wait::Turn {
            self.turns.push_back(key.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use chrono::TimeDelta;

    use super::*;

    fn key(merchant: &str) -> EndpointKey {
        (merchant.to_owned(), "rma".to_owned())
    }

    fn second(second: i64) -> Timestamp {
        Timestamp::UNIX_EPOCH + TimeDelta::seconds(second)
    }

    fn taken(schedule: &mut Schedule) -> Vec<String> {
        schedule.take_turns(10).into_iter().map(|((merchant, _), _)| merchant).collect()
    }

    #[test]
    fn endpoints_take_turns() {
        let mut schedule = Schedule::default();
        ["a", "b", "c"].into_iter().for_each(|it| schedule.found(key(it), second(1)));
        assert_eq!(schedule.take_turns(2), [(key("a"), second(1)), (key("b"), second(1))]);
        schedule.put_back(&key("a"), second(2));
        schedule.remove(&key("b"));
        assert_eq!(schedule.take_turns(2), [(key("c"), second(1)), (key("a"), second(2))]);
        assert!(taken(&mut schedule).is_empty());
    }

    #[test]
    fn an_earlier_delivery_of_a_known_endpoint_is_not_skipped() {
        let mut schedule = Schedule::default();
        schedule.found(key("a"), second(5));
        schedule.found(key("a"), second(3));
        schedule.found(key("a"), second(9));
        assert_eq!(schedule.take_turns(10), [(key("a"), second(3))]);
    }

    #[test]
    fn an_endpoint_waits_for_one_of_its_settlements_however_many_messages_arrive() {
        let mut schedule = Schedule::default();
        schedule.found(key("a"), second(1));
        schedule.take_turns(10);
        schedule.put_back_waiting(&key("a"), Wait::Settlement);
        assert!(schedule.has_full_windows());
        schedule.found(key("a"), second(2));
        assert!(!schedule.settled(&key("b")));
        assert!(taken(&mut schedule).is_empty());
        assert!(schedule.settled(&key("a")));
        assert!(!schedule.settled(&key("a")));
        assert_eq!(taken(&mut schedule), ["a"]);
        assert!(!schedule.has_full_windows());
    }

    #[test]
    fn a_probe_starts_at_its_time() {
        let mut schedule = Schedule::default();
        for (merchant, at) in [("a", 7), ("b", 5)] {
            schedule.found(key(merchant), second(1));
            schedule.take_turns(10);
            schedule.put_back_waiting(&key(merchant), Wait::Probe(second(at)));
        }
        schedule.start_probes(second(4));
        assert!(taken(&mut schedule).is_empty());
        schedule.start_probes(second(5));
        assert_eq!(taken(&mut schedule), ["b"]);
        schedule.start_probes(second(7));
        assert_eq!(taken(&mut schedule), ["a"]);
    }

    #[test]
    fn a_revisited_endpoint_does_not_wait_for_its_probe() {
        let mut schedule = Schedule::default();
        schedule.found(key("a"), second(3));
        schedule.take_turns(10);
        schedule.put_back_waiting(&key("a"), Wait::Probe(second(60)));
        schedule.revisit(key("a"), second(2));
        assert_eq!(schedule.take_turns(10), [(key("a"), second(2))]);
        schedule.put_back_waiting(&key("a"), Wait::Probe(second(90)));
        schedule.start_probes(second(60));
        assert!(taken(&mut schedule).is_empty(), "the earlier time is outdated");
    }

    #[test]
    fn an_endpoint_that_waits_for_a_probe_is_checked_after_a_settlement() {
        let mut schedule = Schedule::default();
        schedule.found(key("a"), second(1));
        schedule.take_turns(10);
        schedule.put_back_waiting(&key("a"), Wait::Probe(second(60)));
        assert!(schedule.settled(&key("a")));
        assert_eq!(taken(&mut schedule), ["a"]);
        assert!(!schedule.has_full_windows());
    }

    #[test]
    fn a_resumed_endpoint_is_checked_and_a_paused_one_is_not() {
        let mut schedule = Schedule::default();
        for merchant in ["paused", "resumed"] {
            schedule.found(key(merchant), second(1));
        }
        schedule.take_turns(10);
        schedule.put_back_waiting(&key("paused"), Wait::Resume);
        schedule.put_back_waiting(&key("resumed"), Wait::Resume);
        schedule.merchants_changed(|key, wait| wait == Wait::Resume && key.0 == "resumed");
        assert_eq!(taken(&mut schedule), ["resumed"]);
    }
}
