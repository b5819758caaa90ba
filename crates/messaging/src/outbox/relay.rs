//! Publishes the rows of the outbox and deletes those that the broker confirmed.

use std::sync::Arc;
use std::time::{Duration, Instant};

use diesel::sql_types::{BigInt, Text, Timestamptz};
use diesel::{ExpressionMethods as _, QueryDsl as _};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use opentelemetry::metrics::{Counter, Histogram};
use platform::{
    Clock, Timestamp,
    database::{DatabaseError, LeaderTask, PollOutcome, Pool, prepared, timed_out},
    telemetry,
};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::{Outbox, RELAY_LOCK, cursor::RelayCursor};
use crate::{
    connection::BrokerError,
    publisher::{Message, NotQueued, Publisher},
    schema::outbox,
    topology::Exchange,
};

/// A batch ends after the event that reaches this size.
const MAX_BATCH_BYTES: i64 = 8 * 1024 * 1024;

#[derive(Debug, thiserror::Error)]
pub(crate) enum RelayError {
    #[error("outbox query failed")]
    Database(#[from] DatabaseError),
    #[error("events could not be published")]
    Broker(#[from] BrokerError),
    #[error("{0} events are unroutable; the queues are declared again")]
    Unroutable(usize),
    #[error("the broker rejected {0} events")]
    Nacked(usize),
}

/// Publishes the outbox while this replica is the leader.
pub(crate) struct Relay {
    pool: Pool,
    publisher: Publisher,
    exchange: Exchange,
    batch_size: usize,
    wake: Arc<Notify>,
    cursor: RelayCursor,
    published: Counter<u64>,
    publish_lag: Histogram<f64>,
}

impl Relay {
    pub(crate) fn new(
        outbox: &Outbox,
        pool: Pool,
        publisher: Publisher,
        exchange: Exchange,
        batch_size: usize,
    ) -> Self {
        let meter = telemetry::meter();
        Self {
            pool,
            publisher,
            exchange,
            batch_size,
            wake: outbox.wake.clone(),
            cursor: RelayCursor::new(Instant::now()),
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
        let (pool, wake) = (self.pool.clone(), self.wake.clone());
        pool.run_as_leader(self, wake, poll_interval, stop).await;
    }

    async fn next_batch(
        &mut self,
        conn: &mut AsyncPgConnection,
    ) -> Result<Vec<OutboxRow>, DatabaseError> {
        let limit = self.batch_size.try_into().unwrap_or(i64::MAX);
        let polled_at = Instant::now();
        let start = self.cursor.start(polled_at);
        let polled = read_batch(conn, start, limit).await;
        let is_full_poll = start == i64::MIN;
        if is_full_poll {
            self.cursor.full_poll_ended(polled_at.elapsed(), Instant::now());
        }
        match polled {
            // Another replica's full poll would time out as well.
            Err(error) if is_full_poll && timed_out(&error) => {
                tracing::warn!("full outbox poll timed out: a long transaction may be open");
                self.cursor.skip_to(last_sequence(conn).await?);
                read_batch(conn, self.cursor.start(Instant::now()), limit).await
            }
            polled => polled,
        }
    }

    fn record_published(&self, rows: &[&OutboxRow]) {
        let now = Clock::system().now();
        for row in rows {
            self.publish_lag.record((now - row.created_at).as_seconds_f64(), &[]);
        }
        self.published.add(rows.len().try_into().unwrap_or(u64::MAX), &[]);
    }
}

impl LeaderTask for Relay {
    const LOCK: i64 = RELAY_LOCK;
    const FAILURE_MESSAGE: &'static str = "outbox relay failed";
    type Error = RelayError;

    /// Publishes one batch.
    async fn poll(&mut self, conn: &mut AsyncPgConnection) -> Result<PollOutcome, RelayError> {
        let rows = self.next_batch(conn).await?;
        let Some(last) = rows.last() else { return Ok(PollOutcome::Idle) };
        let messages: Vec<_> = rows.iter().map(|row| row.message(&self.exchange)).collect();
        let outcomes = self.publisher.publish(&messages).await?;
        let outcome_of = rows.iter().zip(&outcomes);
        let confirmed: Vec<_> =
            outcome_of.filter(|(_, outcome)| outcome.is_ok()).map(|(row, _)| row).collect();
        delete(conn, &confirmed).await?;
        self.record_published(&confirmed);
        let count = |reason| outcomes.iter().filter(|outcome| **outcome == Err(reason)).count();
        match (count(NotQueued::Unroutable), count(NotQueued::Nacked)) {
            (0, 0) => {
                self.cursor.deleted_up_to(last.sequence);
                Ok(PollOutcome::Busy)
            }
            (0, nacked) => Err(RelayError::Nacked(nacked)),
            (unroutable, _) => Err(RelayError::Unroutable(unroutable)),
        }
    }
}

#[derive(diesel::QueryableByName)]
struct OutboxRow {
    #[diesel(sql_type = BigInt)]
    sequence: i64,
    #[diesel(sql_type = diesel::sql_types::Uuid)]
    event_id: Uuid,
    #[diesel(sql_type = Text)]
    routing_key: String,
    #[diesel(sql_type = Text)]
    event: String,
    #[diesel(sql_type = Timestamptz)]
    created_at: Timestamp,
}

impl OutboxRow {
    fn message(&self, exchange: &Exchange) -> Message {
        Message {
            exchange: exchange.clone(),
            routing_key: self.routing_key.clone(),
            id: self.event_id.to_string(),
            content_type: "application/cloudevents+json",
            headers: Vec::new(),
            body: self.body().into_bytes(),
        }
    }

    /// The event with its `sequence`, which is known only after the insert. The fixed width makes
    /// sequences comparable as strings.
    fn body(&self) -> String {
        let members = self.event.strip_prefix('{').unwrap_or(&self.event);
        format!("{{\"sequence\":\"{:019}\",{members}", self.sequence)
    }
}

const READ_BATCH: &str = "\
    SELECT sequence, event_id, routing_key, event, created_at FROM ( \
        SELECT *, sum(octet_length(event)) OVER (ORDER BY sequence) \
            - octet_length(event) AS bytes_before \
        FROM (SELECT * FROM outbox WHERE sequence >= $1 ORDER BY sequence LIMIT $2) AS batch \
    ) AS batch \
    WHERE bytes_before < $3 ORDER BY sequence";

/// Reads up to `limit` rows from `start` on, fewer if they reach [`MAX_BATCH_BYTES`].
async fn read_batch(
    conn: &mut AsyncPgConnection,
    start: i64,
    limit: i64,
) -> Result<Vec<OutboxRow>, DatabaseError> {
    let query = diesel::sql_query(READ_BATCH)
        .bind::<BigInt, _>(start)
        .bind::<BigInt, _>(limit)
        .bind::<BigInt, _>(MAX_BATCH_BYTES);
    Ok(prepared(query).load(conn).await?)
}

/// The last sequence number that was drawn.
async fn last_sequence(conn: &mut AsyncPgConnection) -> Result<i64, DatabaseError> {
    let last = diesel::dsl::sql::<BigInt>(
        "COALESCE(pg_sequence_last_value( \
             pg_get_serial_sequence('outbox', 'sequence')::regclass), 0)",
    );
    Ok(diesel::select(last).get_result(conn).await?)
}

async fn delete(conn: &mut AsyncPgConnection, rows: &[&OutboxRow]) -> Result<(), DatabaseError> {
    let sequences: Vec<_> = rows.iter().map(|row| row.sequence).collect();
    diesel::delete(outbox::table.filter(outbox::sequence.eq_any(sequences))).execute(conn).await?;
    Ok(())
}
