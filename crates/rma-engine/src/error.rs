//! What can go wrong, and what kind of trouble it is.

use domain::json::{FieldError, ValidationError};
use domain::returns::TransitionError;
use platform::database::DatabaseError;
use platform::{ErrorKind, Failure};

use crate::returns::ReturnConflict;

#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error("there is no order {0}")]
    NoOrder(String),
    #[error("there is no return {0}")]
    NoReturn(String),
    #[error("no return travels under the tracking number {0}")]
    NoParcel(String),
    #[error(transparent)]
    Invalid(#[from] ValidationError),
    #[error("{0}")]
    Malformed(&'static str),
    #[error("this needs a token of the merchant's own, or an operator's")]
    StaffOnly,
    #[error("{}", .0.message)]
    Conflict(Box<ReturnConflict>),
    #[error("one of the units is in another return already")]
    UnitHeld,
    #[error("return {0}: {1}")]
    Refused(String, TransitionError),
    /// Someone else was faster; the same again finds what they did.
    #[error("someone else stored one of these orders at the same time")]
    Raced,
    /// One by one they are taken.
    #[error("these orders have too much on their ledgers to be taken together")]
    TooHeavy,
    #[error("a stored {0} cannot be read")]
    Damaged(&'static str),
    #[error("an answer cannot be written")]
    Unwritable(#[from] serde_json::Error),
    #[error("database")]
    Database(#[from] DatabaseError),
}

impl From<diesel::result::Error> for Error {
    fn from(error: diesel::result::Error) -> Self {
        DatabaseError::from(error).into()
    }
}

impl Failure for Error {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::NoOrder(_) | Self::NoReturn(_) | Self::NoParcel(_) => ErrorKind::Missing,
            Self::Invalid(_) => ErrorKind::Invalid,
            Self::Malformed(_) => ErrorKind::Malformed,
            Self::StaffOnly => ErrorKind::Denied,
            Self::Conflict(_) | Self::UnitHeld | Self::Refused(..) => ErrorKind::Conflict,
            Self::Raced => ErrorKind::Unavailable,
            Self::TooHeavy => ErrorKind::TooLarge,
            Self::Damaged(_) | Self::Unwritable(_) => ErrorKind::Internal,
            Self::Database(error) => error.kind(),
        }
    }

    fn fields(&self) -> &[FieldError] {
        match self {
            Self::Invalid(invalid) => &invalid.errors,
            _ => &[],
        }
    }
}
