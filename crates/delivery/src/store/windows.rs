//! Send windows of the endpoints, which all replicas share through the database.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use chrono::TimeDelta;
use diesel::sql_types::{Array, BigInt, Integer, Nullable, Text, Timestamptz};
use diesel::{QueryableByName, sql_query};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use domain::message_kind::MessageKind;
use platform::{
    Timestamp,
    database::{DatabaseError, prepared},
};
use tokio::time::Instant;

use crate::attempt::Attempt;
use crate::outcome::Signal;
use crate::settlement::Settlement;
use crate::window::{Limits, Window};

/// Time for which a window that was fully open is taken to be so still, without a query.
const FULLY_OPEN_CACHE_TTL: Duration = Duration::from_secs(1);

pub(crate) struct Windows {
    limits: Limits,
    /// Endpoints whose window was fully open, and since when: another success changes nothing.
    fully_open: HashMap<(String, MessageKind), Instant>,
}

#[derive(QueryableByName)]
struct WindowRow {
    #[diesel(sql_type = Text)]
    merchant: String,
    #[diesel(sql_type = Text)]
    kind: String,
    #[diesel(sql_type = Integer)]
    window_size: i32,
    #[diesel(sql_type = Integer)]
    slow_start_threshold: i32,
    #[diesel(sql_type = Integer)]
    window_acks: i32,
    #[diesel(sql_type = Integer)]
    failed_probes: i32,
    #[diesel(sql_type = Timestamptz)]
    not_before: Timestamp,
}

/// Results of a batch for one endpoint.
#[derive(Default)]
struct EndpointResults {
    results: Vec<DeliveryResult>,
    disabled: Option<Disabled>,
}

/// Version of the merchant and time at which its endpoint responded 410.
type Disabled = (i64, Timestamp);

struct DeliveryResult {
    signal: Signal,
    started_at: Timestamp,
    ended_at: Timestamp,
}

impl From<&Settlement> for DeliveryResult {
    fn from(settlement: &Settlement) -> Self {
        let Attempt { signal, started_at, latency, .. } = &settlement.attempt;
        let latency = TimeDelta::from_std(*latency).unwrap_or_default();
        let first = settlement.attempts().next().unwrap_or(&settlement.attempt);
        Self {
            signal: *signal,
            started_at: first.started_at,
            ended_at: started_at.checked_add_signed(latency).unwrap_or(*started_at),
        }
    }
}

/// New state of an endpoint.
struct EndpointUpdate<'a> {
    merchant: &'a str,
    kind: MessageKind,
    window: [i32; 4],
    not_before: Timestamp,
    disabled: Option<Disabled>,
}

impl Windows {
    pub(crate) fn new(limits: Limits) -> Self {
        Self { limits, fully_open: HashMap::new() }
    }

    /// Widens and narrows windows by the results of a batch. This comes last in a transaction,
    /// because it locks rows that every replica writes to.
    pub(super) async fn update(
        &mut self,
        conn: &mut AsyncPgConnection,
        batch: &[Settlement],
    ) -> Result<(), DatabaseError> {
        let endpoints = self.changing_endpoints(batch);
        if endpoints.is_empty() {
            return Ok(());
        }
        let rows = lock_windows(conn, &endpoints).await?;
        let mut updates = Vec::with_capacity(endpoints.len());
        for ((merchant, kind), EndpointResults { results, disabled }) in &endpoints {
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
            });
        }
        save(conn, &updates).await
    }

    /// Returns the results of each endpoint whose window may change.
    fn changing_endpoints<'a>(
        &mut self,
        batch: &'a [Settlement],
    ) -> BTreeMap<(&'a str, MessageKind), EndpointResults> {
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
    fn apply(&self, row: Option<&WindowRow>, results: &[DeliveryResult]) -> (Window, Timestamp) {
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

/// The lateral subquery locks rows in the order of the keys, so that two replicas do not deadlock.
const LOCK_WINDOWS: &str = "SELECT endpoint.* FROM unnest($1, $2) AS given (merchant, kind), LATERAL ( \
     SELECT merchant, kind, window_size, slow_start_threshold, window_acks, failed_probes, not_before \
     FROM delivery_endpoints AS row \
     WHERE row.merchant = given.merchant AND row.kind = given.kind FOR UPDATE \
 ) AS endpoint";

async fn lock_windows(
    conn: &mut AsyncPgConnection,
    endpoints: &BTreeMap<(&str, MessageKind), EndpointResults>,
) -> Result<Vec<WindowRow>, DatabaseError> {
    let (merchants, kinds): (Vec<_>, Vec<_>) =
        endpoints.keys().map(|(merchant, kind)| (*merchant, kind.name())).unzip();
    let statement =
        sql_query(LOCK_WINDOWS).bind::<Array<Text>, _>(merchants).bind::<Array<Text>, _>(kinds);
    Ok(prepared(statement).load(conn).await?)
}

const SAVE: &str = "INSERT INTO delivery_endpoints AS endpoint \
     (merchant, kind, window_size, slow_start_threshold, window_acks, failed_probes, not_before, \
     disabled_at_version, disabled_at) \
     SELECT * FROM unnest($1, $2, $3, $4, $5, $6, $7, $8, $9) \
     ON CONFLICT (merchant, kind) DO UPDATE SET window_size = excluded.window_size, \
     slow_start_threshold = excluded.slow_start_threshold, window_acks = excluded.window_acks, \
     failed_probes = excluded.failed_probes, not_before = excluded.not_before, \
     disabled_at_version = \
         GREATEST(excluded.disabled_at_version, endpoint.disabled_at_version), \
     disabled_at = COALESCE(endpoint.disabled_at, excluded.disabled_at)";

async fn save(
    conn: &mut AsyncPgConnection,
    updates: &[EndpointUpdate<'_>],
) -> Result<(), DatabaseError> {
    let part = |index: usize| {
        let part = |update: &EndpointUpdate<'_>| update.window.get(index).copied();
        column(updates, move |update| part(update).unwrap_or_default())
    };
    let statement = sql_query(SAVE)
        .bind::<Array<Text>, _>(column(updates, |update| update.merchant))
        .bind::<Array<Text>, _>(column(updates, |update| update.kind.name()))
        .bind::<Array<Integer>, _>(part(0))
        .bind::<Array<Integer>, _>(part(1))
        .bind::<Array<Integer>, _>(part(2))
        .bind::<Array<Integer>, _>(part(3))
        .bind::<Array<Timestamptz>, _>(column(updates, |update| update.not_before))
        .bind::<Array<Nullable<BigInt>>, _>(column(updates, |update| {
            update.disabled.map(|(version, _)| version)
        }))
        .bind::<Array<Nullable<Timestamptz>>, _>(column(updates, |update| {
            update.disabled.map(|(_, at)| at)
        }));
    prepared(statement).execute(conn).await?;
    Ok(())
}

fn column<'a, T>(
    updates: &[EndpointUpdate<'a>],
    value: impl Fn(&EndpointUpdate<'a>) -> T,
) -> Vec<T> {
    updates.iter().map(value).collect()
}
