//! Transactions with follow-ups: tasks that they wake, and actions that depend on their commit.

use std::cell::RefCell;
use std::sync::Arc;

use diesel_async::{AsyncConnection as _, AsyncPgConnection};
use tokio::sync::Notify;

use super::Connection;

tokio::task_local! {
    static FOLLOW_UPS: RefCell<FollowUps>;
}

/// What follows the current transaction.
#[derive(Default)]
struct FollowUps {
    wake_ups: Vec<Arc<Notify>>,
    actions: Vec<Box<dyn FnOnce() + Send>>,
}

/// Wakes a task when the current transaction has ended, or at once outside of [`transaction`].
pub fn wake_after_commit(wake: &Arc<Notify>) {
    let is_noted = FOLLOW_UPS.try_with(|follow_ups| {
        let wake_ups = &mut follow_ups.borrow_mut().wake_ups;
        if !wake_ups.iter().any(|other| Arc::ptr_eq(other, wake)) {
            wake_ups.push(wake.clone());
        }
    });
    if is_noted.is_err() {
        wake.notify_one();
    }
}

/// Runs an action when the current transaction has committed. If the transaction fails, the action is dropped, although
/// the transaction may have committed. Outside of [`transaction`], where no commit is noticed, the action is dropped at
/// once, and the result is false. A savepoint is no transaction: the action must not depend on one.
pub fn run_after_commit(action: impl FnOnce() + Send + 'static) -> bool {
    let action = Box::new(action);
    FOLLOW_UPS.try_with(|follow_ups| follow_ups.borrow_mut().actions.push(action)).is_ok()
}

/// Whether [`run_after_commit`] would keep an action.
pub fn is_in_transaction() -> bool {
    FOLLOW_UPS.try_with(|_| ()).is_ok()
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

/// Runs a transaction, then its follow-ups. A failed one may have committed, so it wakes tasks too.
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
        let FollowUps { wake_ups, actions } = FOLLOW_UPS.with(RefCell::take);
        if result.is_ok() {
            actions.into_iter().for_each(|action| action());
        }
        wake_ups.iter().for_each(|wake| wake.notify_one());
        result
    };
    FOLLOW_UPS.scope(RefCell::default(), running).await
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
