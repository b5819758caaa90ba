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
                (batches.queued() == requests.len()).then_some(())
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
