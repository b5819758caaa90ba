//! The tasks of a process: named, owned, told to stop together, waited for.
//!
//! No task is ever detached. One that panics or ends before it was told to takes the process
//! down with it, because a service that lost its relay or its consumer must not look healthy.

use std::{future::Future, time::Duration};

use futures_util::FutureExt;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

/// A handle on the tasks of this process.
#[derive(Clone, Default)]
pub struct Tasks {
    tracker: TaskTracker,
    stop: CancellationToken,
    failed: CancellationToken,
}

impl Tasks {
    /// Starts a task. It must return soon after the token it is given is cancelled, and not
    /// before.
    pub fn spawn<F, Fut>(&self, name: &'static str, task: F)
    where
        F: FnOnce(CancellationToken) -> Fut,
        Fut: Future<Output = ()> + Send + 'static,
    {
        let (stop, failed) = (self.stop.clone(), self.failed.clone());
        let work = std::panic::AssertUnwindSafe(task(self.stop.clone())).catch_unwind();
        self.tracker.spawn(async move {
            let ended = work.await;
            if ended.is_err() || !stop.is_cancelled() {
                tracing::error!(task = name, "task {name} ended before its time");
                failed.cancel();
            }
        });
    }

    /// Starts a task that does `step` now and then once every `period`.
    pub fn every<F, Fut>(&self, name: &'static str, period: Duration, mut step: F)
    where
        F: FnMut() -> Fut + Send + 'static,
        Fut: Future<Output = ()> + Send,
    {
        self.spawn(name, |stop| async move {
            let mut ticks = tokio::time::interval(period);
            ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
            loop {
                tokio::select! {
                    () = stop.cancelled() => return,
                    _ = ticks.tick() => {}
                }
                step().await;
            }
        });
    }

    /// Resolves when a task ended that should not have.
    pub async fn failed(&self) {
        self.failed.cancelled().await;
    }

    /// Tells every task to stop and waits for them, at most `grace`. Returns whether all stopped.
    pub async fn drain(&self, grace: Duration) -> bool {
        self.stop.cancel();
        self.tracker.close();
        tokio::time::timeout(grace, self.tracker.wait()).await.is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_task_that_panics_is_noticed() {
        let tasks = Tasks::default();
        tasks.spawn("doomed", |_| async { panic!("on purpose") });
        tasks.failed().await;
        assert!(tasks.drain(Duration::from_secs(1)).await);
    }

    #[tokio::test]
    async fn a_task_that_returns_early_is_noticed() {
        let tasks = Tasks::default();
        tasks.spawn("idle", |_| async {});
        tasks.failed().await;
    }

    #[tokio::test]
    async fn draining_waits_for_the_tasks_and_reports_the_slow_ones() {
        let tasks = Tasks::default();
        tasks.spawn("good", |stop| async move { stop.cancelled().await });
        assert!(tasks.drain(Duration::from_secs(5)).await);

        let tasks = Tasks::default();
        tasks.spawn("deaf", |_| std::future::pending());
        assert!(!tasks.drain(Duration::from_millis(10)).await);
    }
}
