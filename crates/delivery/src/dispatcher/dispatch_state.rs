//! The state that a leader keeps between its polls, and the work of one poll: claim a batch of due deliveries.
//!
//! The cost of a poll does not depend on the number of endpoints, or of deliveries that wait. It reads
//! the deliveries that became due since the last poll, and claims deliveries of endpoints that are due
//! and may be sent to.
//!
//! Endpoints pass three stages in a poll:
//! - due (`DueEndpoint`): has a due delivery, or waits in the queue for this poll
//! - sendable (`SendableEndpoint`): due, and neither paused, nor waiting for a probe, nor at one of its limits
//! - claimed from (`ClaimableEndpoint`): at most the smallest of three numbers: its equal part of the batch,
//!   its free window (the window size less its messages in flight), and its free slots (its share of the
//!   memory, see [`in_flight`](super::in_flight))
//!
//! Several things can be left over:
//! - `ClaimedBatch::is_batch_full`: the batch was full, so every endpoint of the poll may have more
//! - `ClaimedBatch::to_check_again`: endpoints of deliveries that could not be blocked and are found again
//! - `Batch::may_have_more_now`: more may be due now although the batch is empty or small: a delivery was blocked, an
//!   endpoint waited for a settlement that came, or the scan runs without pauses
//! - [`DispatchState::has_queued_endpoints`]: endpoints are queued for the next poll
//!
//! After a large batch the dispatcher pauses for a moment and polls again. After a small one it polls again at
//! once if one of the last two is true, after an empty one if `may_have_more_now` is.

mod maintenance;
mod sendable;

use std::collections::{HashMap, HashSet};

use diesel_async::AsyncPgConnection;
use platform::{MemoryBudget, Timestamp, database::DatabaseError};
use tokio::sync::watch;
use tokio::time::Instant;
use uuid::Uuid;

use self::maintenance::Maintenance;
use self::sendable::SendableEndpoint;
use super::endpoint_queue::{EndpointQueue, WaitsFor};
use super::in_flight::InFlightDeliveries;
use crate::awaiting_memory::message_bytes;
use crate::direct_claims::DirectClaim;
use crate::engine::Engine;
use crate::settled_ids::SettledIds;
use crate::store::{
    self, ClaimParams, ClaimableEndpoint, ClaimedBatch, Content, DueDelivery, EndpointKey,
};

/// Deliveries in flight that a poll checks.
const MAX_CHECKS: usize = 1000;

pub(super) struct DispatchState {
    queue: EndpointQueue,
    in_flight: InFlightDeliveries,
    maintenance: Maintenance,
    merchants: watch::Receiver<u64>,
    /// Deliveries that are due before this time have been read, or are left to the scan of all endpoints.
    read_until: Timestamp,
    /// Time of the next poll that looks back further than the others.
    long_look_back_at: Instant,
}

/// A claimed delivery, for the broker.
pub(super) struct QueuedDelivery {
    pub(super) delivery: DueDelivery,
    pub(super) content: Content,
    /// The claims of this poll filled the window of the endpoint.
    pub(super) is_window_full: bool,
}

/// Result of a poll.
pub(super) struct Batch {
    pub(super) queued: Vec<QueuedDelivery>,
    /// More may be due now.
    pub(super) may_have_more_now: bool,
}

impl DispatchState {
    /// Loads the deliveries in flight. Deliveries that are due already are found by the scan of all endpoints, which
    /// the first polls make without pauses ([`Maintenance::new`]).
    pub(super) async fn load(
        conn: &mut AsyncPgConnection,
        engine: &Engine,
        now: Timestamp,
    ) -> Result<Self, DatabaseError> {
        let mut state = Self {
            queue: EndpointQueue::default(),
            in_flight: InFlightDeliveries::new(engine.inflight_budget.total_kib()),
            maintenance: Maintenance::new(),
            merchants: engine.merchants.changes(),
            read_until: now,
            long_look_back_at: Instant::now(),
        };
        // Claims and settlements before this replica was the leader: some of these deliveries are in flight again.
        drop(engine.direct_claims.take_completed());
        drop(engine.settled.take());
        state.reload_in_flight(conn, &engine.inflight_budget).await?;
        Ok(state)
    }

    /// Whether endpoints are left for the next poll.
    pub(super) fn has_queued_endpoints(&self) -> bool {
        self.queue.has_next_poll()
    }

    /// Whether an endpoint waits for a settlement, which another replica may make.
    pub(super) fn awaits_settlement(&self) -> bool {
        self.queue.awaits_settlement()
    }

    /// Whether deliveries wait for a time, or are in flight.
    pub(super) fn is_waiting(&self) -> bool {
        !self.in_flight.is_empty() || !self.queue.is_empty() || self.maintenance.has_ready()
    }

    /// Notes that a delivery left the broker: it was settled, or released, or its lease expired. Returns
    /// whether its endpoint waited for that.
    fn note_left_broker(&mut self, id: Uuid) -> bool {
        self.in_flight.remove(id).is_some_and(|endpoint| self.queue.note_left_broker(&endpoint))
    }

    /// Notes the settlements of this replica. Returns whether an endpoint waited for one.
    fn note_settled(&mut self, settled: &SettledIds) -> bool {
        let mut is_awaited = false;
        for id in settled.take() {
            is_awaited |= self.note_left_broker(id);
        }
        is_awaited
    }

    /// Claims one batch of due deliveries.
    pub(super) async fn claim_batch(
        &mut self,
        conn: &mut AsyncPgConnection,
        engine: &Engine,
        params: ClaimParams,
    ) -> Result<Batch, DatabaseError> {
        let now = params.now;
        self.count_direct_claims(engine);
        self.run_maintenance(conn, engine, now).await?;
        self.check_in_flight(conn).await?;
        self.note_changes(engine, now);
        let max_batch = engine.settings.dispatch_batch.get();
        let sendable = self.sendable_endpoints(conn, engine, now, max_batch).await?;
        // First the flag, then the list: a settlement in between is noticed.
        engine.settled.set_awaited(self.queue.awaits_settlement());
        let is_settlement_awaited = self.note_settled(&engine.settled);
        let may_have_more_now = is_settlement_awaited || self.maintenance.scans_without_pauses();
        let mut batch = Batch { queued: Vec::new(), may_have_more_now };
        if sendable.is_empty() {
            return Ok(batch);
        }
        let claimable: Vec<_> =
            sendable.iter().map(|endpoint| endpoint.claimable.clone()).collect();
        let claimed = store::claim_due(conn, params, &claimable).await?;
        batch.may_have_more_now |= claimed.blocked > 0;
        self.put_back(&sendable, &claimed);
        let messages_of = messages_by_endpoint(&claimed);
        self.allow_direct_claims(engine, &sendable, &messages_of);
        let leased_until = params.leased_until();
        let full = endpoints_with_full_window(&sendable, &messages_of);
        batch.queued = self.count_in_flight(&engine.inflight_budget, &full, claimed, leased_until);
        Ok(batch)
    }

    /// Lets requests claim new messages of the endpoints that have no backlog now.
    fn allow_direct_claims(
        &self,
        engine: &Engine,
        sendable: &[SendableEndpoint],
        messages_of: &HashMap<EndpointKey, u32>,
    ) {
        let now = Instant::now();
        for SendableEndpoint { claimable, free_window, free_slots, is_failing } in sendable {
            let key = &claimable.key;
            if *is_failing || self.queue.none_due_before(key).is_some() {
                continue;
            }
            let claimed = messages_of.get(key).copied().unwrap_or(0);
            let left = (*free_window).min(*free_slots).saturating_sub(claimed);
            engine.direct_claims.allow(key.clone(), left, now);
        }
    }

    /// Counts the deliveries in flight that requests claimed since the last poll. A delivery that is settled already
    /// leaves with the settlements.
    fn count_direct_claims(&mut self, engine: &Engine) {
        let now = Instant::now();
        for DirectClaim { id, endpoint, body_bytes, leased_until } in
            engine.direct_claims.take_completed()
        {
            let kib = engine.inflight_budget.kib(message_bytes(body_bytes));
            self.in_flight.insert(id, endpoint, kib, leased_until, now);
        }
    }

    /// Finds out which deliveries other replicas have settled.
    async fn check_in_flight(&mut self, conn: &mut AsyncPgConnection) -> Result<(), DatabaseError> {
        let ids = self.in_flight.take_checks(Instant::now(), MAX_CHECKS);
        if ids.is_empty() {
            return Ok(());
        }
        let queued = store::still_queued(conn, &ids).await?;
        for id in ids.into_iter().filter(|id| !queued.contains_key(id)) {
            self.note_left_broker(id);
        }
        Ok(())
    }

    /// Notes the changes since the last poll: settlements of this replica, times of probes, changes of
    /// merchants.
    fn note_changes(&mut self, engine: &Engine, now: Timestamp) {
        self.note_settled(&engine.settled);
        self.queue.start_probes(now);
        if self.merchants.has_changed().is_ok_and(|changed| changed) {
            drop(self.merchants.borrow_and_update());
            self.queue.recheck_if(|(merchant, kind), event| match event {
                WaitsFor::Resume => !engine.is_endpoint_paused(merchant, kind),
                WaitsFor::NextPoll | WaitsFor::Settlement | WaitsFor::Probe(_) => false,
            });
        }
    }

    /// Puts endpoints back that may have more due deliveries, and removes the others. An endpoint is done if it
    /// had fewer deliveries than it was allowed, and the batch was not full.
    fn put_back(&mut self, sendable: &[SendableEndpoint], claimed: &ClaimedBatch) {
        let mut found = HashMap::<&EndpointKey, (u32, Timestamp)>::new();
        for (key, at) in &claimed.found {
            let (messages, last) = found.entry(key).or_insert((0, *at));
            *messages += 1;
            *last = (*last).max(*at);
        }
        let is_found = |endpoint: &&SendableEndpoint| found.contains_key(&endpoint.claimable.key);
        let (served, others): (Vec<_>, Vec<_>) = sendable.iter().partition(is_found);
        // The others come first: the batch may have been full before it reached them.
        let endpoints = others.into_iter().chain(served).map(|endpoint| &endpoint.claimable);
        for ClaimableEndpoint { key, none_due_before, max_messages } in endpoints {
            let (messages, last) = found.get(key).copied().unwrap_or((0, *none_due_before));
            if claimed.is_batch_full || claimed.to_check_again.contains(key) {
                self.queue.put_back(key, *none_due_before);
            } else if messages < *max_messages {
                self.queue.remove(key);
            } else {
                self.queue.put_back(key, last);
            }
        }
    }

    /// Counts claimed deliveries as in flight, and says of each whether the claims filled its endpoint's window.
    fn count_in_flight(
        &mut self,
        budget: &MemoryBudget,
        full: &HashSet<&EndpointKey>,
        batch: ClaimedBatch,
        leased_until: Timestamp,
    ) -> Vec<QueuedDelivery> {
        let now = Instant::now();
        let queued = batch.claimed.into_iter().map(|(delivery, content)| {
            let endpoint = delivery.endpoint();
            let is_window_full = full.contains(&endpoint);
            let kib = budget.kib(message_bytes(content.body.len()));
            self.in_flight.insert(delivery.id, endpoint, kib, leased_until, now);
            QueuedDelivery { delivery, content, is_window_full }
        });
        queued.collect()
    }
}

fn messages_by_endpoint(batch: &ClaimedBatch) -> HashMap<EndpointKey, u32> {
    let mut messages_of = HashMap::new();
    for (delivery, _) in &batch.claimed {
        *messages_of.entry(delivery.endpoint()).or_default() += 1;
    }
    messages_of
}

/// The endpoints whose windows these claims filled.
fn endpoints_with_full_window<'a>(
    sendable: &'a [SendableEndpoint],
    messages_of: &HashMap<EndpointKey, u32>,
) -> HashSet<&'a EndpointKey> {
    let is_full = |endpoint: &&SendableEndpoint| {
        let messages = messages_of.get(&endpoint.claimable.key).copied().unwrap_or(0);
        messages >= endpoint.free_window
    };
    sendable.iter().filter(is_full).map(|endpoint| &endpoint.claimable.key).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sendable(merchant: &str) -> SendableEndpoint {
        let key = (merchant.to_owned(), "rma".to_owned());
        let claimable =
            ClaimableEndpoint { key, none_due_before: Timestamp::UNIX_EPOCH, max_messages: 4 };
        SendableEndpoint { claimable, free_window: 4, free_slots: 4, is_failing: false }
    }

    #[test]
    fn an_endpoint_that_a_full_batch_left_out_comes_first_in_the_next() {
        let now = Timestamp::UNIX_EPOCH;
        let mut state = DispatchState {
            queue: EndpointQueue::default(),
            in_flight: InFlightDeliveries::new(1),
            maintenance: Maintenance::new(),
            merchants: watch::channel(0).1,
            read_until: now,
            long_look_back_at: Instant::now(),
        };
        let endpoints = [sendable("large"), sendable("small")];
        let [large, small] = endpoints.each_ref().map(|endpoint| endpoint.claimable.key.clone());
        [&large, &small].into_iter().for_each(|key| state.queue.add_due(key.clone(), now));
        assert_eq!(state.queue.take_for_poll(2), [(large.clone(), now), (small.clone(), now)]);
        let found = vec![(large.clone(), now)];
        let claimed = ClaimedBatch { found, is_batch_full: true, ..ClaimedBatch::default() };
        state.put_back(&endpoints, &claimed);
        assert_eq!(state.queue.take_for_poll(2), [(small, now), (large, now)]);
    }
}
