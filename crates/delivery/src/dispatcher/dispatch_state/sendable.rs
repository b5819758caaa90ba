//! The endpoints of a poll: those that have due deliveries and may be sent to.

use std::collections::HashMap;
use std::time::Duration;

use chrono::TimeDelta;
use diesel_async::AsyncPgConnection;
use platform::{Timestamp, database::DatabaseError};
use tokio::time::Instant;

use super::DispatchState;
use crate::dispatcher::endpoint_queue::WaitsFor;
use crate::engine::Engine;
use crate::store::{self, ClaimableEndpoint, DueEndpoint};

/// Time before the last poll that a poll reads again, and the number of deliveries that it reads at most.
struct LookBack {
    time: TimeDelta,
    max_read: i64,
}

/// A delivery becomes visible when its transaction commits, which is later than its time.
const SHORT_LOOK_BACK: LookBack = LookBack { time: TimeDelta::milliseconds(100), max_read: 5000 };
/// Finds transactions that committed late. The scan of all endpoints finds those that were even later.
const LONG_LOOK_BACK: LookBack = LookBack { time: TimeDelta::seconds(10), max_read: 50_000 };
const LONG_LOOK_BACK_INTERVAL: Duration = Duration::from_secs(1);

/// An endpoint whose deliveries are to be claimed.
pub(super) struct SendableEndpoint {
    pub(super) claimable: ClaimableEndpoint,
    /// Messages until the window is full.
    pub(super) free_window: u32,
    /// Messages until its share of the memory is used up.
    pub(super) free_slots: u32,
    /// Probes of the endpoint fail.
    pub(super) is_failing: bool,
}

/// The limits of an endpoint in a poll.
#[derive(Clone, Copy)]
struct PollLimits {
    /// Messages of each endpoint, so that all have an equal part of the batch.
    per_endpoint: u32,
    /// Memory that other endpoints are about to use.
    reserved_kib: u32,
}

impl DispatchState {
    /// Reads the deliveries that became due since the last poll, and returns the endpoints that may be sent
    /// to. The others wait.
    pub(super) async fn sendable_endpoints(
        &mut self,
        conn: &mut AsyncPgConnection,
        engine: &Engine,
        now: Timestamp,
        max_batch: u32,
    ) -> Result<Vec<SendableEndpoint>, DatabaseError> {
        let max_endpoints = usize::try_from(max_batch).unwrap_or(usize::MAX);
        let mut endpoints = self.queue.take_for_poll(max_endpoints);
        let due = self.read_due(conn, now, &endpoints).await?;
        for endpoint in &due {
            self.queue.add_due(endpoint.key(), endpoint.first_at);
        }
        let states: HashMap<_, _> = due.into_iter().map(|due| (due.key(), due)).collect();
        endpoints.extend(self.queue.take_for_poll(max_endpoints - endpoints.len()));
        let per_endpoint = max_batch / u32::try_from(endpoints.len()).unwrap_or(max_batch).max(1);
        // While the poll decides, requests claim nothing.
        let pending_claims: Vec<_> =
            endpoints.iter().map(|(key, _)| engine.direct_claims.withdraw(key)).collect();
        self.count_direct_claims(engine);
        let reserved = engine.direct_claims.reserved(Instant::now());
        let mut reserved_kib = reserved.saturating_mul(self.in_flight.average_kib());
        let mut sendable = Vec::new();
        for ((key, _), pending) in endpoints.iter().zip(pending_claims) {
            let Some(state) = states.get(key) else { continue };
            let limits = PollLimits { per_endpoint, reserved_kib };
            if let Some(endpoint) = self.check_endpoint(engine, now, state, pending, limits) {
                let messages = endpoint.claimable.max_messages;
                let kib = messages.saturating_mul(self.in_flight.average_kib());
                reserved_kib = reserved_kib.saturating_add(kib);
                sendable.push(endpoint);
            }
        }
        Ok(sendable)
    }

    /// Reads the states of the given endpoints, and of those with deliveries that became due since the last
    /// poll. Once a second it looks back further.
    async fn read_due(
        &mut self,
        conn: &mut AsyncPgConnection,
        now: Timestamp,
        given: &[(store::EndpointKey, Timestamp)],
    ) -> Result<Vec<DueEndpoint>, DatabaseError> {
        let is_long = self.long_look_back_at <= Instant::now();
        let look_back = if is_long { LONG_LOOK_BACK } else { SHORT_LOOK_BACK };
        let from = self.read_until.min(now) - look_back.time;
        let due = store::due_endpoints(conn, (from, now), look_back.max_read, given).await?;
        let read: i64 = due.iter().map(|endpoint| endpoint.read).sum();
        self.note_read(now, is_long, read >= look_back.max_read);
        Ok(due)
    }

    /// Notes up to which time deliveries have been read.
    fn note_read(&mut self, now: Timestamp, is_long: bool, is_limit_reached: bool) {
        if is_long {
            self.long_look_back_at = Instant::now() + LONG_LOOK_BACK_INTERVAL;
        }
        match (is_limit_reached, is_long) {
            (false, _) => self.read_until = now,
            // The limit left out the latest deliveries. `read_until` stays, so the next poll reads them.
            (true, true) => {}
            // Reading all deliveries of a burst would delay other endpoints. The scan skips from endpoint
            // to endpoint.
            (true, false) => {
                self.read_until = now;
                self.maintenance.scan_without_pauses();
            }
        }
    }

    /// Decides how many deliveries of an endpoint may be claimed. An endpoint that may not be sent to returns
    /// to the queue.
    fn check_endpoint(
        &mut self,
        engine: &Engine,
        now: Timestamp,
        state: &DueEndpoint,
        pending_claims: u32,
        limits: PollLimits,
    ) -> Option<SendableEndpoint> {
        let key = state.key();
        let none_due_before = self.queue.none_due_before(&key)?;
        let in_flight = self.in_flight.messages(&key).saturating_add(pending_claims);
        let free_window = engine.settings.window_size(state.window_size).saturating_sub(in_flight);
        if let Some(event) = awaited_event(engine, now, state, free_window) {
            self.queue.put_back_waiting(&key, event);
            return None;
        }
        let is_failing = state.is_failing();
        let free_slots = self.in_flight.free_slots(&key, is_failing, limits.reserved_kib);
        if free_slots == 0 && in_flight == 0 {
            // Other endpoints use the memory, so no settlement of this endpoint will free it.
            self.queue.put_back(&key, none_due_before);
            return None;
        }
        if free_slots == 0 {
            self.queue.put_back_waiting(&key, WaitsFor::Settlement);
            return None;
        }
        let max_messages = limits.per_endpoint.min(free_window).min(free_slots);
        let claimable = ClaimableEndpoint { key, none_due_before, max_messages };
        Some(SendableEndpoint { claimable, free_window, free_slots, is_failing })
    }
}

/// Returns the event that an endpoint waits for, if it must not be sent to now.
fn awaited_event(
    engine: &Engine,
    now: Timestamp,
    state: &DueEndpoint,
    free_window: u32,
) -> Option<WaitsFor> {
    if engine.is_endpoint_paused(&state.merchant, &state.kind) {
        return Some(WaitsFor::Resume);
    }
    if let Some(at) = state.not_before.filter(|at| state.is_failing() && *at > now) {
        return Some(WaitsFor::Probe(at));
    }
    (free_window == 0).then_some(WaitsFor::Settlement)
}
