//! Send windows and health of the endpoints, which all replicas share through the database.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use chrono::TimeDelta;
use diesel_async::AsyncPgConnection;
use domain::message_kind::MessageKind;
use platform::{Timestamp, database::DatabaseError};
use tokio::time::Instant;

use super::endpoint_health::EndpointHealth;
use super::endpoint_rows::{Disabled, EndpointRow, EndpointUpdate, lock_endpoints, save_endpoints};
use crate::attempt::Attempt;
use crate::outcome::{Outcome, Signal};
use crate::settlement::Settlement;
use crate::window::{Limits, Window};

/// Time for which a window that was fully open is taken to be so still, without a query. The time of
/// the last success may be late by as much.
const FULLY_OPEN_CACHE_TTL: Duration = Duration::from_secs(1);

pub(crate) struct Windows {
    limits: Limits,
    /// Endpoints whose window was fully open, and since when: another success does not change it.
    fully_open: HashMap<(String, MessageKind), Instant>,
}

/// Results of a batch for one endpoint.
#[derive(Default)]
struct EndpointResults<'a> {
    results: Vec<DeliveryResult<'a>>,
    disabled: Option<Disabled>,
}

struct DeliveryResult<'a> {
    outcome: &'a Outcome,
    signal: Signal,
    started_at: Timestamp,
    ended_at: Timestamp,
}

impl<'a> From<&'a Settlement> for DeliveryResult<'a> {
    fn from(settlement: &'a Settlement) -> Self {
        let Attempt { outcome, signal, started_at, latency, .. } = &settlement.attempt;
        let latency = TimeDelta::from_std(*latency).unwrap_or_default();
        let first = settlement.attempts().next().unwrap_or(&settlement.attempt);
        Self {
            outcome,
            signal: *signal,
            started_at: first.started_at,
            ended_at: started_at.checked_add_signed(latency).unwrap_or(*started_at),
        }
    }
}

impl Windows {
    pub(crate) fn new(limits: Limits) -> Self {
        Self { limits, fully_open: HashMap::new() }
    }

    /// Widens and narrows windows by the results of a batch, and notes the last ones. This comes last
    /// in a transaction, because it locks rows that every replica writes to.
    pub(super) async fn update(
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
        for ((merchant, kind), EndpointResults { results, disabled }) in &mut endpoints {
            let row = rows.iter().find(|row| row.merchant == *merchant && row.kind == kind.name());
            let (window, not_before) = self.apply(row, results);
            if window.is_at_max() {
                self.fully_open.insert(((*merchant).to_owned(), *kind), Instant::now());
            }
            updates.push(EndpointUpdate {
                merchant,
                kind: *kind,
                window: window.parts(),
                not_before,
                disabled: *disabled,
                health: health(row, results),
            });
        }
        save_endpoints(conn, &updates).await
    }

    /// Returns the results of each endpoint whose window may change.
    fn changing_endpoints<'a>(
        &mut self,
        batch: &'a [Settlement],
    ) -> BTreeMap<(&'a str, MessageKind), EndpointResults<'a>> {
        let mut endpoints = BTreeMap::<_, EndpointResults>::new();
        for settlement in batch {
            let key = (settlement.merchant(), settlement.kind());
            let endpoint = endpoints.entry(key).or_default();
            let result = DeliveryResult::from(settlement);
            let disabled = settlement.disabled_at_version.map(|version| (version, result.ended_at));
            endpoint.disabled = endpoint.disabled.max(disabled);
            endpoint.results.push(result);
        }
        self.fully_open.retain(|_, seen_at| seen_at.elapsed() < FULLY_OPEN_CACHE_TTL);
        endpoints.retain(|(merchant, kind), endpoint| {
            let key = ((*merchant).to_owned(), *kind);
            let succeeded = endpoint.results.iter().all(|result| result.signal == Signal::Grow);
            if !succeeded {
                self.fully_open.remove(&key);
            }
            !(succeeded && self.fully_open.contains_key(&key))
        });
        endpoints
    }

    /// Applies results to a stored window, and returns it with the time of the next probe.
    fn apply(
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
                signal => window.apply(signal),
            }
            last_ended_at = last_ended_at.max(result.ended_at);
            not_before =
                last_ended_at + TimeDelta::from_std(window.probe_delay()).unwrap_or_default();
        }
        (window, not_before)
    }
}

/// Applies results to the stored health of an endpoint, in the order in which they ended.
fn health(row: Option<&EndpointRow>, results: &mut [DeliveryResult<'_>]) -> EndpointHealth {
    let mut health = row.map(|row| row.health.clone()).unwrap_or_default();
    results.sort_by_key(|result| result.ended_at);
    results.iter().for_each(|result| health.apply(result.outcome, result.ended_at));
    health
}
