//! Works off deadlines: returns that no carrier has scanned in time expire, of which their shoppers are reminded before,
//! exchanged units that did not come back are reported to the merchant, and returns about which the merchant has not
//! decided are approved or declined. Also adds up the changes of guarantees.
//!
//! ```text
//! return_deadlines --> due by the clock of the database --> the merchant's settings say later: moved
//!                                                      --> the return does not need it any more: deleted
//!                                                      --> a row is locked: tried again in some seconds
//!                                                      --> the merchant is unknown: tried again in some minutes
//!                                                      --> the return changes, its message is stored, deleted
//! ```
//!
//! One replica does this. A deadline and its effect are one transaction, so a process that is killed loses and repeats
//! nothing. Up to [`BATCH`] deadlines share a transaction, which skips locked rows. If none of them can be processed,
//! each gets a transaction of its own, which waits a moment for locks: one of them may be too large for a batch, or fail.
//!
//! See docs/decisions/deadlines.md.

mod batch;
mod metrics;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use chrono::TimeDelta;
use diesel_async::AsyncPgConnection;
use domain::access::MerchantId;
use domain::returns::{DeadlineKind, Period};
use merchants::Merchants;
use messaging::Outbox;
use opentelemetry::metrics::Counter;
use platform::batching::Processing;
use platform::database::{
    DatabaseError, LeaderTask, PollOutcome, lock_timed_out, retention_time, transaction,
};
use platform::{Clock, Process, Timestamp, chain, telemetry};
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

use self::batch::{Batch, Worked};
use crate::App;
use crate::error::Error;
use crate::messages::Messages;
use crate::settings::Deadlines;
use crate::store::deadlines::{self, StoredDeadline};
use crate::store::guarantees;

/// Deadlines in one transaction.
const BATCH: usize = 20;
/// The time until a deadline of a locked return is tried again, and that of a return that failed or whose merchant is
/// unknown.
const LOCKED_INTERVAL: TimeDelta = TimeDelta::seconds(10);
const FAILED_INTERVAL: TimeDelta = TimeDelta::minutes(10);
/// Merchants whose settings are compared with their deadlines, deadlines that follow them, and changes of guarantees that
/// are added up, in one statement.
const STATEMENT_ROWS: usize = 1_000;
/// All settings are compared at this interval, because a replica that learnt of a change later may have stored a return
/// with the former days or time zone.
const COMPARE_INTERVAL: Duration = Duration::from_secs(3600);

/// Starts the task and its metric.
pub(crate) fn start(app: &App, process: &Process, settings: &Deadlines) {
    metrics::watch(process);
    let worker = DeadlineWorker::new(app);
    let pool = process.pool.clone();
    let poll_interval = settings.poll_interval;
    // Nothing wakes the task: a deadline is due days after it is written.
    let wake = Arc::new(Notify::new());
    process.tasks.spawn("deadlines", |stop| async move {
        let merchants = worker.merchants.clone();
        if stop.run_until_cancelled(merchants.loaded()).await.is_some() {
            pool.run_as_leader(worker, wake, poll_interval, stop).await;
        }
    });
}

pub(crate) struct DeadlineWorker {
    clock: Clock,
    merchants: Arc<Merchants>,
    messages: Messages,
    outbox: Outbox,
    /// The period of each kind that all deadlines of a merchant were computed with.
    compared: BTreeMap<(DeadlineKind, MerchantId), Period>,
    compared_at: Instant,
    /// Whether all merchants of the last change are in `compared`.
    all_compared: bool,
    merchant_changes: watch::Receiver<u64>,
    /// Deadlines that are still processed one by one.
    alone: usize,
    expired: Counter<u64>,
    unreturned: Counter<u64>,
    reviewed: Counter<u64>,
    reminded: Counter<u64>,
}

impl DeadlineWorker {
    pub(crate) fn new(app: &App) -> Self {
        let expired = telemetry::meter()
            .u64_counter("returns_expired")
            .with_description("Returns that expired because no carrier scanned a parcel in time")
            .build();
        let unreturned = telemetry::meter()
            .u64_counter("returns_exchange_unreturned")
            .with_description("Returns with exchanged units that did not come back in time")
            .build();
        let reviewed = telemetry::meter()
            .u64_counter("returns_reviewed_by_rule")
            .with_description("Returns in review about which nobody decided in time")
            .build();
        let reminded = telemetry::meter()
            .u64_counter("returns_reminded")
            .with_description("Returns whose shoppers were reminded before the expiry")
            .build();
        Self {
            clock: app.clock.clone(),
            merchants: app.merchants.clone(),
            messages: app.messages.clone(),
            outbox: app.outbox.clone(),
            compared: BTreeMap::new(),
            compared_at: Instant::now(),
            all_compared: false,
            merchant_changes: app.merchants.changes(),
            alone: 0,
            expired,
            unreturned,
            reviewed,
            reminded,
        }
    }

    /// Computes deadlines again whose merchants have changed their settings. Returns whether there may be more.
    async fn follow_settings(&mut self, conn: &mut AsyncPgConnection) -> Result<bool, Error> {
        if self.compared_at.elapsed() > COMPARE_INTERVAL {
            self.compared.clear();
            self.compared_at = Instant::now();
            self.all_compared = false;
        }
        let has_changed = self.merchant_changes.has_changed().unwrap_or(true);
        if self.all_compared && !has_changed {
            return Ok(false);
        }
        self.all_compared = false;
        self.merchant_changes.mark_unchanged();
        for kind in DeadlineKind::ALL.iter().copied() {
            let changed = self.changed_settings(kind);
            if changed.is_empty() {
                continue;
            }
            let most = i64::try_from(STATEMENT_ROWS).unwrap_or(i64::MAX);
            let found = deadlines::with_other_period(conn, kind, &changed, most).await?;
            self.reschedule(conn, &found).await?;
            if found.len() == STATEMENT_ROWS {
                return Ok(true);
            }
            let is_full = changed.len() == STATEMENT_ROWS;
            self.compared.extend(changed.into_iter().map(|(id, period)| ((kind, id), period)));
            if is_full {
                return Ok(true);
            }
        }
        self.all_compared = true;
        Ok(false)
    }

    /// Merchants whose deadlines may have been computed with another period.
    fn changed_settings(&self, kind: DeadlineKind) -> Vec<(MerchantId, Period)> {
        let merchants = self.merchants.all();
        let periods = merchants
            .values()
            .filter_map(|it| Some((it.identifier.clone(), kind.period(&it.settings)?)));
        let is_changed = |(id, period): &(MerchantId, Period)| {
            self.compared.get(&(kind, id.clone())) != Some(period)
        };
        periods.filter(is_changed).take(STATEMENT_ROWS).collect()
    }

    async fn reschedule(
        &self,
        conn: &mut AsyncPgConnection,
        found: &[StoredDeadline],
    ) -> Result<(), DatabaseError> {
        let merchants = |id: &MerchantId| self.merchants.get(id);
        let deadline = |it: &StoredDeadline| {
            it.kind.starting(it.started_at, &merchants(&it.merchant)?.settings)
        };
        let rescheduled: Vec<_> = found.iter().filter_map(|it| Some((it, deadline(it)?))).collect();
        deadlines::reschedule(conn, &rescheduled).await
    }

    /// Works off the oldest deadlines that are due.
    async fn work_off(
        &mut self,
        conn: &mut AsyncPgConnection,
        now: Timestamp,
    ) -> Result<PollOutcome, Error> {
        let processing = if self.alone > 0 { Processing::Alone } else { Processing::Batch };
        let most = if processing == Processing::Alone { 1 } else { BATCH };
        let batch = Batch {
            merchants: &self.merchants,
            messages: &self.messages,
            outbox: &self.outbox,
            clock: &self.clock,
            now,
            processing,
        };
        let worked = match transaction(conn, async |conn| batch.work_off(conn, most).await).await {
            Ok(worked) => worked,
            Err(error) if processing == Processing::Batch => {
                tracing::debug!(error = chain(&error), "deadlines are processed one by one");
                Worked { due: BATCH, ..Worked::default() }
            }
            Err(error) => {
                let interval =
                    if lock_timed_out(&error) { LOCKED_INTERVAL } else { FAILED_INTERVAL };
                tracing::warn!(error = chain(&error), "a deadline is tried again later");
                deadlines::postpone_oldest(conn, now, now + interval).await?;
                Worked { due: 1, done: 1, ..Worked::default() }
            }
        };
        self.expired.add(worked.expired, &[]);
        self.unreturned.add(worked.unreturned, &[]);
        self.reviewed.add(worked.reviewed, &[]);
        self.reminded.add(worked.reminded, &[]);
        match processing {
            Processing::Alone => self.alone -= 1,
            Processing::Batch if worked.done == 0 => self.alone = worked.due,
            Processing::Batch => {}
        }
        Ok(match worked.due {
            0 => {
                self.alone = 0;
                PollOutcome::Idle
            }
            due if due == most || self.alone > 0 => PollOutcome::Busy,
            _ => PollOutcome::Complete,
        })
    }
}

impl LeaderTask for DeadlineWorker {
    const LOCK: i64 = i64::from_be_bytes(*b"deadline");
    const FAILURE_MESSAGE: &'static str = "deadlines cannot be processed";
    type Error = Error;

    /// Another replica may have led, or the database may be another one.
    async fn begin(&mut self, _conn: &mut AsyncPgConnection) -> Result<(), Error> {
        self.compared.clear();
        self.all_compared = false;
        Ok(())
    }

    async fn poll(&mut self, conn: &mut AsyncPgConnection) -> Result<PollOutcome, Error> {
        let now = retention_time(conn, self.clock.now()).await?;
        let has_more = self.follow_settings(conn).await?;
        let worked = self.work_off(conn, now).await?;
        let most = i64::try_from(STATEMENT_ROWS).unwrap_or(i64::MAX);
        let has_more = guarantees::fold(conn, most).await? == most || has_more;
        Ok(if has_more { PollOutcome::Busy } else { worked })
    }
}
