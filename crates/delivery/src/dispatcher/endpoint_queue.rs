//! Endpoints that have due deliveries, and the event after which a poll checks each of them again.
//!
//! Endpoints without due deliveries are not here, so the queue is as large as the work that waits.

use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap, VecDeque};

use platform::Timestamp;

use crate::store::EndpointKey;

/// The event after which a poll checks an endpoint again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WaitsFor {
    /// Nothing but its place in the queue: the next poll with space in its batch checks the endpoint.
    NextPoll,
    /// The settlement of one of its deliveries in flight: they fill the window, or use up the memory that the
    /// endpoint may have.
    Settlement,
    /// The time of the next probe.
    Probe(Timestamp),
    /// The merchant or an operator resumes the endpoint.
    Resume,
}

#[derive(Debug)]
struct EndpointEntry {
    /// No ready delivery of the endpoint is due before this time.
    none_due_before: Timestamp,
    waits_for: WaitsFor,
}

#[derive(Debug, Default)]
pub(super) struct EndpointQueue {
    endpoints: HashMap<EndpointKey, EndpointEntry>,
    /// Endpoints that wait for [`WaitsFor::NextPoll`], except those that were taken and not put back yet.
    /// An endpoint that was served goes to the end, so the endpoints share the batches equally.
    next_poll: VecDeque<EndpointKey>,
    /// Times of probes. The entry of an endpoint that was checked before its probe stays, and is skipped when
    /// its time comes.
    probes: BTreeSet<(Timestamp, EndpointKey)>,
    /// Number of endpoints that wait for [`WaitsFor::Settlement`].
    awaiting_settlement: usize,
}

impl EndpointQueue {
    /// Notes that a delivery of the endpoint is due since `first_at`. An endpoint that waits for
    /// something keeps waiting.
    pub(super) fn add_due(&mut self, key: EndpointKey, first_at: Timestamp) {
        match self.endpoints.entry(key) {
            Entry::Occupied(mut known) => {
                let none_due_before = &mut known.get_mut().none_due_before;
                *none_due_before = (*none_due_before).min(first_at);
            }
            Entry::Vacant(new) => {
                self.next_poll.push_back(new.key().clone());
                let waits_for = WaitsFor::NextPoll;
                new.insert(EndpointEntry { none_due_before: first_at, waits_for });
            }
        }
    }

    /// Lets the next poll check an endpoint, whatever it waits for.
    pub(super) fn recheck(&mut self, key: EndpointKey, first_at: Timestamp) {
        self.add_due(key.clone(), first_at);
        self.set_waits_for(&key, WaitsFor::NextPoll);
    }

    /// Takes up to `max` endpoints for a poll, with the time before which none of their deliveries is due.
    /// Each must be put back, or removed.
    pub(super) fn take_for_poll(&mut self, max: usize) -> Vec<(EndpointKey, Timestamp)> {
        let count = max.min(self.next_poll.len());
        let taken = self.next_poll.drain(..count);
        taken
            .filter_map(|key| self.endpoints.get(&key).map(|it| (key, it.none_due_before)))
            .collect()
    }

    /// Whether no endpoint has due deliveries.
    pub(super) fn is_empty(&self) -> bool {
        self.endpoints.is_empty()
    }

    /// Whether an endpoint waits for the next poll.
    pub(super) fn has_next_poll(&self) -> bool {
        !self.next_poll.is_empty()
    }

    pub(super) fn none_due_before(&self, key: &EndpointKey) -> Option<Timestamp> {
        self.endpoints.get(key).map(|endpoint| endpoint.none_due_before)
    }

    /// Puts an endpoint back that has more due deliveries.
    pub(super) fn put_back(&mut self, key: &EndpointKey, none_due_before: Timestamp) {
        if let Some(endpoint) = self.endpoints.get_mut(key) {
            endpoint.none_due_before = none_due_before;
            self.next_poll.push_back(key.clone());
        }
    }

    /// Puts an endpoint back that must wait for an event.
    pub(super) fn put_back_waiting(&mut self, key: &EndpointKey, event: WaitsFor) {
        if let WaitsFor::Probe(at) = event {
            self.probes.insert((at, key.clone()));
        }
        self.set_waits_for(key, event);
    }

    /// Removes an endpoint that has no due deliveries.
    pub(super) fn remove(&mut self, key: &EndpointKey) {
        self.endpoints.remove(key);
    }

    /// Notes that a delivery of the endpoint left the broker. An endpoint that waits for a settlement or a
    /// probe is checked again; returns whether it did wait. A message that was sent together with failed ones
    /// may have succeeded, so that no probe is needed.
    pub(super) fn note_left_broker(&mut self, key: &EndpointKey) -> bool {
        let event = self.endpoints.get(key).map(|endpoint| endpoint.waits_for);
        let waited = matches!(event, Some(WaitsFor::Settlement | WaitsFor::Probe(_)));
        if waited {
            self.set_waits_for(key, WaitsFor::NextPoll);
        }
        waited
    }

    /// Lets the next poll check the endpoints whose probe is due.
    pub(super) fn start_probes(&mut self, now: Timestamp) {
        while let Some((at, key)) = self.probes.pop_first() {
            if at > now {
                self.probes.insert((at, key));
                return;
            }
            let event = self.endpoints.get(&key).map(|endpoint| endpoint.waits_for);
            if event == Some(WaitsFor::Probe(at)) {
                self.set_waits_for(&key, WaitsFor::NextPoll);
            }
        }
    }

    /// Lets the next poll check the endpoints for which `is_over` says that their event has happened.
    pub(super) fn recheck_if(&mut self, is_over: impl Fn(&EndpointKey, WaitsFor) -> bool) {
        let endpoints = self.endpoints.iter();
        let over = endpoints.filter(|(key, endpoint)| is_over(key, endpoint.waits_for));
        for key in over.map(|(key, _)| key.clone()).collect::<Vec<_>>() {
            self.set_waits_for(&key, WaitsFor::NextPoll);
        }
    }

    /// Whether an endpoint waits for a settlement.
    pub(super) fn awaits_settlement(&self) -> bool {
        self.awaiting_settlement > 0
    }

    fn set_waits_for(&mut self, key: &EndpointKey, event: WaitsFor) {
        let Some(endpoint) = self.endpoints.get_mut(key) else { return };
        let before = std::mem::replace(&mut endpoint.waits_for, event);
        if before == event {
            return;
        }
        let awaits = |event| usize::from(event == WaitsFor::Settlement);
        self.awaiting_settlement = self.awaiting_settlement + awaits(event) - awaits(before);
        if event == WaitsFor::NextPoll {
            self.next_poll.push_back(key.clone());
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

    fn taken(queue: &mut EndpointQueue) -> Vec<String> {
        queue.take_for_poll(10).into_iter().map(|((merchant, _), _)| merchant).collect()
    }

    #[test]
    fn endpoints_are_served_one_after_the_other() {
        let mut queue = EndpointQueue::default();
        ["a", "b", "c"].into_iter().for_each(|it| queue.add_due(key(it), second(1)));
        assert_eq!(queue.take_for_poll(2), [(key("a"), second(1)), (key("b"), second(1))]);
        queue.put_back(&key("a"), second(2));
        queue.remove(&key("b"));
        assert_eq!(queue.take_for_poll(2), [(key("c"), second(1)), (key("a"), second(2))]);
        assert!(taken(&mut queue).is_empty());
    }

    #[test]
    fn an_earlier_delivery_of_a_known_endpoint_is_not_skipped() {
        let mut queue = EndpointQueue::default();
        queue.add_due(key("a"), second(5));
        queue.add_due(key("a"), second(3));
        queue.add_due(key("a"), second(9));
        assert_eq!(queue.take_for_poll(10), [(key("a"), second(3))]);
    }

    #[test]
    fn an_endpoint_waits_for_one_of_its_settlements_however_many_messages_arrive() {
        let mut queue = EndpointQueue::default();
        queue.add_due(key("a"), second(1));
        queue.take_for_poll(10);
        queue.put_back_waiting(&key("a"), WaitsFor::Settlement);
        assert!(queue.awaits_settlement());
        queue.add_due(key("a"), second(2));
        assert!(!queue.note_left_broker(&key("b")));
        assert!(taken(&mut queue).is_empty());
        assert!(queue.note_left_broker(&key("a")));
        assert!(!queue.note_left_broker(&key("a")));
        assert_eq!(taken(&mut queue), ["a"]);
        assert!(!queue.awaits_settlement());
    }

    #[test]
    fn a_probe_starts_at_its_time() {
        let mut queue = EndpointQueue::default();
        for (merchant, at) in [("a", 7), ("b", 5)] {
            queue.add_due(key(merchant), second(1));
            queue.take_for_poll(10);
            queue.put_back_waiting(&key(merchant), WaitsFor::Probe(second(at)));
        }
        queue.start_probes(second(4));
        assert!(taken(&mut queue).is_empty());
        queue.start_probes(second(5));
        assert_eq!(taken(&mut queue), ["b"]);
        queue.start_probes(second(7));
        assert_eq!(taken(&mut queue), ["a"]);
    }

    #[test]
    fn a_rechecked_endpoint_does_not_wait_for_its_probe() {
        let mut queue = EndpointQueue::default();
        queue.add_due(key("a"), second(3));
        queue.take_for_poll(10);
        queue.put_back_waiting(&key("a"), WaitsFor::Probe(second(60)));
        queue.recheck(key("a"), second(2));
        assert_eq!(queue.take_for_poll(10), [(key("a"), second(2))]);
        queue.put_back_waiting(&key("a"), WaitsFor::Probe(second(90)));
        queue.start_probes(second(60));
        assert!(taken(&mut queue).is_empty(), "the earlier time is outdated");
    }

    #[test]
    fn an_endpoint_that_waits_for_a_probe_is_checked_after_a_settlement() {
        let mut queue = EndpointQueue::default();
        queue.add_due(key("a"), second(1));
        queue.take_for_poll(10);
        queue.put_back_waiting(&key("a"), WaitsFor::Probe(second(60)));
        assert!(queue.note_left_broker(&key("a")));
        assert_eq!(taken(&mut queue), ["a"]);
        assert!(!queue.awaits_settlement());
    }

    #[test]
    fn a_resumed_endpoint_is_checked_and_a_paused_one_is_not() {
        let mut queue = EndpointQueue::default();
        for merchant in ["paused", "resumed"] {
            queue.add_due(key(merchant), second(1));
        }
        queue.take_for_poll(10);
        queue.put_back_waiting(&key("paused"), WaitsFor::Resume);
        queue.put_back_waiting(&key("resumed"), WaitsFor::Resume);
        queue.recheck_if(|key, event| event == WaitsFor::Resume && key.0 == "resumed");
        assert_eq!(taken(&mut queue), ["resumed"]);
    }
}
