//! The interface between a consumer and the service that handles its events.

use std::any::Any;

use diesel_async::AsyncPgConnection;
use domain::event::Event;
use futures_util::future::{BoxFuture, FutureExt as _};
use platform::{ErrorKind, Failure, Timestamp};
use uuid::Uuid;

use crate::envelope::Envelope;

/// Handles the events of one type.
pub trait Handler: Send + Sync + 'static {
    type Event: Event;

    /// Upper bound of the prefetch count, for events of megabytes: all prefetched events are in
    /// memory.
    const MAX_PREFETCH: u16 = u16::MAX;

    /// A transaction takes no further event once the costs of its events reach this sum.
    const MAX_BATCH_COST: usize = usize::MAX;

    /// Ends when the handler has all that it needs. No event is consumed before.
    fn ready(&self) -> impl Future<Output = ()> + Send {
        std::future::ready(())
    }

    /// Cost of handling an event, in a unit of the handler's choice.
    fn cost(_: &Self::Event) -> usize {
        0
    }

    /// The type of the event whose queue takes an event that alone fails with [`ErrorKind::TooLarge`]. Its handler
    /// reads the same data.
    fn queue_for_large() -> Option<&'static str> {
        None
    }

    /// Handles events, in order, in the transaction that also inserts their ids into the inbox.
    fn handle(
        &self,
        conn: &mut AsyncPgConnection,
        events: &[&Envelope<Self::Event>],
    ) -> impl Future<Output = Result<(), HandleError>> + Send;

    /// Called after the commit, also with events that were handled before.
    fn after_commit(&self, _events: &[&Envelope<Self::Event>]) {}
}

/// Any failure of a handler.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct HandleError(pub(crate) Box<dyn Failure>);

impl<F: Failure> From<F> for HandleError {
    fn from(failure: F) -> Self {
        Self(Box::new(failure))
    }
}

#[derive(Debug, thiserror::Error)]
#[error("event {0} was read for another handler")]
struct ForeignEvent(Uuid);

impl Failure for ForeignEvent {
    fn kind(&self) -> ErrorKind {
        ErrorKind::Internal
    }
}

/// An event that a handler has read, with the attributes that a consumer uses.
pub(crate) struct ReadEvent {
    pub(crate) id: Uuid,
    pub(crate) subject: String,
    pub(crate) time: Timestamp,
    pub(crate) traceparent: Option<String>,
    pub(crate) cost: usize,
    /// An `Envelope<Handler::Event>`.
    envelope: Box<dyn Any + Send + Sync>,
}

impl ReadEvent {
    fn envelope<E: Event>(&self) -> Result<&Envelope<E>, ForeignEvent> {
        self.envelope.downcast_ref().ok_or(ForeignEvent(self.id))
    }
}

/// A [`Handler`] of any event type, so that the consumer is compiled once and not for each handler.
pub(crate) trait AnyHandler: Send + Sync {
    fn event_type(&self) -> &'static str;
    fn max_prefetch(&self) -> u16;
    fn ready(&self) -> BoxFuture<'_, ()>;
    fn max_batch_cost(&self) -> usize;
    fn queue_for_large(&self) -> Option<&'static str>;
    fn read(&self, body: &[u8]) -> serde_json::Result<ReadEvent>;
    fn handle<'a>(
        &'a self,
        conn: &'a mut AsyncPgConnection,
        events: &'a [&'a ReadEvent],
    ) -> BoxFuture<'a, Result<(), HandleError>>;
    fn after_commit(&self, events: &[&ReadEvent]) -> Result<(), HandleError>;
}

impl<H: Handler> AnyHandler for H {
    fn event_type(&self) -> &'static str {
        H::Event::TYPE
    }

    fn max_prefetch(&self) -> u16 {
        // RabbitMQ takes zero for "unlimited".
        const { assert!(H::MAX_PREFETCH > 0) };
        H::MAX_PREFETCH
    }

    fn ready(&self) -> BoxFuture<'_, ()> {
        Handler::ready(self).boxed()
    }

    fn max_batch_cost(&self) -> usize {
        H::MAX_BATCH_COST
    }

    fn queue_for_large(&self) -> Option<&'static str> {
        H::queue_for_large()
    }

    fn read(&self, body: &[u8]) -> serde_json::Result<ReadEvent> {
        let envelope: Envelope<H::Event> = serde_json::from_slice(body)?;
        Ok(ReadEvent {
            id: envelope.id,
            subject: envelope.subject.clone(),
            time: envelope.time,
            traceparent: envelope.traceparent.clone(),
            cost: H::cost(&envelope.data),
            envelope: Box::new(envelope),
        })
    }

    fn handle<'a>(
        &'a self,
        conn: &'a mut AsyncPgConnection,
        events: &'a [&'a ReadEvent],
    ) -> BoxFuture<'a, Result<(), HandleError>> {
        async move { Handler::handle(self, conn, &envelopes(events)?).await }.boxed()
    }

    fn after_commit(&self, events: &[&ReadEvent]) -> Result<(), HandleError> {
        Handler::after_commit(self, &envelopes(events)?);
        Ok(())
    }
}

fn envelopes<'a, E: Event>(events: &[&'a ReadEvent]) -> Result<Vec<&'a Envelope<E>>, ForeignEvent> {
    events.iter().map(|event| event.envelope()).collect()
}
