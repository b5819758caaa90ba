//! Source of a sender's messages: the subscription to its work queue, its acknowledgements and the
//! memory budget.

use std::sync::Arc;
use std::time::Duration;

use domain::message_kind::MessageKind;
use futures_util::future::{BoxFuture, FutureExt};
use messaging::{BrokerError, Incoming, Subscription};
use platform::{MemoryPermit, chain, retry::Backoff};
use tokio::time::Instant;

use crate::ack_tracker::AckTracker;
use crate::awaiting_memory::MessagesAwaitingMemory;
use crate::engine::{Engine, reconnect_backoff};
use crate::queue_message::{DeliveryTag, QueueMessage};

pub(super) struct QueueSource {
    engine: Arc<Engine>,
    kind: MessageKind,
    state: ConsumerState,
    /// Subscriptions so far. Delivery tags are valid only for the latest one.
    subscriptions: u64,
    waiting: MessagesAwaitingMemory,
    acks: AckTracker,
    reconnect_backoff: Backoff,
}

enum ConsumerState {
    Subscribing(BoxFuture<'static, Result<Subscription, BrokerError>>),
    Subscribed(Box<Subscription>),
}

impl QueueSource {
    /// Subscribes to the work queue of a kind.
    pub(super) fn open(engine: Arc<Engine>, kind: MessageKind) -> Self {
        Self {
            state: ConsumerState::subscribing(&engine, kind, Duration::ZERO),
            subscriptions: 0,
            waiting: MessagesAwaitingMemory::new(engine.inflight_budget.clone()),
            acks: AckTracker::new(engine.settings.prefetch.get()),
            reconnect_backoff: reconnect_backoff(),
            engine,
            kind,
        }
    }

    /// Subscribes again after an error. Messages that were not taken return to the queue.
    pub(super) fn reconnect(&mut self, error: &BrokerError) {
        let queue = self.kind.queue();
        tracing::warn!(queue, error = chain(error), "subscription lost, reconnecting");
        let delay = self.reconnect_backoff.pause();
        self.state = ConsumerState::subscribing(&self.engine, self.kind, delay);
        self.waiting = MessagesAwaitingMemory::new(self.engine.inflight_budget.clone());
    }

    /// Waits for the subscription, then for messages and the memory to send them. Receives nothing
    /// more while messages wait for memory. Cancel-safe.
    pub(super) async fn next(
        &mut self,
        max: usize,
    ) -> Result<Vec<(Incoming, MemoryPermit)>, BrokerError> {
        if let ConsumerState::Subscribing(subscribing) = &mut self.state {
            self.state = ConsumerState::Subscribed(Box::new(subscribing.await?));
            self.subscriptions += 1;
            self.acks = AckTracker::new(self.engine.settings.prefetch.get());
            self.reconnect_backoff.reset();
        }
        if let ConsumerState::Subscribed(subscription) = &mut self.state
            && self.waiting.is_empty()
        {
            self.waiting.push(subscription.next(max).await?);
        }
        Ok(self.waiting.admit(max).await)
    }

    /// Parses messages; invalid ones are dead-lettered.
    pub(super) async fn parse(
        &mut self,
        batch: Vec<(Incoming, MemoryPermit)>,
    ) -> Result<Vec<QueueMessage>, BrokerError> {
        let now = self.engine.clock.now();
        let lease = self.engine.settings.lease;
        let mut messages = Vec::with_capacity(batch.len());
        for (incoming, permit) in batch {
            let tag = incoming.delivery_tag;
            self.acks.received(tag);
            match QueueMessage::parse(self.kind, incoming, self.subscriptions, lease, now) {
                Ok(message) => messages.push(QueueMessage { permit: Some(permit), ..message }),
                Err(error) => {
                    let queue = self.kind.queue();
                    tracing::error!(queue, %error, "invalid message, dead-lettered");
                    if let ConsumerState::Subscribed(subscription) = &self.state {
                        subscription.dead_letter(tag).await?;
                        self.acks.rejected(tag);
                    }
                }
            }
        }
        Ok(messages)
    }

    pub(super) async fn requeue(&mut self, tags: &[u64]) -> Result<(), BrokerError> {
        if let ConsumerState::Subscribed(subscription) = &self.state {
            for tag in tags {
                subscription.requeue(*tag).await?;
                self.acks.rejected(*tag);
            }
        }
        Ok(())
    }

    pub(super) fn started(&mut self, tag: DeliveryTag, at: Instant) {
        self.acks.started(tag.tag, at);
    }

    /// Lets a settled message be acknowledged, if this subscription delivered it.
    pub(super) fn settled(&mut self, tag: DeliveryTag) {
        if tag.subscription == self.subscriptions {
            self.acks.settled(tag.tag);
        }
    }

    /// Whether the broker waits for the acknowledgement of a message.
    pub(super) fn awaits_acknowledgement(&self) -> bool {
        self.acks.is_awaited()
    }

    /// Acknowledges the messages that are due.
    pub(super) async fn acknowledge(&mut self) -> Result<(), BrokerError> {
        let due = self.acks.due(Instant::now());
        self.acknowledge_up_to(due).await
    }

    /// Acknowledges the messages that are due, if they are enough for a group.
    pub(super) async fn acknowledge_group(&mut self) -> Result<(), BrokerError> {
        let due = self.acks.due_group(Instant::now());
        self.acknowledge_up_to(due).await
    }

    async fn acknowledge_up_to(&mut self, tag: Option<u64>) -> Result<(), BrokerError> {
        let ConsumerState::Subscribed(subscription) = &self.state else { return Ok(()) };
        match tag {
            Some(tag) => subscription.ack_up_to(tag).await,
            None => Ok(()),
        }
    }

    /// Acknowledges all messages, settled or not. Returns whether that succeeded.
    pub(super) async fn acknowledge_all(&mut self) -> bool {
        self.acks.release_all();
        matches!(self.state, ConsumerState::Subscribed(_)) && self.acknowledge().await.is_ok()
    }

    /// Ends the subscription and returns the messages that were not taken to the queue.
    pub(super) async fn cancel(&mut self) -> Result<(), BrokerError> {
        let ConsumerState::Subscribed(subscription) = &mut self.state else { return Ok(()) };
        subscription.cancel().await?;
        for message in self.waiting.take_all() {
            subscription.requeue(message.delivery_tag).await?;
        }
        Ok(())
    }
}

impl ConsumerState {
    /// Subscribes after a delay.
    fn subscribing(engine: &Engine, kind: MessageKind, delay: Duration) -> Self {
        let connection = engine.broker.consuming.clone();
        let queue = engine.broker.topology.qualified(kind.queue());
        let prefetch = engine.settings.prefetch.get();
        let subscribing = async move {
            tokio::time::sleep(delay).await;
            Subscription::open(&connection, &queue, prefetch).await
        };
        Self::Subscribing(subscribing.boxed())
    }
}
