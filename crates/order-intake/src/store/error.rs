//! Errors of queries.

use platform::database::DatabaseError;

/// The reason why a batch was not written.
#[derive(Debug, thiserror::Error)]
pub(crate) enum WriteError {
    #[error(transparent)]
    Database(#[from] DatabaseError),
    #[error("another writer changed these orders or refunds")]
    Conflict,
}

impl From<diesel::result::Error> for WriteError {
    fn from(error: diesel::result::Error) -> Self {
        Self::Database(error.into())
    }
}

/// The error of a column whose value cannot be read.
pub(super) fn unreadable<E: std::error::Error + Send + Sync + 'static>(
    error: E,
) -> diesel::result::Error {
    diesel::result::Error::DeserializationError(error.into())
}
