//! Failures of the relay.

use platform::database::DatabaseError;

use crate::{connection::BrokerError, publisher::NotQueued};

#[derive(Debug, thiserror::Error)]
pub(crate) enum RelayError {
    #[error("outbox query failed")]
    Database(#[from] DatabaseError),
    #[error("events could not be published")]
    Broker(#[from] BrokerError),
    #[error("{0} events are unroutable; the queues are declared again")]
    Unroutable(usize),
    #[error("the broker rejected {0} events")]
    Nacked(usize),
}

/// Fails unless the broker has every event in its queues.
pub(super) fn check_queued(outcomes: &[Result<(), NotQueued>]) -> Result<(), RelayError> {
    let count = |reason| outcomes.iter().filter(|outcome| **outcome == Err(reason)).count();
    match (count(NotQueued::Unroutable), count(NotQueued::Nacked)) {
        (0, 0) => Ok(()),
        (0, nacked) => Err(RelayError::Nacked(nacked)),
        (unroutable, _) => Err(RelayError::Unroutable(unroutable)),
    }
}
