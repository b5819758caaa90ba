//! Requests that share transactions.

use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use diesel_async::{AsyncPgConnection, SimpleAsyncConnection as _};
use futures_util::FutureExt as _;
use futures_util::future::{join, join_all, join3};
use platform::batching::{BatchHandler, BatchResults, Batches, Job, Processing, SubmitError};
use platform::database::DatabaseError;
use platform::{ErrorKind, Failure};
use testkit::Database;
use tokio::sync::watch;

const TIMEOUT: Duration = Duration::from_secs(300);

/// The effect of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Request {
    Succeed,
    /// Must be processed alone.
    Alone,
    /// Fails the statement of its transaction.
    BadStatement,
    Panic,
    /// Ends the connection of its transaction.
    LoseConnection,
}

impl Job for Request {
    fn owner(&self) -> &str {
        "acme"
    }

    fn weight(&self) -> usize {
        1
    }
}

#[derive(Debug, thiserror::Error)]
enum Error {
    #[error(transparent)]
    Submit(#[from] SubmitError),
    #[error(transparent)]
    Database(#[from] DatabaseError),
}

impl From<diesel::result::Error> for Error {
    fn from(error: diesel::result::Error) -> Self {
        DatabaseError::from(error).into()
    }
}

impl Failure for Error {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::Submit(error) => error.kind(),
            Self::Database(error) => error.kind(),
        }
    }
}

/// The requests of a transaction.
type Transaction = (Processing, Vec<Request>);

/// Records the requests of each transaction. Waits until it is open.
struct Handler {
    batches: Arc<Mutex<Vec<Transaction>>>,
    open: watch::Receiver<bool>,
}

impl BatchHandler for Handler {
    type Job = Request;
    type Response = &'static str;
    type Error = Error;

    async fn process(
        &self,
        conn: &mut AsyncPgConnection,
        jobs: &[&Request],
        processing: Processing,
    ) -> Result<BatchResults<&'static str, Error>, Error> {
        let requests: Vec<_> = jobs.iter().map(|job| **job).collect();
        self.batches.lock().unwrap().push((processing, requests.clone()));
        drop(self.open.clone().wait_for(|open| *open).await);
        if requests.contains(&Request::BadStatement) {
            conn.batch_execute("SELECT 1 / 0").await?;
        }
        if requests.contains(&Request::LoseConnection) {
            conn.batch_execute("SELECT pg_terminate_backend(pg_backend_pid())").await?;
        }
        assert!(!requests.contains(&Request::Panic), "as requested");
        let response = |request: &Request| match (request, processing) {
            (Request::Alone, Processing::Batch) => None,
            (_, Processing::Batch) => Some(Ok("in a batch")),
            (_, Processing::Alone) => Some(Ok("alone")),
        };
        Ok(requests.iter().map(response).collect())
    }

    fn is_conflict(_: &Error) -> bool {
        false
    }
}

/// Sends these requests while two others occupy the workers, so that they form one batch. Returns their results as
/// texts, and the transactions after those of the two others.
async fn send(requests: &[Request]) -> (Vec<String>, Vec<Transaction>) {
    let database = Database::create(Vec::new()).await;
    let process = testkit::process(&database);
    let (open, opened) = watch::channel(false);
    let recorded = Arc::new(Mutex::new(Vec::new()));
    let batches =
        Batches::start("test", &process, Handler { batches: recorded.clone(), open: opened });
    // Two requests that are sent at once could be one batch.
    let wait_for_batches = async |number| {
        testkit::eventually("a worker is busy", TIMEOUT, async || {
            (recorded.lock().unwrap().len() == number).then_some(())
        })
        .await;
    };
    let first = batches.run(Request::Succeed);
    let second = async {
        wait_for_batches(1).await;
        batches.run(Request::Succeed).await
    };
    let later = async {
        wait_for_batches(2).await;
        let queued = async {
            testkit::eventually("all are queued", TIMEOUT, async || {
                (batches.queued_weight() == requests.len()).then_some(())
            })
            .await;
            open.send(true).unwrap();
        };
        let run = |request: &Request| AssertUnwindSafe(batches.run(*request)).catch_unwind();
        join(join_all(requests.iter().map(run)), queued).await.0
    };
    let (results, first, second) = join3(later, first, second).await;
    assert!(first.is_ok() && second.is_ok());
    let transactions = recorded.lock().unwrap().split_off(2);
    assert!(process.tasks.drain(TIMEOUT).await);
    let text = |result| match result {
        Ok(Ok(response)) => String::from(response),
        Ok(Err(error)) => format!("{:?}", Error::kind(&error)),
        Err(_) => "panic".to_owned(),
    };
    (results.into_iter().map(text).collect(), transactions)
}

#[tokio::test(flavor = "multi_thread")]
async fn waiting_requests_share_a_transaction() {
    let (results, transactions) = send(&[Request::Succeed; 10]).await;
    assert_eq!(results, ["in a batch"; 10]);
    assert_eq!(transactions, [(Processing::Batch, vec![Request::Succeed; 10])]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_can_be_processed_alone_after_its_batch() {
    let (results, transactions) = send(&[Request::Succeed, Request::Alone]).await;
    assert_eq!(results, ["in a batch", "alone"]);
    assert_eq!(transactions[1], (Processing::Alone, vec![Request::Alone]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_fails_its_batch_fails_alone() {
    let (results, _) = send(&[Request::Succeed, Request::BadStatement, Request::Succeed]).await;
    assert_eq!(results, ["alone", "Internal", "alone"]);
}

/// The batch may have been committed, so its requests are not repeated.
#[tokio::test(flavor = "multi_thread")]
async fn a_lost_connection_fails_all_requests_of_the_batch() {
    let (results, transactions) = send(&[Request::Succeed, Request::LoseConnection]).await;
    assert_eq!(results, ["Unavailable"; 2]);
    assert_eq!(transactions.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_panic_ends_only_its_own_request() {
    let (results, _) = send(&[Request::Succeed, Request::Panic, Request::Succeed]).await;
    assert_eq!(results, ["alone", "panic", "alone"]);
}

/// A request about the row of its owner.
struct RowRequest {
    owner: &'static str,
    weight: usize,
}

impl Job for RowRequest {
    fn owner(&self) -> &str {
        self.owner
    }

    fn weight(&self) -> usize {
        self.weight
    }
}

/// Skips every row in a batch, and locks the rows of requests that are processed alone.
struct RowHandler;

impl BatchHandler for RowHandler {
    type Job = RowRequest;
    type Response = ();
    type Error = Error;

    async fn process(
        &self,
        conn: &mut AsyncPgConnection,
        jobs: &[&RowRequest],
        processing: Processing,
    ) -> Result<BatchResults<(), Error>, Error> {
        if processing == Processing::Batch {
            return Ok(jobs.iter().map(|_| None).collect());
        }
        for job in jobs {
            let lock = format!("SELECT FROM row_of WHERE owner = '{}' FOR UPDATE", job.owner);
            conn.batch_execute(&lock).await?;
        }
        Ok(jobs.iter().map(|_| Some(Ok(()))).collect())
    }

    fn is_conflict(_: &Error) -> bool {
        false
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_about_a_locked_row_delay_no_other_owner() {
    let database = Database::create(Vec::new()).await;
    let process = testkit::process(&database);
    let mut holder = process.pool.get().await.unwrap();
    let rows = "CREATE TABLE row_of (owner TEXT); INSERT INTO row_of VALUES ('a'), ('b')";
    holder.batch_execute(rows).await.unwrap();
    let lock = "BEGIN; SELECT FROM row_of WHERE owner = 'a' FOR UPDATE";
    holder.batch_execute(lock).await.unwrap();
    let batches = Batches::start("test", &process, RowHandler);
    let run = |owner, weight| {
        let batches = batches.clone();
        #[expect(clippy::disallowed_methods, reason = "the test waits for it")]
        let running = tokio::spawn(async move { batches.run(RowRequest { owner, weight }).await });
        running
    };
    let waiting: Vec<_> = (0..7).map(|_| run("a", 1)).chain([run("a", 65)]).collect();
    testkit::eventually("the slots of a are taken", TIMEOUT, async || {
        let waiting = "SELECT count(*) AS n FROM pg_stat_activity WHERE wait_event_type = 'Lock' \
                       AND datname = current_database()";
        let mut conn = process.pool.get().await.unwrap();
        (testkit::try_count(&mut conn, waiting).await.unwrap() == 2).then_some(())
    })
    .await;
    for weight in [1, 65] {
        run("b", weight).await.unwrap().unwrap();
    }
    assert!(waiting.iter().all(|request| !request.is_finished()), "b waited for a");
    holder.batch_execute("ROLLBACK").await.unwrap();
    for request in waiting {
        // On a slow machine the time of a request can be over before the lock is released.
        let result = request.await.unwrap();
        assert!(!result.is_err_and(|error| error.kind() != ErrorKind::Limited));
    }
    assert!(process.tasks.drain(TIMEOUT).await);
}

#[test]
fn a_lack_of_capacity_is_not_an_outage() {
    let kinds = [SubmitError::Full, SubmitError::NoDatabase].map(|error| error.kind());
    assert_eq!(kinds, [ErrorKind::Limited, ErrorKind::Unavailable]);
    assert_eq!(DatabaseError::Contended.kind(), ErrorKind::Limited);
    assert_eq!(DatabaseError::TooManyReaders.kind(), ErrorKind::Limited);
    assert_eq!(platform::Overloaded.kind(), ErrorKind::Limited);
}
