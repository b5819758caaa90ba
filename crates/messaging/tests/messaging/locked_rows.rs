//! Events whose rows another transaction has locked.

use std::sync::{Arc, Mutex};

use diesel_async::{AsyncPgConnection, SimpleAsyncConnection as _};
use messaging::{Envelope, HandleError, Handler};
use testkit::eventually;
use uuid::Uuid;

use crate::test_app::{CountingHandler, NoteWritten, TIMEOUT, TestApp};

/// Handlings after which the broker would have dead-lettered a failed event.
const DELIVERY_LIMIT: usize = 6;

/// Records the events of note 7 that it begins to handle.
#[derive(Clone, Default)]
struct AttemptRecorder(Arc<Mutex<Vec<Uuid>>>);

impl Handler for AttemptRecorder {
    type Event = NoteWritten;

    async fn handle(
        &self,
        conn: &mut AsyncPgConnection,
        events: &[&Envelope<NoteWritten>],
    ) -> Result<(), HandleError> {
        let sevens = events.iter().filter(|event| event.data.number == 7).map(|event| event.id);
        self.0.lock().unwrap().extend(sevens);
        CountingHandler::default().handle(conn, events).await
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_with_a_locked_row_delays_no_other_and_is_never_dead_lettered() {
    let app = TestApp::new().await;
    app.execute("INSERT INTO handled VALUES (7, 0)").await;
    let pool = app.database.pool();
    let mut holder = pool.get().await.unwrap();
    holder.batch_execute("BEGIN; SELECT FROM handled WHERE number = 7 FOR UPDATE").await.unwrap();
    let recorder = AttemptRecorder::default();
    app.append(0..20).await;
    app.consume(recorder.clone());
    app.wait_for_handled(19).await;
    // The second event about note 7 waits behind the first.
    app.append([7]).await;
    app.append(20..40).await;
    app.wait_for_handled(39).await;
    eventually("the event is tried more often than a failed one", TIMEOUT, async || {
        (recorder.0.lock().unwrap().len() > DELIVERY_LIMIT + 2).then_some(())
    })
    .await;
    let first = recorder.0.lock().unwrap()[0];
    assert!(recorder.0.lock().unwrap().iter().all(|id| *id == first), "a later event overtook");
    holder.batch_execute("ROLLBACK").await.unwrap();
    eventually("both events are handled", TIMEOUT, async || {
        let times = "SELECT times::bigint AS n FROM handled WHERE number = 7";
        (app.count(times).await == 2).then_some(())
    })
    .await;
    assert!(app.peek_dead_letters().await.is_empty());
    app.stop().await;
}
