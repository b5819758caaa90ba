//! What can go wrong here, and what it means to whoever asked.

use domain::exchange::{InvalidVariantIdentifier, Unplaceable};
use platform::database::DatabaseError;
use platform::{ErrorKind, Failure};

#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error(transparent)]
    Identifier(#[from] InvalidVariantIdentifier),
    #[error("there is no exchange order for order {0}")]
    NoExchange(String),
    #[error(
        "the exchange order for order {order} is {state}: only an undeliverable one can be ended"
    )]
    NotUndeliverable { order: String, state: &'static str },
    #[error("the exchange order for order {0} is being sent again")]
    SentAgain(String),
    #[error("{0}")]
    BadQuery(String),
    #[error("return {rma} of order {order} cannot be exchanged: {cause}")]
    Unplaceable { rma: String, order: String, cause: Unplaceable },
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
            Self::Identifier(_) | Self::BadQuery(_) => ErrorKind::Malformed,
            Self::NoExchange(_) => ErrorKind::Missing,
            Self::NotUndeliverable { .. } | Self::SentAgain(_) => ErrorKind::Conflict,
            Self::Unplaceable { .. } => ErrorKind::Invalid,
            Self::Database(error) => error.kind(),
        }
    }
}
