//! Source of a sender's messages: the subscription to its work queue, and the memory budget.

use std::time::Duration;

use domain::message_kind::MessageKind;
use futures_util::future::{BoxFuture, FutureExt};
use messaging::{BrokerError, Incoming, Subscription};
use tokio::sync::OwnedSemaphorePermit;

use super::inflight_budget::WaitingMessages;
use crate::engine::Engine;

pub(super) struct QueueSource {
    state: State,
    waiting: WaitingMessages,
}

enum State {
    Opening(BoxFuture<'static, Result<Subscription, BrokerError>>),
    Open(Box<Subscription>),
}

pub(super) enum SourceEvent {
    Subscribed,
    Messages(Vec<(Incoming, OwnedSemaphorePermit)>),
}

impl QueueSource {
    /// Subscribes after a delay.
    pub(super) fn open(engine: &Engine, kind: MessageKind, delay: Duration) -> Self {
        let connection = engine.broker.consuming.clone();
        let queue = engine.broker.topology.qualified(kind.queue());
        let prefetch = engine.settings.prefetch.get();
        let opening = async move {
            tokio::time::sleep(delay).await;
            Subscription::open(&connection, &queue, prefetch).await
        };
        let waiting = WaitingMessages::new(engine.inflight_budget.clone());
        Self { state: State::Opening(opening.boxed()), waiting }
    }

    /// Waits for the subscription, or for messages and the memory to send them. Receives nothing
    /// more while messages wait for memory. Cancel-safe.
    pub(super) async fn next(&mut self, max: usize) -> Result<SourceEvent, BrokerError> {
        match &mut self.state {
            State::Opening(opening) => {
                self.state = State::Open(Box::new(opening.await?));
                return Ok(SourceEvent::Subscribed);
            }
            State::Open(subscription) if self.waiting.is_empty() => {
                self.waiting.push(subscription.next(max).await?);
            }
            State::Open(_) => {}
        }
        Ok(SourceEvent::Messages(self.waiting.admit(max).await))
    }

    pub(super) fn subscription(&self) -> Option<&Subscription> {
        match &self.state {
            State::Opening(_) => None,
            State::Open(subscription) => Some(subscription),
        }
    }

    /// Ends the subscription and returns the messages that were not taken to the queue.
    pub(super) async fn cancel(&mut self) -> Result<(), BrokerError> {
        let State::Open(subscription) = &mut self.state else { return Ok(()) };
        subscription.cancel().await?;
        for message in self.waiting.take_all() {
            subscription.requeue(message.delivery_tag).await?;
        }
        Ok(())
    }
}
