//! An event that is too large for its queue moves to the queue for large ones.

use diesel_async::AsyncPgConnection;
use domain::event::Event;
use messaging::{Envelope, HandleError, Handler, MIGRATIONS};
use platform::{ErrorKind, Failure};
use serde::{Deserialize, Serialize};
use testkit::{Database, Namespace};

use crate::test_app::{CountingHandler, NoteWritten, TestApp, count_handled, topology};

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(transparent)]
struct LargeNoteWritten(NoteWritten);

impl Event for LargeNoteWritten {
    const TYPE: &'static str = "note.large_written.v1";

    fn subject(&self) -> String {
        self.0.subject()
    }
}

#[derive(Debug, thiserror::Error)]
#[error("too large")]
struct TooLarge;

impl Failure for TooLarge {
    fn kind(&self) -> ErrorKind {
        ErrorKind::TooLarge
    }
}

/// Notes from 100 on are too large for it.
struct SmallNotes;

impl Handler for SmallNotes {
    type Event = NoteWritten;

    fn queue_for_large() -> Option<&'static str> {
        Some(LargeNoteWritten::TYPE)
    }

    async fn handle(
        &self,
        conn: &mut AsyncPgConnection,
        events: &[&Envelope<NoteWritten>],
    ) -> Result<(), HandleError> {
        if events.iter().any(|event| event.data.number >= 100) {
            return Err(TooLarge.into());
        }
        CountingHandler::default().handle(conn, events).await
    }
}

struct LargeNotes;

impl Handler for LargeNotes {
    type Event = LargeNoteWritten;

    async fn handle(
        &self,
        conn: &mut AsyncPgConnection,
        events: &[&Envelope<LargeNoteWritten>],
    ) -> Result<(), HandleError> {
        for event in events {
            count_handled(conn, &event.data.0).await?;
        }
        Ok(())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_that_alone_is_too_large_moves_to_the_queue_for_large_ones() {
    let namespace = Namespace::create();
    let topology = topology(&namespace).with_subscription("consumer", LargeNoteWritten::TYPE);
    let database = Database::create(vec![MIGRATIONS]).await;
    let app = TestApp::with_topology(database, namespace, topology).await;
    app.append(95..105).await;
    app.consume(SmallNotes);
    app.wait_for_handled(5).await;
    app.consume(LargeNotes);
    app.wait_for_handled(10).await;
    assert!(app.peek_dead_letters().await.is_empty());
    app.stop().await;
}
