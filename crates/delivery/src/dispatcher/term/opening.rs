//! Endpoints of a poll: which of them have due deliveries, and may be sent to.

use std::collections::HashMap;
use std::time::Duration;

use chrono::TimeDelta;
use diesel_async::AsyncPgConnection;
use platform::{Timestamp, database::DatabaseError};
use tokio::time::Instant;

use super::Term;
use crate::dispatcher::schedule::Wait;
use crate::engine::Engine;
use crate::store::{self, DueEndpoint, OpenEndpoint};

/// Time for which a poll reads again. A transaction that commits later than this after its time is found
/// by a wide poll, and one that commits later than that by the sweep.
const OVERLAP: TimeDelta = TimeDelta::milliseconds(100);
const FAR_OVERLAP: TimeDelta = TimeDelta::seconds(10);
const WIDE_POLL_INTERVAL: Duration = Duration::from_secs(1);
/// Deliveries that a poll reads, and a wide poll.
const MAX_READ: i64 = 5000;
const MAX_READ_FAR: i64 = 50_000;

/// An endpoint whose deliveries are to be claimed.
pub(super) struct Opening {
    pub(super) endpoint: OpenEndpoint,
    /// Messages until the window is full.
    pub(super) free_window: u32,
}

impl Term {
    /// Reads the deliveries that became due since the last poll, and returns the endpoints that may be sent
    /// to. The others wait.
    pub(super) async fn open_endpoints(
        &mut self,
        conn: &mut AsyncPgConnection,
        engine: &Engine,
        now: Timestamp,
        max_batch: u32,
    ) -> Result<Vec<Opening>, DatabaseError> {
        let max_endpoints = usize::try_from(max_batch).unwrap_or(usize::MAX);
        let mut turns = self.schedule.take_turns(max_endpoints);
        let is_far = self.wide_poll_at <= Instant::now();
        let (overlap, limit) =
            if is_far { (FAR_OVERLAP, MAX_READ_FAR) } else { (OVERLAP, MAX_READ) };
        let range = (self.read_until.min(now) - overlap, now);
        let due = store::due_endpoints(conn, range, limit, &turns).await?;
        self.note_read(now, is_far, due.iter().map(|endpoint| endpoint.read).sum::<i64>() >= limit);
        for endpoint in &due {
            self.schedule.found(endpoint.key(), endpoint.first_at);
        }
        let states: HashMap<_, _> = due.into_iter().map(|due| (due.key(), due)).collect();
        turns.extend(self.schedule.take_turns(max_endpoints - turns.len()));
        let per_endpoint = max_batch / u32::try_from(turns.len()).unwrap_or(max_batch).max(1);
        let (mut openings, mut reserved) = (Vec::new(), 0_u32);
        for state in turns.iter().filter_map(|(key, _)| states.get(key)) {
            if let Some(opening) = self.open(engine, now, state, per_endpoint, reserved) {
                let messages = opening.endpoint.max_messages;
                let kib = messages.saturating_mul(self.in_flight.average_kib());
                reserved = reserved.saturating_add(kib);
                openings.push(opening);
            }
        }
        Ok(openings)
    }

    /// Notes up to which time deliveries have been read.
    fn note_read(&mut self, now: Timestamp, is_far: bool, is_truncated: bool) {
        if is_far {
            self.wide_poll_at = Instant::now() + WIDE_POLL_INTERVAL;
        }
        match (is_truncated, is_far) {
            (false, _) => self.read_until = now,
            // The next poll reads the latest deliveries, which are the ones that were left out.
            (true, true) => {}
            // Reading all deliveries of a burst would delay other endpoints. A sweep skips from endpoint to endpoint.
            (true, false) => {
                self.read_until = now;
                self.maintenance.sweep_now();
            }
        }
    }

    /// Decides how many deliveries of an endpoint may be claimed, or for what it waits.
    fn open(
        &mut self,
        engine: &Engine,
        now: Timestamp,
        state: &DueEndpoint,
        max_messages: u32,
        reserved: u32,
    ) -> Option<Opening> {
        let key = state.key();
        let from = self.schedule.from(&key)?;
        let in_flight = self.in_flight.messages(&key);
        let free_window = engine.settings.window_size(state.window_size).saturating_sub(in_flight);
        if let Some(wait) = closed(engine, now, state, free_window) {
            self.schedule.put_back_waiting(&key, wait);
            return None;
        }
        let free_slots = self.in_flight.free_slots(&key, state.is_failing(), reserved);
        let max_messages = max_messages.min(free_window).min(free_slots);
        if free_slots == 0 && in_flight == 0 {
            self.schedule.put_back(&key, from);
            return None;
        }
        if free_slots == 0 {
            self.schedule.put_back_waiting(&key, Wait::Settlement);
            return None;
        }
        Some(Opening { endpoint: OpenEndpoint { key, from, max_messages }, free_window })
    }
}

/// Returns the event that an endpoint waits for, if it must not be sent to now.
fn closed(engine: &Engine, now: Timestamp, state: &DueEndpoint, free_window: u32) -> Option<Wait> {
    if engine.is_endpoint_paused(&state.merchant, &state.kind) {
        return Some(Wait::Resume);
    }
    if let Some(at) = state.not_before.filter(|at| state.is_failing() && *at > now) {
        return Some(Wait::Probe(at));
    }
    (free_window == 0).then_some(Wait::Settlement)
}
