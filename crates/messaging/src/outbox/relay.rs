//! Publishes the rows of the outbox, moves those that the broker confirmed to the published events, and
//! publishes kept events again on request.

use std::sync::Arc;
use std::time::{Duration, Instant};

use diesel::sql_types::BigInt;
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use opentelemetry::metrics::{Counter, Histogram};
use platform::{
    Clock, MAX_BATCH_BYTES, chain,
    database::{DatabaseError, LeaderTask, PollOutcome, Pool, prepared, sql, timed_out},
    telemetry,
};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::{
    Outbox,
    cursor::{Poll, RelayCursor},
    error::{RelayError, check_queued},
    event_row::EventRow,
    published::{ConfirmedEvents, maintain},
    republisher::Republisher,
};
use crate::{
    publisher::Publisher, restore_check::check_connection, settings::Settings, topology::Exchange,
};

/// Interval at which the leader creates and drops partitions. Until the first success it is shorter.
const MAINTENANCE_INTERVAL: Duration = Duration::from_secs(10 * 60);
const FIRST_MAINTENANCE_INTERVAL: Duration = Duration::from_secs(10);
/// Interval of trying to move published events that another transaction has locked.
const UNMOVED_INTERVAL: Duration = Duration::from_secs(1);

/// Publishes the outbox while this replica is the leader.
pub(crate) struct Relay {
    pool: Pool,
    publisher: Publisher,
    exchange: Exchange,
    batch_size: usize,
    retention_days: u16,
    wake: Arc<Notify>,
    cursor: RelayCursor,
    confirmed: ConfirmedEvents,
    republisher: Republisher,
    maintain_partitions_at: Instant,
    has_maintained_partitions: bool,
    published: Counter<u64>,
    publish_lag: Histogram<f64>,
}

impl Relay {
    pub(crate) fn new(
        outbox: &Outbox,
        pool: Pool,
        publisher: Publisher,
        exchange: Exchange,
        settings: &Settings,
    ) -> Self {
        let meter = telemetry::meter();
        let now = Instant::now();
        Self {
            pool,
            publisher,
            republisher: Republisher::new(exchange.clone(), settings),
            exchange,
            batch_size: settings.relay_batch_size.get(),
            retention_days: settings.event_retention_days,
            wake: outbox.wake.clone(),
            cursor: RelayCursor::new(now),
            confirmed: ConfirmedEvents::default(),
            maintain_partitions_at: now,
            has_maintained_partitions: false,
            published: meter
                .u64_counter("events_published")
                .with_description("Events confirmed by the broker")
                .build(),
            publish_lag: meter
                .f64_histogram("event_publish_lag_seconds")
                .with_description("Time from an event to the broker's confirmation")
                .with_boundaries(vec![
                    0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 30.0, 300.0,
                ])
                .build(),
        }
    }

    pub(crate) async fn run(self, poll_interval: Duration, stop: CancellationToken) {
        let pool = self.pool.clone();
        let wake = self.wake.clone();
        pool.run_as_leader(self, wake, poll_interval, stop).await;
    }

    async fn next_batch(
        &mut self,
        conn: &mut AsyncPgConnection,
    ) -> Result<Vec<EventRow>, DatabaseError> {
        let limit = self.batch_size.try_into().unwrap_or(i64::MAX);
        let polled_at = Instant::now();
        let poll = self.cursor.next_poll(polled_at);
        let skipped = self.cursor.skipped(polled_at);
        let published = self.confirmed.sequences();
        let polled = read_batch(conn, poll, &skipped, published, limit).await;
        if poll == Poll::Full {
            self.cursor.end_full_poll(polled_at.elapsed(), Instant::now());
        }
        match polled {
            // The error is not returned: another replica would become the leader, and its full poll would time
            // out too.
            Err(error) if poll == Poll::Full && timed_out(&error) => {
                tracing::warn!("full outbox poll timed out: a long transaction may be open");
                self.cursor.skip_to(last_sequence(conn).await?);
                let poll = self.cursor.next_poll(Instant::now());
                read_batch(conn, poll, &[], published, limit).await
            }
            polled => polled,
        }
    }

    /// A failure does not stop the relay: the partitions of the coming days usually exist, and a
    /// backup can hold its lock for hours.
    async fn maintain_partitions(&mut self, conn: &mut AsyncPgConnection) {
        if Instant::now() < self.maintain_partitions_at {
            return;
        }
        match maintain(conn, self.retention_days).await {
            Ok(()) => self.has_maintained_partitions = true,
            Err(error) => tracing::warn!(
                error = chain(&error),
                "the partitions of published events were not maintained"
            ),
        }
        let interval = if self.has_maintained_partitions {
            MAINTENANCE_INTERVAL
        } else {
            FIRST_MAINTENANCE_INTERVAL
        };
        self.maintain_partitions_at = Instant::now() + interval;
    }

    /// Publishes one batch of the outbox, after the events that an earlier poll published were moved.
    async fn publish_batch(
        &mut self,
        conn: &mut AsyncPgConnection,
    ) -> Result<PollOutcome, RelayError> {
        self.confirmed.move_free(conn).await?;
        let rows = self.next_batch(conn).await?;
        if rows.is_empty() {
            let has_unmoved = !self.confirmed.sequences().is_empty();
            return Ok(if has_unmoved {
                PollOutcome::Waiting(UNMOVED_INTERVAL)
            } else {
                PollOutcome::Idle
            });
        }
        let messages: Vec<_> = rows.iter().map(|row| row.message(&self.exchange)).collect();
        let outcomes = self.publisher.publish(&messages).await?;
        let outcome_of = rows.iter().zip(&outcomes);
        let confirmed: Vec<_> =
            outcome_of.filter(|(_, outcome)| outcome.is_ok()).map(|(row, _)| row).collect();
        confirmed.iter().for_each(|row| self.confirmed.push(row));
        self.record_published(&confirmed);
        self.confirmed.move_free(conn).await?;
        // After a rejected or unroutable event the cursor stays, and another replica may take over; the confirmed
        // events are already moved.
        check_queued(&outcomes)?;
        let sequences: Vec<_> = rows.iter().map(|row| row.sequence).collect();
        self.cursor.advance(&sequences, Instant::now());
        let bytes: usize = messages.iter().map(|message| message.body.len()).sum();
        // The query ends a batch with the event that reaches the limit. A body is an event with its sequence
        // number.
        let is_full = rows.len() >= self.batch_size || bytes >= MAX_BATCH_BYTES;
        Ok(if is_full { PollOutcome::Busy } else { PollOutcome::Complete })
    }

    fn record_published(&self, rows: &[&EventRow]) {
        let now = Clock::system().now();
        for row in rows {
            self.publish_lag.record((now - row.created_at).as_seconds_f64(), &[]);
        }
        self.published.add(rows.len().try_into().unwrap_or(u64::MAX), &[]);
    }
}

impl LeaderTask for Relay {
    const LOCK: i64 = i64::from_be_bytes(*b"backhaul");
    const FAILURE_MESSAGE: &'static str = "outbox relay failed";
    type Error = RelayError;

    /// After a fail-over the numbers of events must not repeat.
    async fn begin(&mut self, conn: &mut AsyncPgConnection) -> Result<(), RelayError> {
        Ok(check_connection(conn, Clock::system().now()).await?)
    }

    /// Publishes one batch of new events, then a batch of kept events if one is due.
    async fn poll(&mut self, conn: &mut AsyncPgConnection) -> Result<PollOutcome, RelayError> {
        self.maintain_partitions(conn).await;
        let published = self.publish_batch(conn).await?;
        let next_step = self.republisher.step(conn, &self.publisher).await?;
        Ok(match (published, next_step) {
            (PollOutcome::Idle | PollOutcome::Waiting(_) | PollOutcome::Complete, Some(pause)) => {
                PollOutcome::Later(pause)
            }
            (published, _) => published,
        })
    }
}

const READ_BATCH: &str = include_str!("read_outbox_batch.sql");

/// Reads up to `limit` rows of a poll and with the skipped numbers, which are lower, but none of those that are
/// published already. Reads fewer if they reach [`MAX_BATCH_BYTES`].
pub(super) async fn read_batch(
    conn: &mut AsyncPgConnection,
    poll: Poll,
    skipped: &[i64],
    published: &[i64],
    limit: i64,
) -> Result<Vec<EventRow>, DatabaseError> {
    let max_bytes = i64::try_from(MAX_BATCH_BYTES).unwrap_or(i64::MAX);
    let query = sql(READ_BATCH, (poll.first_sequence(), limit, max_bytes, skipped, published));
    Ok(prepared(query).load(conn).await?)
}

/// The last sequence number that was drawn.
pub(super) async fn last_sequence(conn: &mut AsyncPgConnection) -> Result<i64, DatabaseError> {
    let last = diesel::dsl::sql::<BigInt>(
        "COALESCE(pg_sequence_last_value( \
             pg_get_serial_sequence('outbox', 'sequence')::regclass), 0)",
    );
    Ok(diesel::select(last).get_result(conn).await?)
}
