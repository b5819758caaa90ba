//! Events over a real broker and a real database, with the failures caused on purpose.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should panic")]

use std::{collections::BTreeSet, time::Duration};

use diesel::sql_types::{BigInt, Text};
use diesel_async::{
    AsyncConnection as _, AsyncPgConnection, RunQueryDsl as _, SimpleAsyncConnection as _,
};
use domain::event::Event;
use messaging::{Broker, Envelope, HandleError, Handler, MIGRATIONS, Outbox, Topology, consume};
use platform::{ErrorKind, Failure, Process, database::Pool};
use serde::{Deserialize, Serialize};
use testkit::{Database, Namespace, Server, Servers, eventually, process};

mod definitions;
mod failing;
mod publishing;
mod relaying;
mod weighing;

const SOON: Duration = Duration::from_secs(20);
const QUEUE: &str = "listener.note.written.v1";

/// An event for these tests.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct NoteWritten {
    number: i64,
}

impl Event for NoteWritten {
    const TYPE: &'static str = "note.written.v1";

    fn subject(&self) -> String {
        format!("note/{}", self.number)
    }
}

/// Counts how often each event took effect; refuses the number it is told to.
struct Count {
    refuses: Option<i64>,
}

#[derive(Debug, thiserror::Error)]
#[error("note {0} is refused")]
struct Refused(i64);

impl Failure for Refused {
    fn kind(&self) -> ErrorKind {
        ErrorKind::Internal
    }
}

impl Handler for Count {
    type Event = NoteWritten;

    async fn handle(
        &self,
        conn: &mut AsyncPgConnection,
        events: &[&Envelope<NoteWritten>],
    ) -> Result<(), HandleError> {
        for event in events {
            if self.refuses == Some(event.data.number) {
                return Err(Refused(event.data.number).into());
            }
            diesel::sql_query(
                "INSERT INTO seen (number, times) VALUES ($1, 1) \
                 ON CONFLICT (number) DO UPDATE SET times = seen.times + 1",
            )
            .bind::<BigInt, _>(event.data.number)
            .execute(conn)
            .await?;
        }
        Ok(())
    }
}

/// One side that writes events and one that hears them, in one database.
struct Stage {
    process: Process,
    broker: Broker,
    outbox: Outbox,
    database: Database,
    namespace: Namespace,
}

impl Stage {
    async fn new() -> Self {
        Self::set(Database::create(vec![MIGRATIONS]).await, Namespace::create()).await
    }

    async fn set(database: Database, namespace: Namespace) -> Self {
        let process = process(&database);
        execute(&process.pool, "CREATE TABLE seen (number BIGINT PRIMARY KEY, times INT NOT NULL)")
            .await;
        let topology =
            Topology::empty(&namespace.name).with_subscription("listener", NoteWritten::TYPE);
        let broker = Broker::start("writer", &process, namespace.settings(), topology);
        let outbox = broker.start_relay("writer", &process);
        Self { process, broker, outbox, database, namespace }
    }

    fn listen(&self, refuses: Option<i64>) {
        consume(&self.broker, "listener", &self.process, Count { refuses });
    }

    async fn write(&self, numbers: impl IntoIterator<Item = i64>) {
        let mut conn = self.process.pool.get().await.unwrap();
        let notes = numbers.into_iter().map(|number| NoteWritten { number });
        self.outbox.append(&mut conn, self.process.clock.now(), notes).await.unwrap();
    }

    async fn number(&self, query: &str) -> i64 {
        number(&self.process.pool, query).await
    }

    async fn all_seen_once(&self, numbers: std::ops::Range<i64>) {
        let expected = numbers.end - numbers.start;
        eventually("every event took effect", SOON, async || {
            (self.number("SELECT count(*) AS n FROM seen").await == expected).then_some(())
        })
        .await;
        eventually("the outbox is empty", SOON, async || {
            (self.number("SELECT count(*) AS n FROM outbox").await == 0).then_some(())
        })
        .await;
        assert_eq!(self.number("SELECT count(*) AS n FROM seen WHERE times > 1").await, 0);
    }

    async fn leave(self) -> (Database, Namespace) {
        assert!(self.process.tasks.drain(Duration::from_secs(10)).await, "tasks did not stop");
        (self.database, self.namespace)
    }
}

#[derive(diesel::QueryableByName)]
struct Counted {
    #[diesel(sql_type = BigInt)]
    n: i64,
}

async fn number(pool: &Pool, query: &str) -> i64 {
    let Ok(mut conn) = pool.get().await else { return -1 };
    diesel::sql_query(query).get_result::<Counted>(&mut conn).await.map_or(-1, |row| row.n)
}

async fn execute(pool: &Pool, statements: &str) {
    pool.get().await.unwrap().batch_execute(statements).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn every_event_takes_effect_once() {
    let stage = Stage::new().await;
    stage.listen(None);
    for start in [0, 400, 800] {
        stage.write(start..start + 400).await;
    }
    stage.all_seen_once(0..1200).await;
    assert!(stage.namespace.peek(&format!("{QUEUE}.dead")).await.is_empty());
    stage.leave().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn events_carry_their_place_in_the_outbox() {
    let stage = Stage::new().await;
    stage.write(0..3).await;
    stage.write(3..5).await;
    let sent = eventually("all are published", SOON, async || {
        let sent = stage.namespace.peek(QUEUE).await;
        (sent.len() == 5).then_some(sent)
    })
    .await;
    let heard: Vec<Envelope<NoteWritten>> = sent
        .iter()
        .map(|it| serde_json::from_str(it["payload"].as_str().unwrap()).unwrap())
        .collect();
    for pair in heard.windows(2) {
        assert!(
            pair[0].sequence_number() > 0 && pair[0].sequence_number() < pair[1].sequence_number()
        );
        assert!(pair[0].sequence < pair[1].sequence, "as texts, too");
        assert!(pair[0].data.number < pair[1].data.number);
    }
    stage.leave().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_published_for_a_change_that_was_rolled_back() {
    let stage = Stage::new().await;
    stage.listen(None);
    let mut conn = stage.process.pool.get().await.unwrap();
    let rolled_back = conn
        .transaction(async |conn| {
            let note = NoteWritten { number: 1 };
            stage.outbox.append(conn, stage.process.clock.now(), [note]).await.unwrap();
            Err::<(), _>(diesel::result::Error::RollbackTransaction)
        })
        .await;
    assert!(rolled_back.is_err());
    drop(conn);
    stage.write([2]).await;
    stage.all_seen_once(2..3).await;
    stage.leave().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_nobody_can_read_is_put_aside_and_the_queue_moves_on() {
    let stage = Stage::new().await;
    stage.listen(None);
    stage.write([1]).await;
    stage.all_seen_once(1..2).await;
    stage.namespace.publish_raw(QUEUE, "this is not an event").await;
    stage.write([2]).await;
    stage.all_seen_once(1..3).await;
    let letters = eventually("the dead letter", SOON, async || {
        Some(stage.namespace.peek(&format!("{QUEUE}.dead")).await)
            .filter(|letters| !letters.is_empty())
    })
    .await;
    assert_eq!(letters.len(), 1);
    assert_eq!(letters[0]["payload"], "this is not an event");
    assert_eq!(letters[0]["properties"]["headers"]["x-death"][0]["reason"], "rejected");
    stage.leave().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_that_keeps_failing_is_put_aside_and_its_neighbours_are_handled() {
    let stage = Stage::new().await;
    stage.listen(Some(7));
    stage.write(0..20).await;
    let letters = eventually("the dead letter", SOON, async || {
        Some(stage.namespace.peek(&format!("{QUEUE}.dead")).await)
            .filter(|letters| !letters.is_empty())
    })
    .await;
    assert_eq!(letters.len(), 1);
    assert!(letters[0]["payload"].as_str().unwrap().contains("\"number\":7"));
    assert_eq!(letters[0]["properties"]["headers"]["x-death"][0]["reason"], "delivery_limit");
    eventually("the neighbours are handled", SOON, async || {
        (stage.number("SELECT count(*) AS n FROM seen WHERE times = 1").await == 19).then_some(())
    })
    .await;
    stage.leave().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_broker_that_dies_under_load_loses_nothing_and_readiness_tells_the_truth() {
    let servers = tokio::task::spawn_blocking(Servers::start).await.unwrap();
    let database = Database::create(vec![MIGRATIONS]).await;
    let stage =
        Stage::set(database, Namespace::create_on(servers.amqp_url(), servers.rabbitmq_api_url()))
            .await;
    stage.listen(None);
    let ready = async |expected: bool, patience| {
        eventually(&format!("ready is {expected}"), patience, async || {
            (stage.process.health.report().await.ready == expected).then_some(())
        })
        .await;
    };
    ready(true, SOON).await;
    tokio::task::block_in_place(|| servers.restart(Server::Rabbitmq));
    ready(true, SOON).await;
    for round in 0..2 {
        let base = round * 2000;
        stage.write(base..base + 1000).await;
        let servers = &servers;
        tokio::task::block_in_place(|| servers.kill(Server::Rabbitmq));
        ready(false, Duration::from_secs(10)).await;
        stage.write(base + 1000..base + 2000).await;
        tokio::task::block_in_place(|| servers.revive(Server::Rabbitmq));
        ready(true, Duration::from_secs(10)).await;
        stage.all_seen_once(0..base + 2000).await;
    }
    let (database, namespace) = stage.leave().await;
    tokio::task::block_in_place(|| drop((database, namespace, servers)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_that_goes_away_holds_events_up_and_loses_none() {
    let servers = tokio::task::spawn_blocking(Servers::start).await.unwrap();
    let database = Database::create_on(&servers.postgres_url(), vec![MIGRATIONS]).await;
    let stage = Stage::set(database, Namespace::create()).await;
    stage.listen(None);
    stage.write(0..2000).await;
    tokio::task::block_in_place(|| {
        servers.kill(Server::Postgres);
        servers.revive(Server::Postgres);
    });
    eventually("the database is back", SOON, async || stage.process.pool.ping().await.ok()).await;
    stage.write(2000..3000).await;
    stage.all_seen_once(0..3000).await;
    let dead = stage.namespace.peek(&format!("{QUEUE}.dead")).await;
    assert!(dead.is_empty(), "{} events were put aside while the database was away", dead.len());
    let (database, namespace) = stage.leave().await;
    tokio::task::block_in_place(|| drop((database, namespace, servers)));
}

#[derive(diesel::QueryableByName)]
struct Body {
    #[diesel(sql_type = Text)]
    event: String,
}

#[tokio::test(flavor = "multi_thread")]
async fn events_are_cloudevents() {
    let database = Database::create(vec![MIGRATIONS]).await;
    let process = process(&database);
    let mut conn = process.pool.get().await.unwrap();
    let notes = [NoteWritten { number: 1 }, NoteWritten { number: 2 }];
    Outbox::new("writer").append(&mut conn, process.clock.now(), notes).await.unwrap();
    let rows: Vec<Body> =
        diesel::sql_query("SELECT event FROM outbox").load(&mut conn).await.unwrap();
    let events: Vec<serde_json::Value> =
        rows.iter().map(|row| serde_json::from_str(&row.event).unwrap()).collect();
    let ids: BTreeSet<_> = events.iter().map(|event| event["id"].as_str().unwrap()).collect();
    assert_eq!(ids.len(), 2);
    let event = &events[0];
    assert_eq!(event["specversion"], "1.0");
    assert_eq!(event["type"], "note.written.v1");
    assert_eq!(event["source"], "/backhaul/writer");
    assert_eq!(event["subject"], "note/1");
    assert_eq!(event["datacontenttype"], "application/json");
    assert_eq!(event["data"], serde_json::json!({"number": 1}));
    assert!(chrono::DateTime::parse_from_rfc3339(event["time"].as_str().unwrap()).is_ok());
}
