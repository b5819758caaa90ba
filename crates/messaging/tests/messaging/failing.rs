//! Events that cannot be handled.

use std::{
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use diesel_async::{AsyncPgConnection, SimpleAsyncConnection as _};
use messaging::{Envelope, HandleError, Handler, consume};
use testkit::eventually;

use crate::{Count, NoteWritten, QUEUE, Refused, SOON, Stage};

const LONG: Duration = Duration::from_secs(60);

/// Refuses note 7 and writes down when it was asked to.
struct Timekeeper(Arc<Mutex<Vec<Instant>>>);

impl Handler for Timekeeper {
    type Event = NoteWritten;

    async fn handle(
        &self,
        _: &mut AsyncPgConnection,
        events: &[&Envelope<NoteWritten>],
    ) -> Result<(), HandleError> {
        if events.iter().any(|event| event.data.number == 7) {
            self.0.lock().unwrap().push(Instant::now());
            return Err(Refused(7).into());
        }
        Ok(())
    }
}

async fn dead_letter(stage: &Stage) -> serde_json::Value {
    eventually("the dead letter", LONG, async || {
        stage.namespace.peek(&format!("{QUEUE}.dead")).await.pop()
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_that_fails_is_tried_again_after_growing_pauses() {
    let stage = Stage::new().await;
    let times = Arc::new(Mutex::new(Vec::new()));
    consume(&stage.broker, "listener", &stage.process, Timekeeper(times.clone()));
    stage.write([7]).await;
    dead_letter(&stage).await;
    let times = times.lock().unwrap().clone();
    assert_eq!(times.len(), 6, "once, and five times more");
    for (turn, pair) in times.windows(2).enumerate() {
        let least = Duration::from_millis(100) * 2_u32.pow(turn.try_into().unwrap());
        assert!(pair[1] - pair[0] >= least, "pause {turn}: {:?}", pair[1] - pair[0]);
    }
    stage.leave().await;
}

/// Of twenty notes the seventh is put aside, and the others are handled.
async fn note_7_blocks_nobody(handler: impl Handler<Event = NoteWritten>) {
    let stage = Stage::new().await;
    stage.write(0..20).await;
    consume(&stage.broker, "listener", &stage.process, handler);
    let letter = dead_letter(&stage).await;
    let payload = letter.get("payload").and_then(|payload| payload.as_str());
    assert!(payload.is_some_and(|payload| payload.contains("\"number\":7")), "{letter}");
    eventually("the neighbours are handled", SOON, async || {
        (stage.number("SELECT count(*) AS n FROM seen WHERE times = 1").await == 19).then_some(())
    })
    .await;
    stage.leave().await;
}

/// Note 7 is more than it can bear.
struct Fragile(Count);

impl Handler for Fragile {
    type Event = NoteWritten;

    async fn handle(
        &self,
        conn: &mut AsyncPgConnection,
        events: &[&Envelope<NoteWritten>],
    ) -> Result<(), HandleError> {
        self.0.handle(conn, events).await?;
        assert!(events.iter().all(|event| event.data.number != 7), "note 7 came");
        Ok(())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_handler_that_panics_over_an_event_handles_its_neighbours() {
    note_7_blocks_nobody(Fragile(Count { refuses: None })).await;
}

/// Note 7 takes longer than the database allows.
struct Sluggish(Count);

impl Handler for Sluggish {
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
async fn an_event_that_the_database_does_not_manage_in_time_blocks_nobody() {
    note_7_blocks_nobody(Sluggish(Count { refuses: None })).await;
}
