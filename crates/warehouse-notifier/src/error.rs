//! The errors of this service, each with its [`ErrorKind`].

use domain::json::{FieldError, ValidationError};
use platform::batching::SubmitError;
use platform::database::DatabaseError;
use platform::{ErrorKind, Failure};

#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error(transparent)]
    Invalid(#[from] ValidationError),
    #[error("there is no {resource} {number}")]
    NotFound { resource: &'static str, number: String },
    #[error("query: {0}")]
    Query(&'static str),
    /// A retry finds the key of the other transaction.
    #[error("another transaction stored the same Idempotency-Key at the same time")]
    ConcurrentInsert,
    #[error("JSON conversion failed")]
    Json(#[from] serde_json::Error),
    #[error(transparent)]
    Submit(#[from] SubmitError),
    #[error(transparent)]
    Database(#[from] DatabaseError),
}

impl Error {
    /// An error about one field of the request.
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
            Self::NotFound { .. } => ErrorKind::Missing,
            Self::Query(_) => ErrorKind::Malformed,
            Self::ConcurrentInsert => ErrorKind::Unavailable,
            Self::Json(_) => ErrorKind::Internal,
            Self::Submit(error) => error.kind(),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_of_the_database_names_the_limit() {
        testkit::check_database_refusals::<Error>();
    }
}
