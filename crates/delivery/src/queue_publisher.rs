//! Publishes claimed deliveries to the work queues. Claims that come while the broker confirms others form the next
//! batch.
//!
//! If the broker does not accept a message, its claim is released, and the dispatcher gives up its leadership. When the
//! process stops, the claims that have begun are published first. If it dies, their leases expire.

use std::sync::Arc;

use messaging::{Message, Publisher};
use platform::chain;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::engine::Engine;
use crate::work_queues::{ClaimReceiver, ClaimedMessage};

/// Messages whose confirmations are awaited together.
const MAX_BATCH: usize = 500;

pub(crate) struct QueuePublisher {
    engine: Arc<Engine>,
    publisher: Publisher,
    claims: ClaimReceiver,
}

impl QueuePublisher {
    pub(crate) fn new(engine: Arc<Engine>, claims: ClaimReceiver) -> Self {
        let publisher = Publisher::new(engine.broker.publishing.clone());
        Self { engine, publisher, claims }
    }

    pub(crate) async fn run(mut self, stop: CancellationToken) {
        loop {
            let claimed = tokio::select! {
                claimed = self.claims.recv() => claimed,
                () = stop.cancelled() => {
                    // Those who have begun to claim keep the channel open.
                    self.engine.work_queues.close();
                    self.claims.recv().await
                }
            };
            let Some(mut batch) = claimed else { return };
            while batch.len() < MAX_BATCH
                && let Ok(more) = self.claims.try_recv()
            {
                batch.extend(more);
            }
            self.publish(batch).await;
        }
    }

    async fn publish(&self, batch: Vec<ClaimedMessage>) {
        let number = batch.len();
        let topology = &self.engine.broker.topology;
        let (ids, messages): (Vec<Uuid>, Vec<Message>) =
            batch.into_iter().map(|claimed| (claimed.id, claimed.into_message(topology))).unzip();
        let unpublished: Vec<_> = match self.publisher.publish(&messages).await {
            Ok(confirms) => {
                let confirms = ids.into_iter().zip(confirms);
                confirms.filter(|(_, confirm)| confirm.is_err()).map(|(id, _)| id).collect()
            }
            Err(error) => {
                tracing::warn!(error = chain(&error), "publishing deliveries failed");
                ids
            }
        };
        if !unpublished.is_empty() {
            let messages = unpublished.len();
            tracing::warn!(messages, "the broker did not accept {messages} deliveries");
            self.engine.work_queues.failed();
            self.engine.release_claims(&unpublished).await;
        }
        self.engine.work_queues.finished(number);
    }
}
