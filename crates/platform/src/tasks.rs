//! The background tasks of a process.
//!
//! Tasks stop in two phases: first the tasks that work, then the infrastructure that they use, such as
//! the connection over which the last message is settled.
//!
//! No task is detached. A task that panics or ends early ends the process, because a service without
//! its relay or its consumer must not look healthy.

use std::{future::Future, time::Duration};

use futures_util::FutureExt;
use tokio::time::Instant;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

/// Time between the drain deadline and the end of the shutdown, in which tasks abandon their work.
const ABANDON_TIME: Duration = Duration::from_secs(2);

/// A handle on the tasks of this process.
#[derive(Clone, Default)]
pub struct Tasks {
    workers: TaskGroup,
    infrastructure: TaskGroup,
    drain_deadline: CancellationToken,
    failed: CancellationToken,
}

/// Tasks that stop at the same time.
#[derive(Clone, Default)]
struct TaskGroup {
    tracker: TaskTracker,
    stop: CancellationToken,
}

impl Tasks {
    /// Starts a task. It must return soon after its token is cancelled, and not before. A task that
    /// finishes its work first also watches the [`Tasks::drain_deadline`].
    pub fn spawn<F, Fut>(&self, name: &'static str, task: F)
    where
        F: FnOnce(CancellationToken) -> Fut,
        Fut: Future<Output = ()> + Send + 'static,
    {
        self.spawn_in(&self.workers, name, task);
    }

    /// Starts a task that the others need until they end; it stops after them.
    pub fn spawn_infrastructure<F, Fut>(&self, name: &'static str, task: F)
    where
        F: FnOnce(CancellationToken) -> Fut,
        Fut: Future<Output = ()> + Send + 'static,
    {
        self.spawn_in(&self.infrastructure, name, task);
    }

    fn spawn_in<F, Fut>(&self, group: &TaskGroup, name: &'static str, task: F)
    where
        F: FnOnce(CancellationToken) -> Fut,
        Fut: Future<Output = ()> + Send + 'static,
    {
        let stop = group.stop.clone();
        let failed = self.failed.clone();
        let work = std::panic::AssertUnwindSafe(task(group.stop.clone())).catch_unwind();
        group.tracker.spawn(async move {
            let ended = work.await;
            if ended.is_err() || !stop.is_cancelled() {
                tracing::error!(task = name, "task {name} ended early");
                failed.cancel();
            }
        });
    }

    /// Starts a task that does `step` now and then once every `period`.
    pub fn spawn_interval<F, Fut>(&self, name: &'static str, period: Duration, mut step: F)
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

    /// Resolves when a task ended early.
    pub async fn failed(&self) {
        self.failed.cancelled().await;
    }

    /// Cancelled when the time to stop is nearly over.
    pub fn drain_deadline(&self) -> CancellationToken {
        self.drain_deadline.clone()
    }

    /// Stops all tasks and waits for them, at most `grace`. Returns whether all stopped.
    pub async fn drain(&self, grace: Duration) -> bool {
        let end = Instant::now() + grace;
        self.workers.drain(end - ABANDON_TIME.min(grace / 4)).await;
        self.drain_deadline.cancel();
        let workers_stopped = self.workers.drain(end).await;
        let infrastructure_stopped =
            self.infrastructure.drain(end.max(Instant::now() + ABANDON_TIME / 2)).await;
        workers_stopped && infrastructure_stopped
    }
}

impl TaskGroup {
    async fn drain(&self, end: Instant) -> bool {
        self.stop.cancel();
        self.tracker.close();
        tokio::time::timeout_at(end, self.tracker.wait()).await.is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_task_that_panics_is_noticed() {
        let tasks = Tasks::default();
        tasks.spawn("panicking", |_| async { panic!("on purpose") });
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
        tasks.spawn("endless", |_| std::future::pending());
        assert!(!tasks.drain(Duration::from_millis(10)).await);
    }

    #[tokio::test]
    async fn infrastructure_stops_after_the_workers() {
        let tasks = Tasks::default();
        let (connection_closed, worker_done) = (CancellationToken::new(), CancellationToken::new());
        let is_closed = connection_closed.clone();
        let done = worker_done.clone();
        tasks.spawn_infrastructure("connection", |stop| async move {
            stop.cancelled().await;
            connection_closed.cancel();
        });
        tasks.spawn("worker", |stop| async move {
            stop.cancelled().await;
            // The loop lets every other canceled task end.
            for _ in 0..100 {
                tokio::task::yield_now().await;
            }
            assert!(!is_closed.is_cancelled(), "the infrastructure stopped first");
            done.cancel();
        });
        assert!(tasks.drain(Duration::from_secs(5)).await);
        assert!(worker_done.is_cancelled());
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_task_sees_the_drain_deadline() {
        let tasks = Tasks::default();
        let started = Instant::now();
        let drain_deadline = tasks.drain_deadline();
        tasks.spawn("slow", |_| async move { drain_deadline.cancelled().await });
        assert!(tasks.drain(Duration::from_secs(20)).await);
        assert_eq!(started.elapsed().as_secs(), 18);
    }
}
