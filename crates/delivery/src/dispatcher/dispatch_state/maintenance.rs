//! Regular work of the dispatcher: expired leases, blocked ordering keys, endpoints to check again.
//!
//! Deleted rows stay in the indexes while a long transaction is open, for example `pg_dump`, and a scan
//! reads them. A task that takes long is therefore repeated after [`PAUSE_FACTOR`] times its duration.

use std::collections::HashSet;
use std::time::Duration;

use diesel_async::{AsyncConnection as _, AsyncPgConnection, SimpleAsyncConnection as _};
use platform::{MemoryBudget, Timestamp, chain, database::DatabaseError};
use tokio::time::Instant;

use super::DispatchState;
use crate::awaiting_memory::message_bytes;
use crate::engine::Engine;
use crate::metrics::Metrics;
use crate::store::{self, BlockedCursor, EndpointKey, LeasedDelivery};

const INTERVAL: Duration = Duration::from_secs(1);
/// Interval of looking for blocked ordering keys, and between two scans of all endpoints.
const SCAN_INTERVAL: Duration = Duration::from_secs(5);
/// Interval of comparing the deliveries in flight with the database.
const RELOAD_INTERVAL: Duration = Duration::from_secs(30);
const PAUSE_FACTOR: u32 = 20;
/// Endpoints that one step of a scan without pauses reads, and one of a scan with pauses. A scan of a hundred
/// thousand endpoints with pauses takes seven minutes.
const PAUSELESS_SCAN_STEP: i64 = 1000;
const SCAN_STEP: i64 = 250;

/// The time at which a repeated task is due.
#[derive(Debug)]
struct Timer {
    interval: Duration,
    next_at: Instant,
}

impl Timer {
    /// Due now, and then at the interval.
    fn every(interval: Duration) -> Self {
        Self { interval, next_at: Instant::now() }
    }

    /// Due for the first time after an interval.
    fn after(interval: Duration) -> Self {
        Self { interval, next_at: Instant::now() + interval }
    }

    fn is_due(&self) -> bool {
        self.next_at <= Instant::now()
    }

    /// Sets the next time, after a run of the task that began at `start`.
    fn schedule_next(&mut self, start: Instant) {
        let pause = self.interval.max(start.elapsed() * PAUSE_FACTOR);
        self.next_at = Instant::now() + pause;
    }
}

#[derive(Debug)]
pub(super) struct Maintenance {
    /// Expires leases and reads wake-ups.
    every_second: Timer,
    unblock: Timer,
    reload_in_flight: Timer,
    scan: Timer,
    /// The blocked delivery that was checked last.
    blocked: BlockedCursor,
    /// The endpoint that the scan read last.
    scanned_to: EndpointKey,
    /// Whether the scan found ready deliveries, due or not.
    has_ready: bool,
    /// Rounds in which the scan runs at every poll, because endpoints with due deliveries may be unknown.
    rounds_without_pauses: u8,
}

impl Maintenance {
    pub(super) fn new() -> Self {
        Self {
            every_second: Timer::every(INTERVAL),
            unblock: Timer::every(SCAN_INTERVAL),
            reload_in_flight: Timer::after(RELOAD_INTERVAL),
            scan: Timer::every(INTERVAL),
            blocked: BlockedCursor::default(),
            scanned_to: EndpointKey::default(),
            has_ready: true,
            rounds_without_pauses: 1,
        }
    }

    /// Makes the scan check all endpoints without pauses. A round that has begun is finished first: a long
    /// burst of deliveries must not restart the scan again and again.
    pub(super) fn scan_without_pauses(&mut self) {
        if self.rounds_without_pauses == 0 {
            self.scanned_to = EndpointKey::default();
        }
        self.rounds_without_pauses = (self.rounds_without_pauses + 1).min(2);
    }

    pub(super) fn scans_without_pauses(&self) -> bool {
        self.rounds_without_pauses > 0
    }

    /// Whether there may be ready deliveries, due or not.
    pub(super) fn has_ready(&self) -> bool {
        self.has_ready
    }
}

impl DispatchState {
    /// Runs the tasks that are due, each at its own interval.
    pub(super) async fn run_maintenance(
        &mut self,
        conn: &mut AsyncPgConnection,
        engine: &Engine,
        now: Timestamp,
    ) -> Result<(), DatabaseError> {
        if self.maintenance.every_second.is_due() {
            let start = Instant::now();
            self.expire_leases(conn, &engine.metrics, now).await?;
            self.take_wake_ups(conn).await?;
            self.maintenance.every_second.schedule_next(start);
        }
        if self.maintenance.unblock.is_due() {
            let start = Instant::now();
            self.unblock_first_deliveries(conn, now).await;
            self.maintenance.unblock.schedule_next(start);
        }
        if self.maintenance.reload_in_flight.is_due() {
            let start = Instant::now();
            self.reload_in_flight(conn, &engine.inflight_budget).await?;
            self.maintenance.reload_in_flight.schedule_next(start);
        }
        if self.maintenance.scans_without_pauses() || self.maintenance.scan.is_due() {
            let start = Instant::now();
            self.scan_endpoints(conn, now).await?;
            self.maintenance.scan.schedule_next(start);
        }
        Ok(())
    }

    /// Checks the endpoints that operators retried, whatever the endpoints wait for. A retry is due before
    /// all other deliveries of its endpoint, hence the earliest of all times.
    async fn take_wake_ups(&mut self, conn: &mut AsyncPgConnection) -> Result<(), DatabaseError> {
        for key in store::take_wake_ups(conn).await? {
            self.queue.recheck(key, Timestamp::UNIX_EPOCH);
        }
        Ok(())
    }

    /// Repairs ordering keys. A failure is logged only: the scan may time out while deleted rows cannot be
    /// removed, and other deliveries must be sent all the same.
    async fn unblock_first_deliveries(&mut self, conn: &mut AsyncPgConnection, now: Timestamp) {
        match store::unblock_first_deliveries(conn, now, &mut self.maintenance.blocked).await {
            Ok(0) => {}
            Ok(unblocked) => {
                tracing::warn!(
                    deliveries = unblocked,
                    "unblocked {unblocked} first deliveries of ordering keys"
                );
            }
            Err(error) => {
                tracing::warn!(error = chain(&error), "looking for blocked ordering keys failed");
            }
        }
    }

    async fn expire_leases(
        &mut self,
        conn: &mut AsyncPgConnection,
        metrics: &Metrics,
        now: Timestamp,
    ) -> Result<(), DatabaseError> {
        let ids = self.in_flight.expired(now);
        if ids.is_empty() {
            return Ok(());
        }
        let expired = store::expire_leases(conn, now, &ids).await?;
        for id in ids {
            self.note_left_broker(id);
        }
        if expired > 0 {
            tracing::warn!(deliveries = expired, "the leases of {expired} deliveries expired");
            metrics.leases_expired(expired);
        }
        Ok(())
    }

    /// Replaces the known deliveries in flight by the queued ones in the database.
    pub(super) async fn reload_in_flight(
        &mut self,
        conn: &mut AsyncPgConnection,
        budget: &MemoryBudget,
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
            self.note_left_broker(id);
        }
        let kib = budget.kib(message_bytes(0));
        for LeasedDelivery { id, merchant, kind, leased_until } in leased {
            if !self.in_flight.contains(id) {
                let now = Instant::now();
                self.in_flight.insert(id, (merchant, kind), kib, leased_until, now);
            }
        }
        Ok(())
    }

    /// Reads the next endpoints with ready deliveries and queues those that are due. Polls find a delivery by
    /// the time at which it became due and look back ten seconds at most ([`super::sendable`]); this scan finds
    /// deliveries that were committed even later.
    async fn scan_endpoints(
        &mut self,
        conn: &mut AsyncPgConnection,
        now: Timestamp,
    ) -> Result<(), DatabaseError> {
        let maintenance = &mut self.maintenance;
        let limit =
            if maintenance.scans_without_pauses() { PAUSELESS_SCAN_STEP } else { SCAN_STEP };
        let after = maintenance.scanned_to.clone();
        let endpoints = conn
            .transaction(async |conn| {
                set_long_timeout(conn).await?;
                store::endpoints_after(conn, &after, limit).await
            })
            .await?;
        maintenance.has_ready =
            !endpoints.is_empty() || (maintenance.has_ready && after != EndpointKey::default());
        match endpoints.last() {
            Some(last) if i64::try_from(endpoints.len()) == Ok(limit) => {
                maintenance.scanned_to = (last.merchant.clone(), last.kind.clone());
                maintenance.scan.interval = INTERVAL;
            }
            // The scan has read all endpoints and begins again.
            _ => {
                maintenance.scanned_to = EndpointKey::default();
                maintenance.rounds_without_pauses =
                    maintenance.rounds_without_pauses.saturating_sub(1);
                maintenance.scan.interval = SCAN_INTERVAL;
            }
        }
        for endpoint in endpoints.into_iter().filter(|endpoint| endpoint.first_at <= now) {
            self.queue.recheck((endpoint.merchant, endpoint.kind), endpoint.first_at);
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
    fn a_long_burst_does_not_restart_the_scan() {
        let mut maintenance = Maintenance::new();
        maintenance.scanned_to = ("acme".to_owned(), "rma".to_owned());
        (0..5).for_each(|_| maintenance.scan_without_pauses());
        assert_eq!(
            (maintenance.scanned_to.0.as_str(), maintenance.rounds_without_pauses),
            ("acme", 2)
        );
        maintenance.rounds_without_pauses = 0;
        maintenance.scan_without_pauses();
        assert_eq!((maintenance.scanned_to.0.as_str(), maintenance.rounds_without_pauses), ("", 1));
    }
}
