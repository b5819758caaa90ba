//! The reason why a publication was not stored.

use std::sync::Arc;

use domain::json::{FieldError, ValidationError};
use domain::order::OrderOutcome;
use platform::database::{DatabaseError, lock_timed_out, timed_out};
use platform::{ErrorKind, Failure};

use crate::store::WriteError;

/// The outcome of each order of a publication, or the reason why none was stored.
pub(crate) type PublishResult = Result<Vec<OrderOutcome>, PublishError>;

/// The reason why a publication was not stored.
#[derive(Debug, Clone, thiserror::Error)]
pub(crate) enum PublishError {
    #[error(transparent)]
    Refunds(ValidationError),
    #[error("orders could not be stored: {0}")]
    Database(#[source] Arc<DatabaseError>),
    #[error("other requests keep changing the same orders")]
    Contended,
}

impl From<WriteError> for PublishError {
    fn from(error: WriteError) -> Self {
        match error {
            WriteError::Database(error) => Self::Database(Arc::new(error)),
            WriteError::Conflict => Self::Contended,
        }
    }
}

impl Failure for PublishError {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::Refunds(_) => ErrorKind::Invalid,
            Self::Database(error) => error.kind(),
            Self::Contended => ErrorKind::Limited,
        }
    }

    fn fields(&self) -> &[FieldError] {
        match self {
            Self::Refunds(invalid) => invalid.fields(),
            _ => &[],
        }
    }
}

/// Whether publications of the batch could succeed one by one.
pub(super) fn may_affect_one_write(error: &WriteError) -> bool {
    match error {
        WriteError::Conflict => true,
        WriteError::Database(failure) => failure.kind() == ErrorKind::Internal || is_timeout(error),
    }
}

pub(super) fn is_timeout(error: &WriteError) -> bool {
    matches!(error, WriteError::Database(error) if timed_out(error) || lock_timed_out(error))
}
