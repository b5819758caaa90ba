//! Regular work of the dispatcher: expired leases, blocked heads, endpoints to check again.
//!
//! Deleted rows stay in the indexes while a long transaction is open, for example `pg_dump`, and a scan
//! reads them. A scan that takes long is therefore repeated after [`PAUSE_FACTOR`] times its duration.

use std::collections::HashSet;
use std::time::Duration;

use diesel_async::{AsyncConnection as _, AsyncPgConnection, SimpleAsyncConnection as _};
use platform::{Timestamp, chain, database::DatabaseError};
use tokio::time::Instant;

use super::Term;
use crate::engine::Engine;
use crate::store::{self, BlockedCursor, EndpointKey, LeasedDelivery};
use crate::waiting_messages::message_bytes;

const INTERVAL: Duration = Duration::from_secs(1);
/// Interval of looking for blocked heads, and between two sweeps.
const SCAN_INTERVAL: Duration = Duration::from_secs(5);
/// Interval of comparing the deliveries in flight with the database.
const RELOAD_INTERVAL: Duration = Duration::from_secs(30);
const PAUSE_FACTOR: u32 = 20;
/// Endpoints that one step of a sweep reads: of the first sweep, and later. A sweep of a hundred thousand
/// endpoints takes seven minutes.
const FIRST_SWEEP_STEP: i64 = 1000;
const SWEEP_STEP: i64 = 250;

/// A scan that runs at an interval.
#[derive(Debug)]
struct Scan {
    interval: Duration,
    next_at: Instant,
}

impl Scan {
    fn every(interval: Duration) -> Self {
        Self { interval, next_at: Instant::now() }
    }

    /// The first time after an interval.
    fn after(interval: Duration) -> Self {
        Self { interval, next_at: Instant::now() + interval }
    }

    fn is_due(&self) -> bool {
        self.next_at <= Instant::now()
    }

    fn ran_since(&mut self, start: Instant) {
        let pause = self.interval.max(start.elapsed() * PAUSE_FACTOR);
        self.next_at = Instant::now() + pause;
    }
}

#[derive(Debug)]
pub(super) struct Maintenance {
    second: Scan,
    heads: Scan,
    reload: Scan,
    sweep: Scan,
    blocked: BlockedCursor,
    /// The endpoint that the sweep read last.
    swept: EndpointKey,
    /// Rounds in which the sweep runs at every poll, because endpoints with due deliveries may be unknown.
    urgent_rounds: u8,
}

impl Maintenance {
    pub(super) fn new() -> Self {
        Self {
            second: Scan::every(INTERVAL),
            heads: Scan::every(SCAN_INTERVAL),
            reload: Scan::after(RELOAD_INTERVAL),
            sweep: Scan::every(INTERVAL),
            blocked: BlockedCursor::default(),
            swept: EndpointKey::default(),
            urgent_rounds: 1,
        }
    }

    /// Makes the sweep check all endpoints without pauses. A round that has begun is finished first: a long
    /// burst of deliveries must not restart the sweep again and again.
    pub(super) fn sweep_now(&mut self) {
        if self.urgent_rounds == 0 {
            self.swept = EndpointKey::default();
        }
        self.urgent_rounds = (self.urgent_rounds + 1).min(2);
    }

    pub(super) fn is_sweep_urgent(&self) -> bool {
        self.urgent_rounds > 0
    }
}

impl Term {
    pub(super) async fn run_maintenance(
        &mut self,
        conn: &mut AsyncPgConnection,
        engine: &Engine,
        now: Timestamp,
    ) -> Result<(), DatabaseError> {
        if self.maintenance.second.is_due() {
            let start = Instant::now();
            self.expire_leases(conn, engine, now).await?;
            for key in store::take_wake_ups(conn).await? {
                self.schedule.revisit(key, Timestamp::UNIX_EPOCH);
            }
            self.maintenance.second.ran_since(start);
        }
        if self.maintenance.heads.is_due() {
            let start = Instant::now();
            self.unblock_heads(conn, now).await;
            self.maintenance.heads.ran_since(start);
        }
        if self.maintenance.reload.is_due() {
            let start = Instant::now();
            self.reload_in_flight(conn, engine).await?;
            self.maintenance.reload.ran_since(start);
        }
        if self.maintenance.is_sweep_urgent() || self.maintenance.sweep.is_due() {
            let start = Instant::now();
            self.sweep(conn, now).await?;
            self.maintenance.sweep.ran_since(start);
        }
        Ok(())
    }

    /// Repairs ordering keys. A failure is logged only: the scan may time out while deleted rows cannot be
    /// removed, and other deliveries must be sent all the same.
    async fn unblock_heads(&mut self, conn: &mut AsyncPgConnection, now: Timestamp) {
        match store::unblock_heads(conn, now, &mut self.maintenance.blocked).await {
            Ok(0) => {}
            Ok(unblocked) => {
                tracing::warn!(deliveries = unblocked, "unblocked {unblocked} heads of keys");
            }
            Err(error) => {
                tracing::warn!(error = chain(&error), "looking for blocked heads of keys failed");
            }
        }
    }

    async fn expire_leases(
        &mut self,
        conn: &mut AsyncPgConnection,
        engine: &Engine,
        now: Timestamp,
    ) -> Result<(), DatabaseError> {
        let ids = self.in_flight.expired(now);
        if ids.is_empty() {
            return Ok(());
        }
        let expired = store::expire_leases(conn, now, &ids).await?;
        for id in ids {
            self.settled(id);
        }
        if expired > 0 {
            tracing::warn!(deliveries = expired, "the leases of {expired} deliveries expired");
            engine.metrics.leases_expired(expired);
        }
        Ok(())
    }

    /// Makes the deliveries in flight those that the database has.
    pub(super) async fn reload_in_flight(
        &mut self,
        conn: &mut AsyncPgConnection,
        engine: &Engine,
    ) -> Result<(), DatabaseError> {
        let leased = conn
            .transaction(async |conn| {
                set_long_timeout(conn).await?;
                store::leased(conn).await
            })
            .await?;
        let known: HashSet<_> = leased.iter().map(|leased| leased.id).collect();
        let gone: Vec<_> = self.in_flight.ids().filter(|id| !known.contains(id)).collect();
        for id in gone {
            self.settled(id);
        }
        let kib = engine.inflight_budget.kib(message_bytes(0));
        for LeasedDelivery { id, merchant, kind, leased_until } in leased {
            if !self.in_flight.contains(id) {
                let now = Instant::now();
                self.in_flight.insert(id, (merchant, kind), kib, leased_until, now);
            }
        }
        Ok(())
    }

    /// Checks the next endpoints, one after the other, in case a delivery was committed later than the
    /// time that polls read again.
    async fn sweep(
        &mut self,
        conn: &mut AsyncPgConnection,
        now: Timestamp,
    ) -> Result<(), DatabaseError> {
        let maintenance = &mut self.maintenance;
        let limit = if maintenance.is_sweep_urgent() { FIRST_SWEEP_STEP } else { SWEEP_STEP };
        let after = std::mem::take(&mut maintenance.swept);
        let endpoints = conn
            .transaction(async |conn| {
                set_long_timeout(conn).await?;
                store::endpoints_after(conn, &after, limit).await
            })
            .await?;
        match endpoints.last() {
            Some(last) if i64::try_from(endpoints.len()) == Ok(limit) => {
                maintenance.swept = (last.merchant.clone(), last.kind.clone());
                maintenance.sweep.interval = INTERVAL;
            }
            _ => {
                maintenance.urgent_rounds = maintenance.urgent_rounds.saturating_sub(1);
                maintenance.sweep.interval = SCAN_INTERVAL;
            }
        }
        for endpoint in endpoints.into_iter().filter(|endpoint| endpoint.first_at <= now) {
            self.schedule.revisit((endpoint.merchant, endpoint.kind), endpoint.first_at);
        }
        Ok(())
    }
}

/// Lets the statements of a transaction take longer than others may: a scan may read many deleted rows.
async fn set_long_timeout(conn: &mut AsyncPgConnection) -> Result<(), DatabaseError> {
    Ok(conn.batch_execute("SET LOCAL statement_timeout = '1min'").await?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_burst_does_not_restart_the_sweep() {
        let mut maintenance = Maintenance::new();
        maintenance.swept = ("acme".to_owned(), "rma".to_owned());
        (0..5).for_each(|_| maintenance.sweep_now());
        assert_eq!((maintenance.swept.0.as_str(), maintenance.urgent_rounds), ("acme", 2));
        maintenance.urgent_rounds = 0;
        maintenance.sweep_now();
        assert_eq!((maintenance.swept.0.as_str(), maintenance.urgent_rounds), ("", 1));
    }
}
