//! Limits of a consumer's transactions and of its prefetched events.

use std::sync::{Arc, Mutex};

use diesel_async::AsyncPgConnection;
use messaging::{Envelope, HandleError, Handler};

use crate::test_app::{CountingHandler, NoteWritten, TestApp};

type Batches = Arc<Mutex<Vec<Vec<i64>>>>;

/// Consumes 100 notes, of which note 70 fails, and returns the batches.
async fn batches_of<H: Handler>(handler: impl FnOnce(Recorder) -> H) -> Vec<Vec<i64>> {
    let app = TestApp::new().await;
    let batches = Batches::default();
    app.append(0..100).await;
    let counting = CountingHandler { fails_for: Some(70) };
    app.consume(handler(Recorder { batches: batches.clone(), counting }));
    app.wait_for_handled(99).await;
    app.stop().await;
    let batches = batches.lock().unwrap().clone();
    assert!(batches.iter().any(|batch| batch.len() > 1), "no batches: {batches:?}");
    batches
}

struct Recorder {
    batches: Batches,
    counting: CountingHandler,
}

impl Recorder {
    async fn handle(
        &self,
        conn: &mut AsyncPgConnection,
        events: &[&Envelope<NoteWritten>],
    ) -> Result<(), HandleError> {
        let numbers = events.iter().map(|event| event.data.number).collect();
        self.batches.lock().unwrap().push(numbers);
        self.counting.handle(conn, events).await
    }
}

/// Three notes reach the maximum cost; note 50 exceeds it alone.
struct CostlyHandler(Recorder);

impl Handler for CostlyHandler {
    type Event = NoteWritten;

    const MAX_BATCH_COST: usize = 30;

    fn cost(note: &NoteWritten) -> usize {
        if note.number == 50 { 1000 } else { 10 }
    }

    async fn handle(
        &self,
        conn: &mut AsyncPgConnection,
        events: &[&Envelope<NoteWritten>],
    ) -> Result<(), HandleError> {
        self.0.handle(conn, events).await
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_transaction_is_limited_by_the_cost_of_its_events() {
    for batch in batches_of(CostlyHandler).await {
        assert!(batch.len() <= 3, "{batch:?}");
        assert!(!batch.contains(&50) || batch.last() == Some(&50), "{batch:?}");
    }
}

struct LowPrefetchHandler(Recorder);

impl Handler for LowPrefetchHandler {
    type Event = NoteWritten;

    const MAX_PREFETCH: u16 = 4;

    async fn handle(
        &self,
        conn: &mut AsyncPgConnection,
        events: &[&Envelope<NoteWritten>],
    ) -> Result<(), HandleError> {
        self.0.handle(conn, events).await
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_handler_can_lower_the_prefetch_count() {
    let batches = batches_of(LowPrefetchHandler).await;
    // RabbitMQ sometimes sends a message more than the prefetch count, although no earlier one is acknowledged yet.
    assert!(batches.iter().all(|batch| batch.len() <= 8), "{batches:?}");
}
