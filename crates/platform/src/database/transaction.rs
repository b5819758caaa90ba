//! Transactions that wake tasks when they have committed.

use std::cell::RefCell;
use std::sync::Arc;

use diesel_async::{AsyncConnection as _, AsyncPgConnection};
use tokio::sync::Notify;

use super::Connection;

tokio::task_local! {
    /// The tasks that the current transaction wakes.
    static WAKE_UPS: RefCell<Vec<Arc<Notify>>>;
}

/// Wakes a task when the current transaction has ended, or at once outside of [`transaction`].
pub fn wake_after_commit(wake: &Arc<Notify>) {
    let is_noted = WAKE_UPS.try_with(|wake_ups| {
        let mut wake_ups = wake_ups.borrow_mut();
        if !wake_ups.iter().any(|other| Arc::ptr_eq(other, wake)) {
            wake_ups.push(wake.clone());
        }
    });
    if is_noted.is_err() {
        wake.notify_one();
    }
}

/// An asynchronous function whose future is `Send`.
pub trait AsyncFunction<T, R>:
    AsyncFnOnce(T) -> R + FnOnce(T) -> <Self as AsyncFunction<T, R>>::Future
{
    type Future: Future<Output = R>;
}

impl<F, T, Fut, R> AsyncFunction<T, R> for F
where
    F: AsyncFnOnce(T) -> R + FnOnce(T) -> Fut,
    Fut: Future<Output = R>,
{
    type Future = Fut;
}

/// Runs a transaction. A failed one may have committed, so it wakes tasks too.
pub async fn transaction<R, E, F>(conn: &mut AsyncPgConnection, run: F) -> Result<R, E>
where
    for<'r> F: AsyncFnOnce(&'r mut AsyncPgConnection) -> Result<R, E>
        + AsyncFunction<&'r mut AsyncPgConnection, Result<R, E>, Future: Send>
        + Send,
    E: From<diesel::result::Error> + Send,
    R: Send,
{
    let running = async {
        let result = conn.transaction(run).await;
        let wake_ups = WAKE_UPS.with(RefCell::take);
        wake_ups.iter().for_each(|wake| wake.notify_one());
        result
    };
    WAKE_UPS.scope(RefCell::default(), running).await
}

impl Connection {
    /// Runs a transaction as [`transaction`] does.
    pub async fn transaction<R, E, F>(&mut self, run: F) -> Result<R, E>
    where
        for<'r> F: AsyncFnOnce(&'r mut AsyncPgConnection) -> Result<R, E>
            + AsyncFunction<&'r mut AsyncPgConnection, Result<R, E>, Future: Send>
            + Send,
        E: From<diesel::result::Error> + Send,
        R: Send,
    {
        transaction(self, run).await
    }
}
