//! Events whose rows another transaction has locked.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use diesel_async::{AsyncPgConnection, SimpleAsyncConnection as _};
use messaging::{Envelope, HandleError, Handler};
use platform::database::Connection;
use platform::{ErrorKind, Failure};
use serde_json::Value;
use testkit::eventually;
use tokio::sync::Semaphore;
use uuid::Uuid;

use crate::test_app::{CountingHandler, NoteWritten, TIMEOUT, TestApp, stop, watched};

/// Handlings after which the broker would have dead-lettered a failed event.
const DELIVERY_LIMIT: usize = 6;

/// Locks the row of note 7 until the connection rolls back.
async fn lock_seven(app: &TestApp) -> Connection {
    app.execute("INSERT INTO handled VALUES (7, 0)").await;
    let mut holder = app.database.pool().get().await.unwrap();
    holder.batch_execute("BEGIN; SELECT FROM handled WHERE number = 7 FOR UPDATE").await.unwrap();
    holder
}

/// Rolls back, so that rows are free again. Then all events about the rows with this condition are handled.
async fn release(app: TestApp, mut holder: Connection, condition: &str, events: i64) {
    holder.batch_execute("ROLLBACK").await.unwrap();
    eventually("all events about the rows are handled", TIMEOUT, async || {
        let handled = format!("SELECT sum(times)::bigint AS n FROM handled WHERE {condition}");
        (app.count(&handled).await == events).then_some(())
    })
    .await;
    assert!(app.peek_dead_letters().await.is_empty());
    app.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_with_a_locked_row_delays_no_other_and_is_never_dead_lettered() {
    let app = TestApp::new().await;
    let holder = lock_seven(&app).await;
    let attempts: Arc<Mutex<Vec<Uuid>>> = Arc::default();
    let recorded = attempts.clone();
    app.append(0..20).await;
    app.consume(watched(move |events| {
        let sevens = events.iter().filter(|event| event.data.number == 7).map(|event| event.id);
        recorded.lock().unwrap().extend(sevens);
        Ok(())
    }));
    app.wait_for_handled(19).await;
    // The second event about note 7 waits behind the first.
    app.append([7]).await;
    app.append(20..40).await;
    app.wait_for_handled(39).await;
    eventually("the event is tried more often than a failed one", TIMEOUT, async || {
        (attempts.lock().unwrap().len() > DELIVERY_LIMIT + 2).then_some(())
    })
    .await;
    let first = attempts.lock().unwrap()[0];
    assert!(attempts.lock().unwrap().iter().all(|id| *id == first), "a later event overtook");
    release(app, holder, "number = 7", 2).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn more_events_of_a_locked_row_than_the_prefetch_count_delay_no_other() {
    let app = TestApp::new().await;
    let holder = lock_seven(&app).await;
    let events = i64::from(app.broker.settings.prefetch.get()) + 50;
    app.append((0..events).map(|_| 7)).await;
    app.append(20..40).await;
    app.consume(CountingHandler::default());
    app.wait_for_handled(20).await;
    release(app, holder, "number = 7", events).await;
}

/// When notes from 1,000 on were tried.
#[derive(Clone, Default)]
struct Tries(Arc<Mutex<HashMap<i64, Vec<Instant>>>>);

impl Tries {
    fn record(&self, events: &[&Envelope<NoteWritten>]) {
        let locked: HashSet<_> = events.iter().map(|event| event.data.number).collect();
        for number in locked.into_iter().filter(|number| *number >= 1000) {
            self.0.lock().unwrap().entry(number).or_default().push(Instant::now());
        }
    }

    /// The tries of each note, fewest first.
    fn of_notes(&self) -> Vec<Vec<Instant>> {
        let mut tries: Vec<_> = self.0.lock().unwrap().values().cloned().collect();
        tries.sort_by_key(Vec::len);
        tries
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn many_events_of_many_locked_rows_are_rarely_tried() {
    const ROWS: i64 = 100;
    const EVENTS: i64 = 10;
    let app = TestApp::new().await;
    app.execute("INSERT INTO handled SELECT n, 0 FROM generate_series(1000, 1099) AS n").await;
    let mut holder = app.database.pool().get().await.unwrap();
    holder.batch_execute("BEGIN; SELECT FROM handled FOR UPDATE").await.unwrap();
    for _ in 0..EVENTS {
        app.append(1000..1000 + ROWS).await;
    }
    let tries = Tries::default();
    let recorded = tries.clone();
    app.consume(watched(move |events| {
        recorded.record(events);
        Ok(())
    }));
    // Most events return from the waiting queue again and again. A few rows are tried more often, by the consumer.
    eventually("the rows are tried again after a pause", TIMEOUT, async || {
        let often = tries.of_notes().iter().filter(|tries| tries.len() > 3).count();
        (often > 50).then_some(())
    })
    .await;
    app.append(0..20).await;
    app.wait_for_handled(20).await;
    for tries in tries.of_notes().iter().take(80) {
        let pauses = tries.windows(2).map(|pair| pair[1] - pair[0]);
        let short = pauses.filter(|pause| *pause < Duration::from_secs(4)).count();
        // The first try is that of the batch, the second that of the event alone.
        assert!(short <= 2, "{short} tries of a row without a pause");
    }
    release(app, holder, "number >= 1000", ROWS * EVENTS).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn events_that_the_waiting_queue_rejects_stay_with_the_consumer() {
    let app = TestApp::new().await;
    let holder = lock_seven(&app).await;
    let events = i64::from(app.broker.settings.prefetch.get()) - 50;
    app.append((0..events).map(|_| 7)).await;
    app.append(20..40).await;
    app.namespace.limit_to_one_message("backhaul.waiting").await;
    app.consume(CountingHandler::default());
    app.wait_for_handled(20).await;
    release(app, holder, "number = 7", events).await;
}

/// Waits for an advisory lock of each note from 1,000 on, and for the gate at note 0. While a note is in `failing`, the
/// database seems not to respond.
#[derive(Clone)]
struct GatedHandler {
    gate: Arc<Semaphore>,
    at_gate: Arc<AtomicBool>,
    failing: Arc<Mutex<HashSet<i64>>>,
    has_failed: Arc<AtomicBool>,
}

#[derive(Debug, thiserror::Error)]
#[error("the database does not respond")]
struct NoResponse;

impl Failure for NoResponse {
    fn kind(&self) -> ErrorKind {
        ErrorKind::Unavailable
    }
}

impl Handler for GatedHandler {
    type Event = NoteWritten;

    async fn handle(
        &self,
        conn: &mut AsyncPgConnection,
        events: &[&Envelope<NoteWritten>],
    ) -> Result<(), HandleError> {
        for number in events.iter().map(|event| event.data.number) {
            if self.failing.lock().unwrap().contains(&number) {
                self.has_failed.store(true, Ordering::Relaxed);
                return Err(NoResponse.into());
            }
            if number == 0 {
                self.at_gate.store(true, Ordering::Relaxed);
                self.gate.acquire().await.unwrap().forget();
                self.at_gate.store(false, Ordering::Relaxed);
            }
            if number >= 1000 {
                conn.batch_execute(&format!("SELECT pg_advisory_xact_lock({number})")).await?;
            }
        }
        CountingHandler::default().handle(conn, events).await
    }
}

/// The acknowledgement of a later event must not include one that was left.
#[tokio::test(flavor = "multi_thread")]
async fn an_event_that_is_tried_again_at_shutdown_is_not_lost() {
    let app = TestApp::new().await;
    let handler = GatedHandler {
        gate: Arc::new(Semaphore::new(0)),
        at_gate: Arc::default(),
        failing: Arc::default(),
        has_failed: Arc::default(),
    };
    let mut holder = app.database.pool().get().await.unwrap();
    let lock = "SELECT pg_advisory_lock(n) FROM generate_series(1000, 1019) AS n";
    holder.batch_execute(lock).await.unwrap();
    let (process, _outbox) = app.start_replica();
    messaging::consume(&app.broker, "consumer", &process, handler.clone());
    app.append(1000..1020).await;
    // The consumer keeps the events of 16 rows itself.
    let waiting = eventually("events are in the waiting queue", TIMEOUT, async || {
        let messages = app.namespace.peek("backhaul.waiting").await;
        let numbers = messages.iter().map(|message| {
            let event: Value = serde_json::from_str(message["payload"].as_str().unwrap()).unwrap();
            event["data"]["number"].as_i64().unwrap()
        });
        Some(numbers.collect::<HashSet<_>>()).filter(|numbers| numbers.len() == 4)
    })
    .await;
    for number in (1000..1020).filter(|number| !waiting.contains(number)) {
        holder.batch_execute(&format!("SELECT pg_advisory_unlock({number})")).await.unwrap();
    }
    app.wait_for_handled(16).await;
    let mut notes = 0;
    while !handler.has_failed.load(Ordering::Relaxed) {
        // The waiting events return while the consumer is busy, so they come in one batch with other events.
        app.append([0]).await;
        eventually("the consumer is busy", TIMEOUT, async || {
            handler.at_gate.load(Ordering::Relaxed).then_some(())
        })
        .await;
        eventually("the events have returned", TIMEOUT, async || {
            app.namespace.peek("backhaul.waiting").await.is_empty().then_some(())
        })
        .await;
        app.append(notes + 1..notes + 21).await;
        app.wait_for_empty_outbox().await;
        notes += 20;
        *handler.failing.lock().unwrap() = waiting.clone();
        handler.gate.add_permits(1);
        eventually("the batch is handled, or an event of it is tried", TIMEOUT, async || {
            let query =
                format!("SELECT count(*) AS n FROM handled WHERE number BETWEEN 1 AND {notes}");
            let is_handled = app.count(&query).await == notes;
            (is_handled || handler.has_failed.load(Ordering::Relaxed)).then_some(())
        })
        .await;
    }
    stop(process).await;
    holder.batch_execute("SELECT pg_advisory_unlock_all()").await.unwrap();
    app.consume(CountingHandler::default());
    eventually("every event is handled", TIMEOUT, async || {
        let others = "SELECT count(*) AS n FROM handled WHERE number > 0";
        (app.count(others).await == 20 + notes).then_some(())
    })
    .await;
    app.stop().await;
}
