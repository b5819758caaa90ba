//! What can go wrong.

use domain::json::{FieldError, ValidationError};
use platform::database::DatabaseError;
use platform::{ErrorKind, Failure};

#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error(transparent)]
    Invalid(#[from] ValidationError),
    #[error("there is no {what} {number}")]
    NoSuch { what: &'static str, number: String },
    #[error("a stored document cannot be read")]
    Document(#[from] serde_json::Error),
    #[error("database")]
    Database(#[from] DatabaseError),
}

impl Error {
    /// One field at fault.
    pub(crate) fn field(field: impl Into<String>, detail: impl Into<String>) -> Self {
        Self::Invalid(FieldError::invalid(field, detail).into())
    }
}

impl From<diesel::result::Error> for Error {
    fn from(error: diesel::result::Error) -> Self {
        DatabaseError::from(error).into()
    }
}

impl Failure for Error {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::Invalid(_) => ErrorKind::Invalid,
            Self::NoSuch { .. } => ErrorKind::Missing,
            Self::Document(_) => ErrorKind::Internal,
            Self::Database(error) => error.kind(),
        }
    }

    fn fields(&self) -> &[FieldError] {
        match self {
            Self::Invalid(invalid) => invalid.fields(),
            _ => &[],
        }
    }
}
