//! Events that are more than they look.

use std::sync::{Arc, Mutex};

use diesel_async::AsyncPgConnection;
use messaging::{Envelope, HandleError, Handler, consume};
use testkit::eventually;

use crate::{Count, NoteWritten, SOON, Stage};

/// Writes down how many notes came together. Three of them are a full transaction, and note 50 is
/// one by itself; note 70 is refused.
struct Scales {
    together: Arc<Mutex<Vec<Vec<i64>>>>,
    count: Count,
}

impl Handler for Scales {
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
        let numbers = events.iter().map(|event| event.data.number).collect();
        self.together.lock().unwrap().push(numbers);
        self.count.handle(conn, events).await
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_transaction_takes_no_more_than_its_weight() {
    let stage = Stage::new().await;
    let together = Arc::new(Mutex::new(Vec::new()));
    let scales = Scales { together: together.clone(), count: Count { refuses: Some(70) } };
    stage.write(0..100).await;
    consume(&stage.broker, "listener", &stage.process, scales);
    eventually("all but one took effect", SOON, async || {
        (stage.number("SELECT count(*) AS n FROM seen WHERE times = 1").await == 99).then_some(())
    })
    .await;
    let together = together.lock().unwrap().clone();
    assert!(together.iter().any(|numbers| numbers.len() > 1), "they did not come together");
    for numbers in together {
        assert!(numbers.len() <= 3, "{numbers:?}");
        assert!(!numbers.contains(&50) || numbers.last() == Some(&50), "{numbers:?}");
    }
    stage.leave().await;
}

/// Writes down how many notes came together, and holds no more than four.
struct FewHeld {
    together: Arc<Mutex<Vec<usize>>>,
    count: Count,
}

impl Handler for FewHeld {
    type Event = NoteWritten;

    const MAX_PREFETCH: u16 = 4;

    async fn handle(
        &self,
        conn: &mut AsyncPgConnection,
        events: &[&Envelope<NoteWritten>],
    ) -> Result<(), HandleError> {
        self.together.lock().unwrap().push(events.len());
        self.count.handle(conn, events).await
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_consumer_of_long_events_holds_few_of_them() {
    let stage = Stage::new().await;
    let together = Arc::new(Mutex::new(Vec::new()));
    let few = FewHeld { together: together.clone(), count: Count { refuses: Some(70) } };
    stage.write(0..100).await;
    consume(&stage.broker, "listener", &stage.process, few);
    eventually("all but one took effect", SOON, async || {
        (stage.number("SELECT count(*) AS n FROM seen WHERE times = 1").await == 99).then_some(())
    })
    .await;
    let together = together.lock().unwrap().clone();
    assert!(together.iter().any(|some| *some > 1), "they did not come together: {together:?}");
    assert!(together.iter().all(|some| *some <= 4), "{together:?}");
    stage.leave().await;
}
