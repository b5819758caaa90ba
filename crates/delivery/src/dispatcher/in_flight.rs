//! Deliveries in flight, from their claim to their settlement, and the memory that each endpoint may use.
//!
//! An endpoint may use an eighth of the memory that is still free. One busy endpoint alone ends at a ninth of
//! all: it has x, leaves 8 x free, and an eighth of that is x. However many endpoints begin to hang at the same
//! time, some memory is left for the others. A fast endpoint needs little: messages in flight are rate times
//! latency (Little's law).

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use platform::Timestamp;
use tokio::time::Instant;
use uuid::Uuid;

use crate::ack_tracker::SLOW_AFTER;
use crate::store::EndpointKey;

/// One endpoint may use the free memory divided by this number.
const ENDPOINT_DIVISOR: u32 = 8;
/// Messages that an endpoint may have in flight however little memory is free, unless it is slow.
const MIN_MESSAGES: u32 = 4;
/// Memory of a message in KiB, if none is in flight.
const DEFAULT_KIB: u32 = 17;
/// A delivery in flight is looked up after a quarter of its age, within these bounds. Another replica may
/// have settled it.
const MIN_CHECK_INTERVAL: Duration = Duration::from_millis(50);
const MAX_CHECK_INTERVAL: Duration = Duration::from_secs(2);

#[derive(Debug)]
struct InFlightDelivery {
    endpoint: EndpointKey,
    kib: u32,
    queued_at: Instant,
    leased_until: Timestamp,
    check_at: Instant,
    is_slow: bool,
}

/// Number and memory of the deliveries of one endpoint, or of all.
#[derive(Clone, Copy, Debug, Default)]
struct Usage {
    messages: u32,
    kib: u32,
    /// Part of the above that has been in flight for longer than [`SLOW_AFTER`].
    slow_messages: u32,
    slow_kib: u32,
}

impl Usage {
    fn add(&mut self, delivery: &InFlightDelivery) {
        self.messages += 1;
        self.kib += delivery.kib;
        if delivery.is_slow {
            self.add_slow(delivery);
        }
    }

    fn add_slow(&mut self, delivery: &InFlightDelivery) {
        self.slow_messages += 1;
        self.slow_kib += delivery.kib;
    }

    fn remove(&mut self, delivery: &InFlightDelivery) {
        self.messages -= 1;
        self.kib -= delivery.kib;
        if delivery.is_slow {
            self.slow_messages -= 1;
            self.slow_kib -= delivery.kib;
        }
    }
}

#[derive(Debug)]
pub(super) struct InFlightDeliveries {
    budget: u32,
    all: Usage,
    endpoints: HashMap<EndpointKey, Usage>,
    deliveries: HashMap<Uuid, InFlightDelivery>,
    checks: BTreeSet<(Instant, Uuid)>,
}

impl InFlightDeliveries {
    /// `budget` is the memory in KiB of a process that sends.
    pub(super) fn new(budget: u32) -> Self {
        Self {
            budget,
            all: Usage::default(),
            endpoints: HashMap::new(),
            deliveries: HashMap::new(),
            checks: BTreeSet::new(),
        }
    }

    pub(super) fn insert(
        &mut self,
        id: Uuid,
        endpoint: EndpointKey,
        kib: u32,
        leased_until: Timestamp,
        now: Instant,
    ) {
        self.remove(id);
        let check_at = now + MIN_CHECK_INTERVAL;
        let is_slow = false;
        let queued_at = now;
        let delivery =
            InFlightDelivery { endpoint, kib, queued_at, leased_until, check_at, is_slow };
        self.all.add(&delivery);
        self.endpoints.entry(delivery.endpoint.clone()).or_default().add(&delivery);
        self.checks.insert((check_at, id));
        self.deliveries.insert(id, delivery);
    }

    /// Removes a delivery that is no longer queued, and returns its endpoint.
    pub(super) fn remove(&mut self, id: Uuid) -> Option<EndpointKey> {
        let delivery = self.deliveries.remove(&id)?;
        self.checks.remove(&(delivery.check_at, id));
        self.all.remove(&delivery);
        if let Some(usage) = self.endpoints.get_mut(&delivery.endpoint) {
            usage.remove(&delivery);
            if usage.messages == 0 {
                self.endpoints.remove(&delivery.endpoint);
            }
        }
        Some(delivery.endpoint)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.deliveries.is_empty()
    }

    pub(super) fn contains(&self, id: Uuid) -> bool {
        self.deliveries.contains_key(&id)
    }

    pub(super) fn ids(&self) -> impl Iterator<Item = Uuid> + '_ {
        self.deliveries.keys().copied()
    }

    /// Number of messages of an endpoint.
    pub(super) fn messages(&self, endpoint: &EndpointKey) -> u32 {
        self.endpoints.get(endpoint).map_or(0, |usage| usage.messages)
    }

    /// Average memory of a message in KiB.
    pub(super) fn average_kib(&self) -> u32 {
        self.all.kib.checked_div(self.all.messages).unwrap_or(DEFAULT_KIB).max(1)
    }

    /// Number of messages that the endpoint may have in flight beside those that it has. `reserved` KiB are
    /// about to be used. Slow endpoints, and endpoints whose probes fail, share half of the memory.
    pub(super) fn free_slots(&self, endpoint: &EndpointKey, fails: bool, reserved: u32) -> u32 {
        let usage = self.endpoints.get(endpoint).copied().unwrap_or_default();
        let is_slow = fails || usage.slow_messages > 0;
        let mut free = self.budget.saturating_sub(self.all.kib.saturating_add(reserved));
        if is_slow {
            free = free.min((self.budget / 2).saturating_sub(self.all.slow_kib));
        }
        let is_idle = self.all.messages == 0 && reserved == 0;
        if is_slow && is_idle {
            // A budget of one message is for slow endpoints too.
            free = free.max(1);
        }
        if free == 0 {
            return 0;
        }
        let share = (free / ENDPOINT_DIVISOR).saturating_sub(usage.kib) / self.average_kib();
        let min_messages = if is_slow { 1 } else { MIN_MESSAGES };
        share.max(min_messages.saturating_sub(usage.messages))
    }

    /// Takes up to `max` deliveries that are due to be looked up, because another replica may have settled
    /// them. Those that have been in flight for [`SLOW_AFTER`] count as slow from now on.
    pub(super) fn take_checks(&mut self, now: Instant, max: usize) -> Vec<Uuid> {
        let mut taken = Vec::new();
        while taken.len() < max
            && let Some((at, id)) = self.checks.pop_first()
        {
            if at > now {
                self.checks.insert((at, id));
                break;
            }
            let Some(delivery) = self.deliveries.get_mut(&id) else { continue };
            let age = now.duration_since(delivery.queued_at);
            delivery.check_at = now + (age / 4).clamp(MIN_CHECK_INTERVAL, MAX_CHECK_INTERVAL);
            self.checks.insert((delivery.check_at, id));
            if age >= SLOW_AFTER {
                self.mark_slow(id);
            }
            taken.push(id);
        }
        taken
    }

    fn mark_slow(&mut self, id: Uuid) {
        let Some(delivery) = self.deliveries.get_mut(&id).filter(|delivery| !delivery.is_slow)
        else {
            return;
        };
        delivery.is_slow = true;
        self.all.add_slow(delivery);
        if let Some(usage) = self.endpoints.get_mut(&delivery.endpoint) {
            usage.add_slow(delivery);
        }
    }

    /// Returns the deliveries whose lease expired.
    pub(super) fn expired(&self, now: Timestamp) -> Vec<Uuid> {
        let expired = self.deliveries.iter().filter(|(_, delivery)| delivery.leased_until <= now);
        expired.map(|(id, _)| *id).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The budget of 64 MiB with small messages.
    const BUDGET: u32 = 65_536;
    const MESSAGE_KIB: u32 = 17;

    fn key(number: u32) -> EndpointKey {
        (format!("merchant-{number}"), "rma".to_owned())
    }

    fn send(in_flight: &mut InFlightDeliveries, number: u32, messages: u32, now: Instant) {
        for _ in 0..messages {
            let id = Uuid::new_v4();
            in_flight.insert(id, key(number), MESSAGE_KIB, Timestamp::UNIX_EPOCH, now);
        }
    }

    /// Lets each of `endpoints` endpoints send as much as it may, `step` messages at a time.
    fn saturate(in_flight: &mut InFlightDeliveries, endpoints: u32, step: u32, now: Instant) {
        loop {
            let before = in_flight.all.messages;
            for number in 0..endpoints {
                let free = in_flight.free_slots(&key(number), false, 0);
                send(in_flight, number, free.min(step), now);
            }
            if in_flight.all.messages == before {
                return;
            }
        }
    }

    #[test]
    fn one_endpoint_gets_hundreds_of_slots_and_no_large_share() {
        let mut in_flight = InFlightDeliveries::new(BUDGET);
        saturate(&mut in_flight, 1, 1, Instant::now());
        let messages = in_flight.messages(&key(0));
        assert!((400..=BUDGET / MESSAGE_KIB / ENDPOINT_DIVISOR).contains(&messages), "{messages}");
    }

    #[test]
    fn fifty_endpoints_that_hang_leave_room_for_fifty_others() {
        let now = Instant::now();
        let mut in_flight = InFlightDeliveries::new(BUDGET);
        saturate(&mut in_flight, 50, 10, now);
        for number in 50..100 {
            let free = in_flight.free_slots(&key(number), false, 0);
            assert!(free >= 8, "endpoint {number} has {free} slots");
            send(&mut in_flight, number, 8, now);
        }
        assert!(in_flight.all.kib <= BUDGET);
    }

    #[test]
    fn more_hanging_endpoints_than_slots_leave_half_to_the_others() {
        let (now, mut in_flight) = (Instant::now(), InFlightDeliveries::new(BUDGET));
        for number in 0..10_000 {
            if in_flight.free_slots(&key(number), true, 0) > 0 {
                send(&mut in_flight, number, 1, now);
                in_flight.take_checks(now + SLOW_AFTER, usize::MAX);
            }
        }
        let half = BUDGET / 2 / MESSAGE_KIB;
        assert!((half..half + 2).contains(&in_flight.all.messages), "{:?}", in_flight.all);
        assert!(in_flight.free_slots(&key(20_000), false, 0) > 200);
    }

    #[test]
    fn an_endpoint_whose_message_is_in_flight_for_a_second_is_slow() {
        let (now, mut in_flight) = (Instant::now(), InFlightDeliveries::new(4 * MESSAGE_KIB));
        send(&mut in_flight, 0, 1, now);
        assert_eq!(in_flight.free_slots(&key(0), false, 0), 3);
        in_flight.take_checks(now + SLOW_AFTER, 10);
        assert_eq!(in_flight.free_slots(&key(0), false, 0), 0);
        assert_eq!(in_flight.free_slots(&key(1), false, 0), 4);
        assert_eq!(in_flight.free_slots(&key(1), false, 3 * MESSAGE_KIB), 0);
    }

    #[test]
    fn checks_become_rarer_and_end_with_the_settlement() {
        let (now, mut in_flight) = (Instant::now(), InFlightDeliveries::new(BUDGET));
        let id = Uuid::new_v4();
        in_flight.insert(id, key(0), MESSAGE_KIB, Timestamp::UNIX_EPOCH, now);
        let checks = (0..20_000_u64)
            .filter(|ms| !in_flight.take_checks(now + Duration::from_millis(*ms), 10).is_empty());
        assert!((15..45).contains(&checks.count()));
        assert_eq!(in_flight.remove(id), Some(key(0)));
        assert_eq!(in_flight.remove(id), None);
        assert!(in_flight.take_checks(now + Duration::from_secs(60), 10).is_empty());
        assert_eq!((in_flight.all.kib, in_flight.all.slow_kib), (0, 0));
    }
}
