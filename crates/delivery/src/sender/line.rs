//! A sender's place at its work queue.

use std::time::Duration;

use domain::message_kind::MessageKind;
use futures_util::future::{BoxFuture, FutureExt};
use messaging::{BrokerError, Incoming, Subscription};

use crate::engine::Engine;

/// The place at the queue, or the wait for one.
pub(super) enum Line {
    Opening(BoxFuture<'static, Result<Subscription, BrokerError>>),
    Open(Box<Subscription>),
}

pub(super) enum Arrived {
    Subscribed(Box<Subscription>),
    Messages(Vec<Incoming>),
}

impl Line {
    /// Asks for a place after a pause.
    pub(super) fn open(engine: &Engine, kind: MessageKind, pause: Duration) -> Self {
        let link = engine.broker.consuming.clone();
        let queue = engine.broker.topology.qualified(kind.queue());
        let prefetch = engine.settings.prefetch.get();
        Self::Opening(
            async move {
                tokio::time::sleep(pause).await;
                Subscription::open(&link, &queue, prefetch).await
            }
            .boxed(),
        )
    }

    /// Cancel-safe: an opening goes on, and a message that was not returned is still there.
    pub(super) async fn next(&mut self, most: usize) -> Result<Arrived, BrokerError> {
        match self {
            Self::Opening(opening) => Ok(Arrived::Subscribed(Box::new(opening.await?))),
            Self::Open(subscription) => Ok(Arrived::Messages(subscription.next(most).await?)),
        }
    }
}
