//! The tasks of a process: named, owned, told to stop together, waited for.
//!
//! They stop in two turns: first those that work, then what they stand on, such as the connection
//! that a last message is settled over.
//!
//! No task is ever detached. One that panics or ends before it was told to takes the process
//! down with it, because a service that lost its relay or its consumer must not look healthy.

use std::{future::Future, time::Duration};

use futures_util::FutureExt;
use tokio::time::Instant;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

/// The last part of the time to stop: who still has something to finish gives it up then.
const LAST_CALL: Duration = Duration::from_secs(2);

/// A handle on the tasks of this process.
#[derive(Clone, Default)]
pub struct Tasks {
    working: Turn,
    standing: Turn,
    drain_deadline: CancellationToken,
    failed: CancellationToken,
}

/// Tasks that stop at the same time.
#[derive(Clone, Default)]
struct Turn {
    tracker: TaskTracker,
    stop: CancellationToken,
}

impl Tasks {
    /// Starts a task. It must return soon after the token it is given is cancelled, and not
    /// before. One that finishes something first listens for the [`Tasks::drain_deadline`].
    pub fn spawn<F, Fut>(&self, name: &'static str, task: F)
    where
        F: FnOnce(CancellationToken) -> Fut,
        Fut: Future<Output = ()> + Send + 'static,
    {
        self.spawn_in(&self.working, name, task);
    }

    /// Starts a task that others stand on to their end; it is told to stop after them.
    pub fn spawn_infrastructure<F, Fut>(&self, name: &'static str, task: F)
    where
        F: FnOnce(CancellationToken) -> Fut,
        Fut: Future<Output = ()> + Send + 'static,
    {
        self.spawn_in(&self.standing, name, task);
    }

    fn spawn_in<F, Fut>(&self, turn: &Turn, name: &'static str, task: F)
    where
        F: FnOnce(CancellationToken) -> Fut,
        Fut: Future<Output = ()> + Send + 'static,
    {
        let (stop, failed) = (turn.stop.clone(), self.failed.clone());
        let work = std::panic::AssertUnwindSafe(task(turn.stop.clone())).catch_unwind();
        turn.tracker.spawn(async move {
            let ended = work.await;
            if ended.is_err() || !stop.is_cancelled() {
                tracing::error!(task = name, "task {name} ended before its time");
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

    /// Resolves when a task ended that should not have.
    pub async fn failed(&self) {
        self.failed.cancelled().await;
    }

    /// Cancelled when the time to stop is nearly over.
    pub fn drain_deadline(&self) -> CancellationToken {
        self.drain_deadline.clone()
    }

    /// Tells every task to stop and waits for them, at most `grace`. Returns whether all stopped.
    pub async fn drain(&self, grace: Duration) -> bool {
        let end = Instant::now() + grace;
        self.working.drain(end - LAST_CALL.min(grace / 4)).await;
        self.drain_deadline.cancel();
        let worked = self.working.drain(end).await;
        // They have little to do, and nobody needs them any more.
        let stood = self.standing.drain(end.max(Instant::now() + LAST_CALL / 2)).await;
        worked && stood
    }
}

impl Turn {
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

    #[tokio::test]
    async fn what_others_stand_on_is_there_until_they_are_done() {
        let tasks = Tasks::default();
        let (ground, gone) = (CancellationToken::new(), CancellationToken::new());
        let (there, mark) = (ground.clone(), gone.clone());
        tasks.spawn_infrastructure("ground", |stop| async move {
            stop.cancelled().await;
            ground.cancel();
        });
        tasks.spawn("house", |stop| async move {
            stop.cancelled().await;
            // Everything that was told to stop has had its turn.
            for _ in 0..100 {
                tokio::task::yield_now().await;
            }
            assert!(!there.is_cancelled(), "the ground went first");
            mark.cancel();
        });
        assert!(tasks.drain(Duration::from_secs(5)).await);
        assert!(gone.is_cancelled());
    }

    #[tokio::test(start_paused = true)]
    async fn who_takes_long_hears_the_last_call() {
        let tasks = Tasks::default();
        let (begun, drain_deadline) = (Instant::now(), tasks.drain_deadline());
        tasks.spawn("slow", |_| async move { drain_deadline.cancelled().await });
        assert!(tasks.drain(Duration::from_secs(20)).await);
        assert_eq!(begun.elapsed().as_secs(), 18);
    }
}
