//! Requests about rows that another transaction has locked.

use std::time::Duration;

use diesel_async::SimpleAsyncConnection as _;
use futures_util::future::{join, join_all};

use crate::{Database, eventually};

/// More requests than a service has connections.
const REQUESTS: usize = 20;
const TIMEOUT: Duration = Duration::from_secs(300);
const WAITING: &str = "SELECT count(*) AS n FROM pg_stat_activity \
                       WHERE datname = current_database() AND wait_event_type = 'Lock'";

/// Sends 20 requests about rows of one owner that `lock` locks on another connection. Checks that only one of them
/// waits in the database, and that `other`, a request about other rows, gets its response meanwhile. Returns the
/// responses of the 20 requests.
pub async fn check_requests_about_locked_rows<T>(
    database: &Database,
    lock: &str,
    request: impl AsyncFn() -> T,
    other: impl AsyncFnOnce(),
) -> Vec<T> {
    let pool = database.pool();
    let mut holder = pool.get().await.unwrap();
    holder.batch_execute(&format!("BEGIN; {lock}")).await.unwrap();
    let requests = join_all((0..REQUESTS).map(|_| request()));
    let others = async {
        eventually("a request waits for the lock", TIMEOUT, async || {
            Some(database.count(WAITING).await).filter(|waiting| *waiting > 0)
        })
        .await;
        other().await;
        assert_eq!(database.count(WAITING).await, 1, "requests that wait for the lock");
        holder.batch_execute("ROLLBACK").await.unwrap();
    };
    join(requests, others).await.0
}
