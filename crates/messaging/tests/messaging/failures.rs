//! Events that cannot be read or handled.

use std::{
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use diesel_async::{AsyncPgConnection, SimpleAsyncConnection as _};
use messaging::{Envelope, HandleError, Handler};

use crate::test_app::{CountingHandler, NoteWritten, QUEUE, Rejected, TestApp, watched};

#[tokio::test(flavor = "multi_thread")]
async fn an_unreadable_event_is_dead_lettered_and_later_events_are_handled() {
    let app = TestApp::new().await;
    app.consume(CountingHandler::default());
    app.append([1]).await;
    app.assert_handled_once(1..2).await;
    app.namespace.publish_raw(QUEUE, "this is not an event").await;
    app.append([2]).await;
    app.assert_handled_once(1..3).await;
    let letters = app.wait_for_dead_letters().await;
    assert_eq!(letters.len(), 1);
    assert_eq!(letters[0]["payload"], "this is not an event");
    assert_eq!(letters[0]["properties"]["headers"]["x-death"][0]["reason"], "rejected");
    app.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_event_is_retried_with_back_off() {
    let app = TestApp::new().await;
    let calls = Arc::new(Mutex::new(Vec::new()));
    let recorded = calls.clone();
    app.consume(watched(move |_| {
        recorded.lock().unwrap().push(Instant::now());
        Err(Rejected(7).into())
    }));
    app.append([7]).await;
    app.wait_for_dead_letters().await;
    let calls = calls.lock().unwrap().clone();
    assert_eq!(calls.len(), 6, "one attempt and five retries");
    for (retry, pair) in calls.windows(2).enumerate() {
        let shortest = Duration::from_millis(100) * 2_u32.pow(retry.try_into().unwrap());
        assert!(pair[1] - pair[0] >= shortest, "pause {retry}: {:?}", pair[1] - pair[0]);
    }
    app.stop().await;
}

/// Consumes twenty notes: note 7 is dead-lettered and the others are handled.
async fn assert_only_note_7_is_dead_lettered(handler: impl Handler<Event = NoteWritten>) {
    let app = TestApp::new().await;
    app.append(0..20).await;
    app.consume(handler);
    let letters = app.wait_for_dead_letters().await;
    assert_eq!(letters.len(), 1);
    let payload = letters[0]["payload"].as_str().unwrap();
    assert!(payload.contains("\"number\":7"), "{payload}");
    assert_eq!(letters[0]["properties"]["headers"]["x-death"][0]["reason"], "delivery_limit");
    app.wait_for_handled(19).await;
    app.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_that_keeps_failing_is_dead_lettered_and_its_neighbours_are_handled() {
    assert_only_note_7_is_dead_lettered(CountingHandler { fails_for: Some(7) }).await;
}

/// Panics on note 7.
#[derive(Default)]
struct PanickingHandler(CountingHandler);

impl Handler for PanickingHandler {
    type Event = NoteWritten;

    async fn handle(
        &self,
        conn: &mut AsyncPgConnection,
        events: &[&Envelope<NoteWritten>],
    ) -> Result<(), HandleError> {
        self.0.handle(conn, events).await?;
        assert!(events.iter().all(|event| event.data.number != 7), "note 7");
        Ok(())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_handler_panic_fails_only_its_event() {
    assert_only_note_7_is_dead_lettered(PanickingHandler::default()).await;
}

/// Runs into the statement timeout on note 7.
#[derive(Default)]
struct SlowHandler(CountingHandler);

impl Handler for SlowHandler {
    type Event = NoteWritten;

    async fn handle(
        &self,
        conn: &mut AsyncPgConnection,
        events: &[&Envelope<NoteWritten>],
    ) -> Result<(), HandleError> {
        if events.iter().any(|event| event.data.number == 7) {
            conn.batch_execute("SET LOCAL statement_timeout = '20ms'; SELECT pg_sleep(60)").await?;
        }
        self.0.handle(conn, events).await
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_statement_timeout_fails_only_its_event() {
    assert_only_note_7_is_dead_lettered(SlowHandler::default()).await;
}
