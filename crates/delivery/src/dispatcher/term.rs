//! A term of leadership: the state of the dispatcher, and one poll for due deliveries.
//!
//! The cost of a poll does not depend on the number of endpoints, or of deliveries that wait. It reads
//! the deliveries that became due since the last poll, and claims deliveries of endpoints that are due
//! and may be sent to.

mod maintenance;
mod opening;

use std::collections::{HashMap, HashSet};

use diesel_async::AsyncPgConnection;
use platform::{Timestamp, database::DatabaseError};
use tokio::sync::watch;
use tokio::time::Instant;
use uuid::Uuid;

use self::maintenance::Maintenance;
use self::opening::Opening;
use super::in_flight::InFlight;
use super::schedule::{Schedule, Wait};
use crate::engine::Engine;
use crate::store::{
    self, ClaimParams, ClaimedDelivery, Claims, Content, EndpointKey, OpenEndpoint,
};
use crate::waiting_messages::message_bytes;

/// Deliveries in flight that a poll checks.
const MAX_CHECKS: usize = 1000;

pub(super) struct Term {
    pub(super) schedule: Schedule,
    pub(super) in_flight: InFlight,
    maintenance: Maintenance,
    merchants: watch::Receiver<u64>,
    /// Deliveries that are due before this time have been read.
    pub(super) read_until: Timestamp,
    pub(super) wide_poll_at: Instant,
}

/// A claimed delivery, its content, and whether it filled the window of its endpoint.
pub(super) type QueuedDelivery = (ClaimedDelivery, Content, bool);

/// Result of a poll.
pub(super) struct Batch {
    pub(super) queued: Vec<QueuedDelivery>,
    /// More may be due now.
    pub(super) is_incomplete: bool,
}

impl Term {
    pub(super) async fn begin(
        conn: &mut AsyncPgConnection,
        engine: &Engine,
        now: Timestamp,
    ) -> Result<Self, DatabaseError> {
        let mut term = Self {
            schedule: Schedule::default(),
            in_flight: InFlight::new(engine.inflight_budget.total_kib()),
            maintenance: Maintenance::new(),
            merchants: engine.merchants.changes(),
            read_until: now,
            wide_poll_at: Instant::now(),
        };
        // Settlements before this term: some of these deliveries are in flight again.
        drop(engine.settled.take());
        term.reload_in_flight(conn, engine).await?;
        Ok(term)
    }

    /// Notes that a delivery left the broker. Returns whether its endpoint waited for that.
    pub(super) fn settled(&mut self, id: Uuid) -> bool {
        self.in_flight.remove(id).is_some_and(|endpoint| self.schedule.settled(&endpoint))
    }

    /// Notes the settlements of this replica. Returns whether an endpoint waited for one.
    fn note_settled(&mut self, engine: &Engine) -> bool {
        let mut is_awaited = false;
        for id in engine.settled.take() {
            is_awaited |= self.settled(id);
        }
        is_awaited
    }

    /// Claims one batch of due deliveries.
    pub(super) async fn poll(
        &mut self,
        conn: &mut AsyncPgConnection,
        engine: &Engine,
        params: ClaimParams,
    ) -> Result<Batch, DatabaseError> {
        let now = params.now;
        self.run_maintenance(conn, engine, now).await?;
        self.check_in_flight(conn).await?;
        self.note_changes(engine, now);
        let max_batch = engine.settings.dispatch_batch.get();
        let openings = self.open_endpoints(conn, engine, now, max_batch).await?;
        // First the flag, then the list: a settlement in between is noticed.
        engine.settled.set_awaited(self.schedule.has_full_windows());
        let is_incomplete = self.note_settled(engine) || self.maintenance.is_sweep_urgent();
        let mut batch = Batch { queued: Vec::new(), is_incomplete };
        if openings.is_empty() {
            return Ok(batch);
        }
        let open: Vec<_> = openings.iter().map(|opening| opening.endpoint.clone()).collect();
        let claims = store::claim_due(conn, params, &open).await?;
        batch.is_incomplete |= claims.blocked > 0;
        self.put_back(&openings, &claims);
        batch.queued = self.track(engine, &openings, claims, params.leased_until());
        Ok(batch)
    }

    /// Finds out which deliveries other replicas have settled.
    async fn check_in_flight(&mut self, conn: &mut AsyncPgConnection) -> Result<(), DatabaseError> {
        let ids = self.in_flight.take_checks(Instant::now(), MAX_CHECKS);
        if ids.is_empty() {
            return Ok(());
        }
        let queued = store::still_queued(conn, &ids).await?;
        for id in ids.into_iter().filter(|id| !queued.contains_key(id)) {
            self.settled(id);
        }
        Ok(())
    }

    /// Notes what happened since the last poll: settlements of this replica, times of probes, changes of
    /// merchants.
    fn note_changes(&mut self, engine: &Engine, now: Timestamp) {
        self.note_settled(engine);
        self.schedule.start_probes(now);
        if self.merchants.has_changed().is_ok_and(|changed| changed) {
            drop(self.merchants.borrow_and_update());
            self.schedule.merchants_changed(|(merchant, kind), wait| match wait {
                Wait::Resume => !engine.is_endpoint_paused(merchant, kind),
                Wait::Turn | Wait::Settlement | Wait::Probe(_) => false,
            });
        }
    }

    /// Puts endpoints back that may have more due deliveries, and removes the others.
    fn put_back(&mut self, openings: &[Opening], claims: &Claims) {
        let mut found = HashMap::<&EndpointKey, (u32, Timestamp)>::new();
        for (key, at) in &claims.found {
            let (messages, last) = found.entry(key).or_insert((0, *at));
            *messages += 1;
            *last = (*last).max(*at);
        }
        let is_found = |opening: &&Opening| found.contains_key(&opening.endpoint.key);
        let (served, others): (Vec<_>, Vec<_>) = openings.iter().partition(is_found);
        // The others come first: the batch may have been full before their turn.
        let openings = others.into_iter().chain(served).map(|opening| &opening.endpoint);
        for OpenEndpoint { key, from, max_messages } in openings {
            let (messages, last) = found.get(key).copied().unwrap_or((0, *from));
            if claims.is_truncated || claims.left.contains(key) {
                self.schedule.put_back(key, *from);
            } else if messages < *max_messages {
                self.schedule.remove(key);
            } else {
                self.schedule.put_back(key, last);
            }
        }
    }

    /// Counts claimed deliveries as in flight.
    fn track(
        &mut self,
        engine: &Engine,
        openings: &[Opening],
        claims: Claims,
        leased_until: Timestamp,
    ) -> Vec<QueuedDelivery> {
        let mut claimed = HashMap::<EndpointKey, u32>::new();
        let now = Instant::now();
        for (delivery, content) in &claims.claimed {
            *claimed.entry(delivery.endpoint()).or_default() += 1;
            let kib = engine.inflight_budget.kib(message_bytes(content.body.len()));
            let endpoint = delivery.endpoint();
            self.in_flight.insert(delivery.id, endpoint, kib, leased_until, now);
        }
        let full: HashSet<_> = openings
            .iter()
            .filter(|opening| claimed.get(&opening.endpoint.key) >= Some(&opening.free_window))
            .map(|opening| &opening.endpoint.key)
            .collect();
        let queued = claims.claimed.into_iter().map(|(delivery, content)| {
            let is_full = full.contains(&delivery.endpoint());
            (delivery, content, is_full)
        });
        queued.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn opening(merchant: &str) -> Opening {
        let key = (merchant.to_owned(), "rma".to_owned());
        let endpoint = OpenEndpoint { key, from: Timestamp::UNIX_EPOCH, max_messages: 4 };
        Opening { endpoint, free_window: 4 }
    }

    #[test]
    fn an_endpoint_that_a_full_batch_left_out_comes_first_in_the_next() {
        let now = Timestamp::UNIX_EPOCH;
        let mut term = Term {
            schedule: Schedule::default(),
            in_flight: InFlight::new(1),
            maintenance: Maintenance::new(),
            merchants: watch::channel(0).1,
            read_until: now,
            wide_poll_at: Instant::now(),
        };
        let openings = [opening("large"), opening("small")];
        let [large, small] = openings.each_ref().map(|opening| opening.endpoint.key.clone());
        [&large, &small].into_iter().for_each(|key| term.schedule.found(key.clone(), now));
        assert_eq!(term.schedule.take_turns(2), [(large.clone(), now), (small.clone(), now)]);
        let found = vec![(large.clone(), now)];
        term.put_back(&openings, &Claims { found, is_truncated: true, ..Claims::default() });
        assert_eq!(term.schedule.take_turns(2), [(small, now), (large, now)]);
    }
}
