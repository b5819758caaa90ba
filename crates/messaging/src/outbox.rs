//! Events on their way out: a row in the transaction that caused them, then the relay.
//!
//! The invariant: a row leaves the table only after the broker confirmed that the event is in
//! every queue that asked for it. The relay may die between the two; then the event is published
//! twice, under the same id.

mod cursor;

use std::sync::Arc;
use std::time::{Duration, Instant};

use diesel::pg::Pg;
use diesel::query_builder::{BoxedSqlQuery, SqlQuery};
use diesel::sql_types::{Array, BigInt, Text, Timestamptz};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use domain::event::Event;
use opentelemetry::metrics::{Counter, Histogram};
use platform::{
    Timestamp,
    database::{DatabaseError, LeaderTask, PollOutcome, Pool, prepared, timed_out},
    telemetry,
};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use self::cursor::RelayCursor;
use crate::{
    BrokerError, Envelope, Exchange, Message, NotQueued, Publisher, Settings, Topology,
    schema::outbox,
};

/// The advisory lock that the relaying replica holds.
pub const RELAY_LOCK: i64 = 0x6261_636B_6861_756C;

/// So many bytes are a batch, however few events they are.
const MAX_BATCH_BYTES: i64 = 8 * 1024 * 1024;

/// Where a service leaves its events.
#[derive(Clone)]
pub struct Outbox {
    service: &'static str,
    wake: Arc<Notify>,
}

impl Outbox {
    pub fn new(service: &'static str) -> Self {
        Self { service, wake: Arc::new(Notify::new()) }
    }

    /// Leaves events to be published if, and only if, the caller's transaction commits.
    pub async fn append<E: Event>(
        &self,
        conn: &mut AsyncPgConnection,
        now: Timestamp,
        events: impl IntoIterator<Item = E>,
    ) -> Result<(), DatabaseError> {
        let prepared: Result<Vec<_>, _> =
            events.into_iter().map(|event| self.serialize(now, &event)).collect();
        self.append_serialized(conn, now, &prepared?).await
    }

    /// Writes an event out where it happens, so that it carries that trace, to be left later.
    pub fn serialize<E: Event>(
        &self,
        now: Timestamp,
        event: &E,
    ) -> Result<SerializedEvent, DatabaseError> {
        let envelope = Envelope::new(self.service, now, event);
        let body = serde_json::to_string(&envelope)
            .map_err(|e| diesel::result::Error::SerializationError(e.into()))?;
        Ok(SerializedEvent { id: envelope.id, routing_key: E::TYPE, body })
    }

    /// Leaves prepared events, in this order.
    async fn append_serialized(
        &self,
        conn: &mut AsyncPgConnection,
        now: Timestamp,
        events: &[SerializedEvent],
    ) -> Result<(), DatabaseError> {
        if events.is_empty() {
            return Ok(());
        }
        let statement = self.leave(diesel::sql_query("").into_boxed(), 0, now, events, "true");
        prepared(statement).execute(conn).await?;
        self.wake_relay();
        Ok(())
    }

    /// Ends a statement, of which so many values are bound, with leaving these events, in this
    /// order. Their numbers are drawn after `condition` was worked out. If it does not hold, a
    /// column is null that must not be: nothing of the statement happens. If it is null, no event is
    /// left.
    ///
    /// Whoever executes it calls [`Outbox::wake_relay`].
    pub fn leave<'a>(
        &self,
        statement: Statement<'a>,
        bound: usize,
        now: Timestamp,
        events: impl IntoIterator<Item = &'a SerializedEvent>,
        condition: &str,
    ) -> Statement<'a> {
        let (mut ids, mut keys, mut bodies) = (Vec::new(), Vec::new(), Vec::new());
        for SerializedEvent { id, routing_key, body } in events {
            ids.push(*id);
            keys.push(*routing_key);
            bodies.push(body.as_str());
        }
        // OFFSET 0 keeps the condition from being worked out where the columns are, numbers included.
        let [id, key, body, at] = [1, 2, 3, 4].map(|place| format!("${}", bound + place));
        statement
            .sql(format!(
                "INSERT INTO outbox (event_id, routing_key, event, created_at) \
                 SELECT event_id, routing_key, event, CASE WHEN holds THEN {at} END \
                 FROM (SELECT {condition} AS holds OFFSET 0) AS checked, \
                 unnest({id}, {key}, {body}) AS new (event_id, routing_key, event) \
                 WHERE holds IS NOT NULL"
            ))
            .bind::<Array<diesel::sql_types::Uuid>, _>(ids)
            .bind::<Array<Text>, _>(keys)
            .bind::<Array<Text>, _>(bodies)
            .bind::<Timestamptz, _>(now)
    }

    /// Tells the relay that there is something to publish, or soon will be.
    pub fn wake_relay(&self) {
        self.wake.notify_one();
    }
}

/// A statement whose text is put together.
pub type Statement<'a> = BoxedSqlQuery<'a, Pg, SqlQuery>;

/// An event that is written out and not yet left in the outbox.
#[derive(Debug, Clone)]
pub struct SerializedEvent {
    id: Uuid,
    routing_key: &'static str,
    body: String,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum RelayError {
    #[error("outbox")]
    Database(#[from] DatabaseError),
    #[error("publishing")]
    BrokerConnection(#[from] BrokerError),
    #[error("{0} events lead to no queue; declaring the queues again")]
    Unroutable(usize),
    #[error("the broker refused {0} events")]
    Refused(usize),
}

impl From<diesel::result::Error> for RelayError {
    fn from(error: diesel::result::Error) -> Self {
        DatabaseError::from(error).into()
    }
}

/// Publishes what is in the outbox, if it is the one to do so.
pub(crate) struct Relay {
    pool: Pool,
    publisher: Publisher,
    exchange: Exchange,
    wake: Arc<Notify>,
    batch: i64,
    poll: Duration,
    cursor: RelayCursor,
    published: Counter<u64>,
    lag: Histogram<f64>,
}

impl Relay {
    pub(crate) fn new(
        outbox: &Outbox,
        pool: Pool,
        publisher: Publisher,
        topology: &Topology,
        settings: &Settings,
    ) -> Self {
        let meter = telemetry::meter();
        Self {
            pool,
            publisher,
            exchange: topology.events_exchange(),
            wake: outbox.wake.clone(),
            batch: settings.relay_batch_size.get().try_into().unwrap_or(i64::MAX),
            poll: settings.relay_poll_interval,
            cursor: RelayCursor::new(Instant::now()),
            published: meter
                .u64_counter("outbox_published")
                .with_description("Events confirmed by the broker")
                .build(),
            lag: meter
                .f64_histogram("outbox_publish_lag_seconds")
                .with_description("From an event's transaction to the broker's confirmation")
                .with_boundaries(vec![
                    0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 30.0, 300.0,
                ])
                .build(),
        }
    }

    pub(crate) async fn run(self, stop: CancellationToken) {
        let (pool, wake, poll) = (self.pool.clone(), self.wake.clone(), self.poll);
        pool.run_as_leader(self, wake, poll, stop).await;
    }

    /// The events that go next.
    async fn waiting(&mut self, conn: &mut AsyncPgConnection) -> Result<Vec<Waiting>, RelayError> {
        let started = Instant::now();
        let from = self.cursor.begin(started);
        let looked = waiting(conn, from, self.batch).await;
        self.cursor.looked(from, started.elapsed(), Instant::now());
        let waiting = match looked {
            // Another replica would fare no better.
            Err(error) if from == i64::MIN && timed_out(&error) => {
                tracing::warn!("the outbox is not seen whole: is some transaction open for long?");
                self.cursor.give_up_beginning(newest(conn).await?);
                waiting(conn, self.cursor.begin(Instant::now()), self.batch).await?
            }
            looked => looked?,
        };
        if let [first, ..] = &waiting[..] {
            self.cursor.found(first.sequence, Instant::now());
        }
        Ok(waiting)
    }
}

impl LeaderTask for Relay {
    const LOCK: i64 = RELAY_LOCK;
    const FAILURE_MESSAGE: &'static str = "events wait in the outbox";
    type Error = RelayError;

    /// Publishes one batch.
    async fn poll(&mut self, conn: &mut AsyncPgConnection) -> Result<PollOutcome, RelayError> {
        let waiting = self.waiting(conn).await?;
        let Some(last) = waiting.last() else {
            self.cursor.gone(None, Instant::now());
            return Ok(PollOutcome::Idle);
        };
        let words = publish(&self.publisher, &self.exchange, &waiting).await?;
        let each = waiting.iter().zip(&words);
        let confirmed: Vec<_> = each.filter(|(_, word)| word.is_ok()).map(|(row, _)| row).collect();
        let sequences: Vec<_> = confirmed.iter().map(|row| row.sequence).collect();
        remove(conn, &sequences).await?;
        if confirmed.len() == waiting.len() {
            self.cursor.gone(Some(last.sequence), Instant::now());
        }
        let now = platform::Clock::system().now();
        for row in &confirmed {
            self.lag.record((now - row.created_at).as_seconds_f64(), &[]);
        }
        self.published.add(confirmed.len().try_into().unwrap_or(u64::MAX), &[]);
        let not_taken = |why| words.iter().filter(|word| **word == Err(why)).count();
        match (not_taken(NotQueued::Unroutable), not_taken(NotQueued::Nacked)) {
            (0, 0) => Ok(PollOutcome::Busy),
            (0, refused) => Err(RelayError::Refused(refused)),
            (unroutable, _) => Err(RelayError::Unroutable(unroutable)),
        }
    }
}

#[derive(diesel::QueryableByName)]
struct Waiting {
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

/// The events from this number on: at the most so many, and no more once they are a full load.
async fn waiting(
    conn: &mut AsyncPgConnection,
    from: i64,
    most: i64,
) -> Result<Vec<Waiting>, DatabaseError> {
    let statement = diesel::sql_query(
        "SELECT sequence, event_id, routing_key, event, created_at FROM ( \
             SELECT *, sum(octet_length(event)) OVER (ORDER BY sequence) \
             - octet_length(event) AS bytes_before \
             FROM (SELECT * FROM outbox WHERE sequence >= $1 ORDER BY sequence LIMIT $2) AS next \
         ) AS next WHERE bytes_before < $3 ORDER BY sequence",
    )
    .bind::<BigInt, _>(from)
    .bind::<BigInt, _>(most)
    .bind::<BigInt, _>(MAX_BATCH_BYTES);
    Ok(prepared(statement).load(conn).await?)
}

#[derive(diesel::QueryableByName)]
struct Newest {
    #[diesel(sql_type = BigInt)]
    sequence: i64,
}

/// The last number that was drawn.
async fn newest(conn: &mut AsyncPgConnection) -> Result<i64, DatabaseError> {
    let asked = diesel::sql_query(
        "SELECT COALESCE(pg_sequence_last_value( \
             pg_get_serial_sequence('outbox', 'sequence')::regclass), 0) AS sequence",
    );
    Ok(asked.get_result::<Newest>(conn).await?.sequence)
}

/// Publishes and returns the broker's word on each.
async fn publish(
    publisher: &Publisher,
    exchange: &Exchange,
    waiting: &[Waiting],
) -> Result<Vec<Result<(), NotQueued>>, BrokerError> {
    let message = |row: &Waiting| Message {
        exchange: exchange.clone(),
        routing_key: row.routing_key.clone(),
        id: row.event_id.to_string(),
        content_type: "application/cloudevents+json",
        headers: Vec::new(),
        body: numbered(&row.event, row.sequence).into_bytes(),
    };
    let messages: Vec<_> = waiting.iter().map(message).collect();
    publisher.publish(&messages).await
}

/// The event with its place in the outbox, which nobody knows before it is there. Of fixed width, so
/// that the numbers can also be compared as the texts they are.
fn numbered(event: &str, sequence: i64) -> String {
    let members = event.strip_prefix('{').unwrap_or(event);
    format!("{{\"sequence\":\"{sequence:019}\",{members}")
}

async fn remove(conn: &mut AsyncPgConnection, sequences: &[i64]) -> Result<(), DatabaseError> {
    use diesel::{ExpressionMethods as _, QueryDsl as _};
    diesel::delete(outbox::table.filter(outbox::sequence.eq_any(sequences))).execute(conn).await?;
    Ok(())
}
