//! What can go wrong, and what kind of trouble it is.

use domain::returns::Refusal;
use platform::database::DatabaseError;
use platform::{Failure, Kind};

#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error("there is no order {0}")]
    NoOrder(String),
    #[error("there is no return {0}")]
    NoReturn(String),
    /// Someone else was faster; the same again finds what they did.
    #[error("someone else stored one of these orders at the same time")]
    Raced,
    #[error("return {0}: {1}")]
    Refused(String, Refusal),
    #[error("a stored {0} cannot be read")]
    Damaged(&'static str),
    #[error("database")]
    Database(#[from] DatabaseError),
}

impl From<diesel::result::Error> for Error {
    fn from(error: diesel::result::Error) -> Self {
        DatabaseError::from(error).into()
    }
}

impl Failure for Error {
    fn kind(&self) -> Kind {
        match self {
            Self::NoOrder(_) | Self::NoReturn(_) => Kind::Missing,
            Self::Refused(..) => Kind::Conflict,
            Self::Damaged(_) => Kind::Internal,
            Self::Raced => Kind::Unavailable,
            Self::Database(error) => error.kind(),
        }
    }
}
