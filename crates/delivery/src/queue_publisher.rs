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

use crate::engine::{Engine, reconnect_backoff};
use crate::work_queues::{ClaimReceiver, ClaimedMessage, Claims};

/// Messages whose confirmations are awaited together.
const MAX_BATCH: usize = 500;
/// Attempts to release claims, in about 20 seconds while the database is down. Then their leases expire.
const MAX_RELEASE_ATTEMPTS: usize = 10;

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
            let claims = tokio::select! {
                claims = self.claims.recv() => claims,
                () = stop.cancelled() => {
                    // Those who have begun to claim keep the channel open.
                    self.engine.work_queues.close();
                    self.claims.recv().await
                }
            };
            if claims.is_none() {
                return;
            }
            self.process_with_more(claims, &stop).await;
        }
    }

    /// Publishes and releases claims, with those that have come meanwhile.
    async fn process_with_more(&mut self, mut next: Option<Claims>, stop: &CancellationToken) {
        let mut batch = Vec::new();
        let mut released = Vec::new();
        while let Some(claims) = next {
            match claims {
                Claims::Publish(messages) => batch.extend(messages),
                Claims::Release(ids) => released.extend(ids),
            }
            next = if batch.len() < MAX_BATCH { self.claims.try_recv().ok() } else { None };
        }
        if !batch.is_empty() {
            self.publish(batch).await;
        }
        if !released.is_empty() {
            self.release(&released, stop).await;
        }
    }

    /// Releases the claims of transactions that failed. The database may have been the cause.
    async fn release(&self, ids: &[Uuid], stop: &CancellationToken) {
        let mut backoff = reconnect_backoff();
        for _ in 0..MAX_RELEASE_ATTEMPTS {
            if self.engine.release_claims(ids).await || stop.is_cancelled() {
                return;
            }
            tokio::time::sleep(backoff.pause()).await;
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
            self.engine.direct_claims.withdraw_all();
            self.engine.work_queues.failed();
            self.engine.release_claims(&unpublished).await;
        }
        self.engine.work_queues.finished(number);
    }
}
