//! The path of an event from the outbox to its handler.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use diesel::sql_types::Text;
use diesel_async::{AsyncPgConnection, RunQueryDsl as _};
use messaging::{Envelope, HandleError, Handler, MIGRATIONS, Outbox};
use testkit::{Database, eventually, process};
use tokio::sync::watch;

use crate::test_app::{CountingHandler, NoteWritten, QUEUE, TIMEOUT, TestApp, stop};

#[tokio::test(flavor = "multi_thread")]
async fn every_event_is_handled_once() {
    let app = TestApp::new().await;
    app.consume(CountingHandler::default());
    for start in [0, 400, 800] {
        app.append(start..start + 400).await;
    }
    app.assert_handled_once(0..1200).await;
    assert!(app.peek_dead_letters().await.is_empty());
    app.stop().await;
}

/// Waits until it is ready, and notes whether it was called before.
struct ReadyHandler(watch::Receiver<bool>, Arc<AtomicBool>);

impl Handler for ReadyHandler {
    type Event = NoteWritten;

    async fn ready(&self) {
        self.0.clone().wait_for(|ready| *ready).await.unwrap();
    }

    async fn handle(
        &self,
        conn: &mut AsyncPgConnection,
        events: &[&Envelope<NoteWritten>],
    ) -> Result<(), HandleError> {
        self.1.fetch_or(!*self.0.borrow(), Ordering::Relaxed);
        CountingHandler::default().handle(conn, events).await
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_event_is_handled_before_the_handler_is_ready() {
    let app = TestApp::new().await;
    let (ready, is_ready) = watch::channel(false);
    app.append(0..3).await;
    app.wait_for_empty_outbox().await;
    let was_early = Arc::new(AtomicBool::new(false));
    app.consume(ReadyHandler(is_ready, was_early.clone()));
    // A second consumer of the queue handles all events, and none is left for the first.
    let (process, _outbox) = app.start_replica();
    messaging::consume(&app.broker, "consumer", &process, CountingHandler::default());
    app.assert_handled_once(0..3).await;
    ready.send(true).unwrap();
    app.append(3..6).await;
    app.assert_handled_once(0..6).await;
    assert!(!AtomicBool::load(&was_early, Ordering::Relaxed), "an event was handled too early");
    assert!(app.peek_dead_letters().await.is_empty());
    stop(process).await;
    app.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn events_carry_their_sequence() {
    let app = TestApp::new().await;
    app.append(0..3).await;
    app.append(3..5).await;
    let messages = eventually("all are published", TIMEOUT, async || {
        Some(app.namespace.peek(QUEUE).await).filter(|messages| messages.len() == 5)
    })
    .await;
    let events: Vec<Envelope<NoteWritten>> = messages
        .iter()
        .map(|it| serde_json::from_str(it["payload"].as_str().unwrap()).unwrap())
        .collect();
    for pair in events.windows(2) {
        let [first, second] = [&pair[0], &pair[1]].map(Envelope::sequence_number);
        assert!(first > 0 && first < second);
        assert!(pair[0].sequence < pair[1].sequence, "as strings, too");
        assert!(pair[0].data.number < pair[1].data.number);
    }
    app.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_of_a_rolled_back_transaction_is_not_published() {
    let app = TestApp::new().await;
    app.consume(CountingHandler::default());
    let mut conn = app.process.pool.get().await.unwrap();
    let rolled_back = conn
        .transaction(async |conn| {
            let note = NoteWritten { number: 1 };
            app.outbox.append(conn, app.process.clock.now(), [note]).await.unwrap();
            Err::<(), _>(diesel::result::Error::RollbackTransaction)
        })
        .await;
    assert!(rolled_back.is_err());
    drop(conn);
    app.append([2]).await;
    app.assert_handled_once(2..3).await;
    app.stop().await;
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
    Outbox::new("writer").append(&conn, process.clock.now(), notes).await.unwrap();
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
