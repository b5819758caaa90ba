//! Send windows and health of the endpoints, which all replicas share through the database.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use chrono::TimeDelta;
use diesel_async::AsyncPgConnection;
use domain::message_kind::MessageKind;
use platform::{Timestamp, database::DatabaseError};
use tokio::time::Instant;

use super::health::EndpointHealth;
use super::rows::{EndpointRow, EndpointUpdate, lock_endpoints, save_endpoints};
use crate::attempt::Attempt;
use crate::outcome::{Decision, Outcome, Signal};
use crate::settlement::Settlement;
use crate::window::{Limits, Window};

/// Time for which successes that do not change a window are not written. The time of the last success
/// may be late by as much.
const UNCHANGED_TTL: Duration = Duration::from_secs(1);

pub(crate) struct Windows {
    limits: Limits,
    /// Endpoints that succeeded, when that was written, and the size of their window.
    succeeded: HashMap<(String, MessageKind), (Instant, u32)>,
}

struct DeliveryResult<'a> {
    outcome: &'a Outcome,
    is_dead: bool,
    signal: Signal,
    is_window_full: bool,
    latency: Duration,
    started_at: Timestamp,
    ended_at: Timestamp,
}

impl<'a> From<&'a Settlement> for DeliveryResult<'a> {
    fn from(settlement: &'a Settlement) -> Self {
        let Attempt { outcome, signal, started_at, latency, .. } = &settlement.attempt;
        let duration = TimeDelta::from_std(*latency).unwrap_or_default();
        let first = settlement.attempts().next().unwrap_or(&settlement.attempt);
        Self {
            outcome,
            is_dead: settlement.decision == Decision::Dead,
            signal: *signal,
            is_window_full: settlement.message.is_window_full,
            latency: *latency,
            started_at: first.started_at,
            ended_at: started_at.checked_add_signed(duration).unwrap_or(*started_at),
        }
    }
}

impl Windows {
    pub(crate) fn new(limits: Limits) -> Self {
        Self { limits, succeeded: HashMap::new() }
    }

    /// Forgets which successes were written. Call it after the transaction of [`Windows::update`] failed.
    pub(crate) fn rolled_back(&mut self) {
        self.succeeded.clear();
    }

    /// Widens and narrows windows by the results of a batch, and notes the last ones. This comes last
    /// in a transaction, because it locks rows that every replica writes to.
    pub(in crate::store) async fn update(
        &mut self,
        conn: &mut AsyncPgConnection,
        batch: &[Settlement],
    ) -> Result<(), DatabaseError> {
        let mut endpoints = self.changing_endpoints(batch);
        if endpoints.is_empty() {
            return Ok(());
        }
        let rows = lock_endpoints(conn, endpoints.keys()).await?;
        let mut updates = Vec::with_capacity(endpoints.len());
        for ((merchant, kind), results) in &mut endpoints {
            let row = rows.iter().find(|row| row.merchant == *merchant && row.kind == kind.name());
            let (window, not_before) = self.apply_results(row, results);
            if results.iter().all(|result| result.signal == Signal::Grow) {
                let written = (Instant::now(), window.size());
                self.succeeded.insert(((*merchant).to_owned(), *kind), written);
            }
            updates.push(EndpointUpdate {
                merchant,
                kind: *kind,
                window: window.parts(),
                not_before,
                health: health(row, results),
            });
        }
        save_endpoints(conn, &updates).await
    }

    /// Returns the results of each endpoint whose window may change.
    fn changing_endpoints<'a>(
        &mut self,
        batch: &'a [Settlement],
    ) -> BTreeMap<(&'a str, MessageKind), Vec<DeliveryResult<'a>>> {
        let mut endpoints = BTreeMap::<_, Vec<DeliveryResult<'_>>>::new();
        for settlement in batch {
            let key = (settlement.merchant(), settlement.kind());
            endpoints.entry(key).or_default().push(DeliveryResult::from(settlement));
        }
        self.succeeded.retain(|_, (written_at, _)| written_at.elapsed() < UNCHANGED_TTL);
        endpoints.retain(|(merchant, kind), results| {
            let key = ((*merchant).to_owned(), *kind);
            if !results.iter().all(|result| result.signal == Signal::Grow) {
                self.succeeded.remove(&key);
            }
            let size = self.succeeded.get(&key).map(|(_, size)| *size);
            size.is_none_or(|size| changes(self.limits, size, results))
        });
        endpoints
    }

    /// Applies results to a stored window, and returns it with `not_before`: the time of the next probe while
    /// probes fail, otherwise the end of the last attempt, which tells a probe from an attempt that started
    /// earlier.
    fn apply_results(
        &self,
        row: Option<&EndpointRow>,
        results: &[DeliveryResult<'_>],
    ) -> (Window, Timestamp) {
        let (mut window, mut not_before) = match row {
            Some(row) => {
                let parts =
                    [row.window_size, row.slow_start_threshold, row.window_acks, row.failed_probes];
                (Window::from_parts(self.limits, parts), row.not_before)
            }
            None => (Window::new(self.limits), Timestamp::UNIX_EPOCH),
        };
        let mut last_ended_at = Timestamp::UNIX_EPOCH;
        for result in results {
            match result.signal {
                // The attempt started before the last failure was known, so it was no probe.
                Signal::Shrink if result.started_at < not_before => window.halve(),
                Signal::Grow if !result.is_window_full => window.reset_probes(),
                signal => window.apply(signal),
            }
            last_ended_at = last_ended_at.max(result.ended_at);
            not_before =
                last_ended_at + TimeDelta::from_std(window.probe_delay()).unwrap_or_default();
        }
        if let Some(latency) = latency(results) {
            window.shrink_towards(self.limits.max_for_latency(latency));
        }
        (window, not_before)
    }
}

/// Returns the latency of an endpoint: the shortest one of its successes, so that a single slow response
/// says nothing.
fn latency(results: &[DeliveryResult<'_>]) -> Option<Duration> {
    let successes = results.iter().filter(|result| result.signal == Signal::Grow);
    successes.map(|result| result.latency).min()
}

/// Whether successes change a window of this size.
fn changes(limits: Limits, size: u32, results: &[DeliveryResult<'_>]) -> bool {
    let max = latency(results).map_or(size, |latency| limits.max_for_latency(latency));
    let grows = size < max && results.iter().any(|result| result.is_window_full);
    grows || size > max
}

/// Applies results to the stored health of an endpoint, in the order in which they ended.
fn health(row: Option<&EndpointRow>, results: &mut [DeliveryResult<'_>]) -> EndpointHealth {
    let mut health = row.map(|row| row.health.clone()).unwrap_or_default();
    results.sort_by_key(|result| result.ended_at);
    results.iter().for_each(|it| health.apply(it.outcome, it.is_dead, it.ended_at));
    health
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use super::*;

    #[track_caller]
    fn check(size: u32, latency_ms: u64, is_window_full: bool, expected: bool) {
        let limit = |size| NonZeroU32::new(size).unwrap();
        let limits = Limits { initial: limit(8), max: limit(64), probe_delay: Duration::ZERO };
        let result = DeliveryResult {
            outcome: &Outcome::Delivered { status: 200 },
            is_dead: false,
            signal: Signal::Grow,
            is_window_full,
            latency: Duration::from_millis(latency_ms),
            started_at: Timestamp::UNIX_EPOCH,
            ended_at: Timestamp::UNIX_EPOCH,
        };
        assert_eq!(changes(limits, size, &[result]), expected);
    }

    #[test]
    fn a_success_changes_a_window_that_is_full_or_too_large() {
        check(8, 5, false, false);
        check(8, 5, true, true);
        check(64, 5, true, false);
        check(32, 10_000, true, false);
        check(64, 10_000, false, true);
    }
}
