//! Transactions that may wait for locked rows.
//!
//! A request that waits for a locked row keeps a connection. Only a few may do so, one at a time for each owner,
//! so that the requests about one locked row leave connections to all others.
//!
//! See docs/decisions/request-batches.md.

use std::sync::Arc;
use std::time::Duration;

use diesel_async::{AsyncPgConnection, SimpleAsyncConnection as _};
use tokio::time::{Instant, timeout_at};

use super::Pool;
use crate::database::{DatabaseError, lock_timed_out};
use crate::slots::Slots;

/// Longest time until a transaction has all its locks.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Longest wait for a lock in one attempt. The request then lets others have its slot, and tries again.
const LIMIT_LOCK_WAIT: &str = "SET LOCAL lock_timeout = '1s'";

/// The slots of transactions that may wait for locked rows.
#[derive(Clone)]
pub(crate) struct OwnerTransactions {
    pub(crate) normal: Arc<Slots>,
    /// Requests that are too large for a batch never wait behind requests about a locked row.
    pub(crate) large: Arc<Slots>,
}

impl OwnerTransactions {
    /// Takes less than half of the connections, because lists can take the other half.
    pub(super) fn new(max_connections: usize) -> Self {
        let normal = (max_connections / 3).max(1);
        Self { normal: Slots::new(normal, 1), large: Slots::new(1, 1) }
    }
}

/// An asynchronous function that can be called again, and whose future is `Send`.
pub trait RepeatableFunction<T, R>: Fn(T) -> <Self as RepeatableFunction<T, R>>::Future {
    type Future: Future<Output = R> + Send;
}

impl<F, T, Fut, R> RepeatableFunction<T, R> for F
where
    F: Fn(T) -> Fut,
    Fut: Future<Output = R> + Send,
{
    type Future = Fut;
}

impl Pool {
    /// Runs a transaction that may wait for locked rows. `run` is called again after each lock timeout, so it must
    /// have no effect outside the transaction.
    ///
    /// Transactions with the same key run one after the other, and those of all keys on a few connections. The key
    /// (the owner) is usually the merchant; in auth it can be the id of a client or an e-mail address, and operators
    /// without a merchant share the empty key.
    pub async fn transaction_of<R, E, F>(&self, key: &str, run: F) -> Result<R, E>
    where
        for<'r> F: AsyncFn(&'r mut AsyncPgConnection) -> Result<R, E>
            + RepeatableFunction<&'r mut AsyncPgConnection, Result<R, E>>
            + Send
            + Sync,
        E: From<DatabaseError> + From<diesel::result::Error> + std::error::Error + Send + 'static,
        R: Send,
    {
        self.transaction_in(&self.owner_transactions.normal, key, run).await
    }

    /// Runs a transaction as [`Self::transaction_of`], in one of these slots.
    pub(crate) async fn transaction_in<R, E, F>(
        &self,
        slots: &Arc<Slots>,
        key: &str,
        run: F,
    ) -> Result<R, E>
    where
        for<'r> F: AsyncFn(&'r mut AsyncPgConnection) -> Result<R, E>
            + RepeatableFunction<&'r mut AsyncPgConnection, Result<R, E>>
            + Send
            + Sync,
        E: From<DatabaseError> + From<diesel::result::Error> + std::error::Error + Send + 'static,
        R: Send,
    {
        let deadline = Instant::now() + TIMEOUT;
        while Instant::now() < deadline {
            let Ok(Ok(_slot)) = timeout_at(deadline, slots.acquire(key)).await else { break };
            let mut conn = self.get().await?;
            let attempt = conn.transaction(async |conn| {
                conn.batch_execute(LIMIT_LOCK_WAIT).await?;
                run(conn).await
            });
            match attempt.await {
                Err(error) if lock_timed_out(&error) => {}
                result => return result,
            }
        }
        Err(DatabaseError::Contended.into())
    }

    /// Whether a transaction waits for locked rows, or might.
    pub fn has_owner_transactions(&self) -> bool {
        !self.owner_transactions.normal.is_idle()
    }
}
