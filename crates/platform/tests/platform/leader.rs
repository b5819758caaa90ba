//! Tasks that one replica runs at a time.

use std::sync::Arc;
use std::time::Duration;

use diesel_async::AsyncPgConnection;
use platform::database::{DatabaseError, LeaderTask, PollOutcome};
use testkit::Database;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

/// Announces its polls, and never finds anything.
struct Polling(Arc<Notify>);

impl LeaderTask for Polling {
    const LOCK: i64 = i64::from_be_bytes(*b"tested!!");
    const FAILURE_MESSAGE: &'static str = "polling failed";
    type Error = DatabaseError;

    async fn poll(&mut self, _conn: &mut AsyncPgConnection) -> Result<PollOutcome, DatabaseError> {
        self.0.notify_one();
        Ok(PollOutcome::Idle)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replica_that_does_not_lead_wakes_the_leader() {
    const NEVER: Duration = Duration::from_secs(3600);
    let database = Database::create(vec![]).await;
    let leader = testkit::process(&database).pool;
    let follower = testkit::process(&database).pool;
    let stop = CancellationToken::new();
    let polled = Arc::new(Notify::new());
    let leader_wake = Arc::new(Notify::new());
    let leading = leader.run_as_leader(Polling(polled.clone()), leader_wake, NEVER, stop.clone());
    let checking = async {
        polled.notified().await;
        let wake = Arc::new(Notify::new());
        wake.notify_one();
        let task = Polling(Arc::new(Notify::new()));
        let following = follower.run_as_leader(task, wake, NEVER, stop.clone());
        let woken = tokio::time::timeout(Duration::from_secs(300), polled.notified());
        tokio::select! {
            () = following => panic!("the follower stopped"),
            woken = woken => woken.unwrap(),
        }
        stop.cancel();
    };
    tokio::join!(leading, checking);
}
