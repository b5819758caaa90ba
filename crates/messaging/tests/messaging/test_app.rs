//! One process that appends events and consumes them, with its own database and broker namespace.

use std::{ops::Range, time::Duration};

use diesel::sql_types::BigInt;
use diesel_async::{AsyncPgConnection, RunQueryDsl as _, SimpleAsyncConnection as _};
use domain::event::Event;
use messaging::{Broker, Envelope, HandleError, Handler, MIGRATIONS, Outbox, Topology, consume};
use platform::{ErrorKind, Failure, Process, database::Pool};
use serde::{Deserialize, Serialize};
use testkit::{Database, Namespace, eventually, process, try_count};

pub(crate) const TIMEOUT: Duration = Duration::from_secs(300);
pub(crate) const LONG_TIMEOUT: Duration = Duration::from_secs(300);
pub(crate) const QUEUE: &str = "consumer.note.written.v1";
const STOP_TIMEOUT: Duration = Duration::from_secs(120);

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct NoteWritten {
    pub(crate) number: i64,
}

impl Event for NoteWritten {
    const TYPE: &'static str = "note.written.v1";

    fn subject(&self) -> String {
        format!("note/{}", self.number)
    }
}

/// Counts in table `handled` how often it handled each note. Fails for one number.
#[derive(Default)]
pub(crate) struct CountingHandler {
    pub(crate) fails_for: Option<i64>,
}

#[derive(Debug, thiserror::Error)]
#[error("note {0} is rejected")]
pub(crate) struct Rejected(pub(crate) i64);

impl Failure for Rejected {
    fn kind(&self) -> ErrorKind {
        ErrorKind::Internal
    }
}

impl Handler for CountingHandler {
    type Event = NoteWritten;

    async fn handle(
        &self,
        conn: &mut AsyncPgConnection,
        events: &[&Envelope<NoteWritten>],
    ) -> Result<(), HandleError> {
        for event in events {
            if self.fails_for == Some(event.data.number) {
                return Err(Rejected(event.data.number).into());
            }
            count_handled(conn, &event.data).await?;
        }
        Ok(())
    }
}

/// Counts events as [`CountingHandler`] does, after a function has seen them.
pub(crate) struct WatchedHandler<W>(W);

/// A handler that counts events. `watch` sees the events of each transaction first, and can fail it.
pub(crate) fn watched<W>(watch: W) -> WatchedHandler<W>
where
    W: Fn(&[&Envelope<NoteWritten>]) -> Result<(), HandleError>,
{
    WatchedHandler(watch)
}

impl<W> Handler for WatchedHandler<W>
where
    W: Fn(&[&Envelope<NoteWritten>]) -> Result<(), HandleError> + Send + Sync + 'static,
{
    type Event = NoteWritten;

    async fn handle(
        &self,
        conn: &mut AsyncPgConnection,
        events: &[&Envelope<NoteWritten>],
    ) -> Result<(), HandleError> {
        (self.0)(events)?;
        CountingHandler::default().handle(conn, events).await
    }
}

pub(crate) async fn count_handled(
    conn: &mut AsyncPgConnection,
    note: &NoteWritten,
) -> Result<(), HandleError> {
    diesel::sql_query(
        "INSERT INTO handled (number, times) VALUES ($1, 1) \
         ON CONFLICT (number) DO UPDATE SET times = handled.times + 1",
    )
    .bind::<BigInt, _>(note.number)
    .execute(conn)
    .await?;
    Ok(())
}

pub(crate) fn topology(namespace: &Namespace) -> Topology {
    Topology::empty(&namespace.name).with_subscription("consumer", NoteWritten::TYPE)
}

pub(crate) struct TestApp {
    pub(crate) process: Process,
    pub(crate) broker: Broker,
    pub(crate) outbox: Outbox,
    pub(crate) database: Database,
    pub(crate) namespace: Namespace,
}

impl TestApp {
    pub(crate) async fn new() -> Self {
        Self::on(Database::create(vec![MIGRATIONS]).await, Namespace::create()).await
    }

    pub(crate) async fn on(database: Database, namespace: Namespace) -> Self {
        let topology = topology(&namespace);
        Self::with_topology(database, namespace, topology).await
    }

    pub(crate) async fn with_topology(
        database: Database,
        namespace: Namespace,
        topology: Topology,
    ) -> Self {
        let process = process(&database);
        let table = "CREATE TABLE handled (number BIGINT PRIMARY KEY, times INT NOT NULL)";
        execute(&process.pool, table).await;
        let broker = Broker::start("writer", &process, namespace.settings(), topology);
        let outbox = broker.start_relay("writer", &process);
        Self { process, broker, outbox, database, namespace }
    }

    /// Starts a second replica with a relay of its own on the same database.
    pub(crate) fn start_replica(&self) -> (Process, Outbox) {
        let process = process(&self.database);
        let settings = self.namespace.settings();
        let topology = self.broker.topology.clone();
        let broker = Broker::start("writer", &process, settings, topology);
        let outbox = broker.start_relay("writer", &process);
        (process, outbox)
    }

    pub(crate) fn consume(&self, handler: impl Handler) {
        consume(&self.broker, "consumer", &self.process, handler);
    }

    pub(crate) async fn append(&self, numbers: impl IntoIterator<Item = i64>) {
        append(&self.process, &self.outbox, numbers).await;
    }

    pub(crate) async fn execute(&self, statements: &str) {
        execute(&self.process.pool, statements).await;
    }

    pub(crate) async fn count(&self, query: &str) -> i64 {
        count(&self.process.pool, query).await
    }

    /// Waits until `count` notes were handled, each once.
    pub(crate) async fn wait_for_handled(&self, expected: i64) {
        eventually("the notes are handled", TIMEOUT, async || {
            let handled = self.count("SELECT count(*) AS n FROM handled WHERE times = 1").await;
            (handled == expected).then_some(())
        })
        .await;
    }

    pub(crate) async fn wait_for_empty_outbox(&self) {
        wait_for_empty_outbox(&self.process.pool).await;
    }

    pub(crate) async fn assert_handled_once(&self, numbers: Range<i64>) {
        let expected = numbers.end - numbers.start;
        eventually("every event is handled", TIMEOUT, async || {
            (self.count("SELECT count(*) AS n FROM handled").await == expected).then_some(())
        })
        .await;
        self.wait_for_empty_outbox().await;
        assert_eq!(self.count("SELECT count(*) AS n FROM handled WHERE times > 1").await, 0);
    }

    pub(crate) async fn peek_dead_letters(&self) -> Vec<serde_json::Value> {
        self.namespace.peek(&format!("{QUEUE}.dead")).await
    }

    pub(crate) async fn wait_for_dead_letters(&self) -> Vec<serde_json::Value> {
        eventually("a dead letter", LONG_TIMEOUT, async || {
            Some(self.peek_dead_letters().await).filter(|letters| !letters.is_empty())
        })
        .await
    }

    pub(crate) async fn stop(self) -> (Database, Namespace) {
        stop(self.process).await;
        (self.database, self.namespace)
    }
}

pub(crate) async fn append(
    process: &Process,
    outbox: &Outbox,
    numbers: impl IntoIterator<Item = i64>,
) {
    let conn = process.pool.get().await.unwrap();
    let notes = numbers.into_iter().map(|number| NoteWritten { number });
    outbox.append(&conn, process.clock.now(), notes).await.unwrap();
}

pub(crate) async fn wait_for_empty_outbox(pool: &Pool) {
    eventually("the outbox is empty", LONG_TIMEOUT, async || {
        (count(pool, "SELECT count(*) AS n FROM outbox").await == 0).then_some(())
    })
    .await;
}

/// Waits until one relay of this database holds the leader's lock.
pub(crate) async fn wait_for_leader(pool: &Pool) {
    eventually("a relay leads", TIMEOUT, async || (leaders(pool).await == 1).then_some(())).await;
}

pub(crate) async fn leaders(pool: &Pool) -> i64 {
    let leaders = "SELECT count(*) AS n FROM pg_locks WHERE locktype = 'advisory' AND granted \
                   AND database = (SELECT oid FROM pg_database WHERE datname = current_database())";
    count(pool, leaders).await
}

/// The value of a query, or -1 while the database is unavailable.
pub(crate) async fn count(pool: &Pool, query: &str) -> i64 {
    let Ok(mut conn) = pool.get().await else { return -1 };
    try_count(&mut conn, query).await.unwrap_or(-1)
}

async fn execute(pool: &Pool, statements: &str) {
    pool.get().await.unwrap().batch_execute(statements).await.unwrap();
}

pub(crate) async fn stop(process: Process) {
    assert!(process.tasks.drain(STOP_TIMEOUT).await, "tasks did not stop");
}
