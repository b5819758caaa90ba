//! Attempts of a sender that run or wait to be settled.

use std::collections::HashMap;
use std::sync::Arc;

use tokio::task::{JoinError, JoinSet};
use tokio::time::Instant;
use uuid::Uuid;

use super::run_attempt::run_attempt;
use crate::engine::Engine;
use crate::queue_message::{AttemptKey, QueueMessage};
use crate::settlement::Settlement;

#[derive(Default)]
pub(super) struct Attempts {
    running: JoinSet<Settlement>,
    /// Attempts that are not settled yet. A duplicate of one of them is dropped.
    unsettled: HashMap<AttemptKey, tokio::task::Id>,
}

impl Attempts {
    /// Starts an attempt. Returns its time of start, or `None` if it is in flight already.
    pub(super) fn start(&mut self, engine: &Arc<Engine>, message: QueueMessage) -> Option<Instant> {
        let key = message.key();
        if self.unsettled.contains_key(&key) {
            return None;
        }
        let engine = engine.clone();
        let started = Instant::now();
        let task = self.running.spawn(async move { run_attempt(&engine, message).await }).id();
        self.unsettled.insert(key, task);
        Some(started)
    }

    pub(super) fn are_running(&self) -> bool {
        !self.running.is_empty()
    }

    /// Waits for an attempt to complete, and returns it with all others that are completed by now.
    /// `None` if no attempt is running. Cancel-safe.
    pub(super) async fn completed(&mut self) -> Option<Vec<Settlement>> {
        let first = self.running.join_next().await?;
        let mut completed: Vec<_> = self.complete(first).into_iter().collect();
        while let Some(result) = self.running.try_join_next() {
            completed.extend(self.complete(result));
        }
        Some(completed)
    }

    fn complete(&mut self, result: Result<Settlement, JoinError>) -> Option<Settlement> {
        match result {
            Ok(settlement) => Some(settlement),
            // The message is not settled: it is sent again when its lease expires.
            Err(error) => {
                tracing::error!(%error, "attempt aborted");
                self.unsettled.retain(|_, task| *task != error.id());
                None
            }
        }
    }

    pub(super) fn settled(&mut self, key: AttemptKey) {
        self.unsettled.remove(&key);
    }

    /// Aborts the running attempts. Returns those that completed first, and the ids of the others.
    pub(super) async fn abort(&mut self) -> (Vec<Settlement>, Vec<Uuid>) {
        let mut completed = Vec::new();
        let mut aborted = Vec::new();
        self.running.abort_all();
        while let Some(result) = self.running.join_next().await {
            match result {
                Ok(settlement) => completed.push(settlement),
                Err(error) => {
                    let mut unsettled = self.unsettled.iter();
                    let found = unsettled.find(|(_, task)| **task == error.id());
                    aborted.extend(found.map(|((id, ..), _)| *id));
                }
            }
        }
        (completed, aborted)
    }
}
