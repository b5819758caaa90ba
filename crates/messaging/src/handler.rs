//! The interface between a consumer and the service that handles its events.

use diesel_async::AsyncPgConnection;
use domain::event::Event;
use platform::Failure;

use crate::envelope::Envelope;

/// Handles the events of one type.
pub trait Handler: Send + Sync + 'static {
    type Event: Event;

    /// Upper bound of the prefetch count, for events of megabytes: all prefetched events are in
    /// memory.
    const MAX_PREFETCH: u16 = u16::MAX;

    /// A transaction takes no further event once the costs of its events reach this sum.
    const MAX_BATCH_COST: usize = usize::MAX;

    /// Cost of handling an event, in a unit of the handler's choice.
    fn cost(_: &Self::Event) -> usize {
        0
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
