//! The errors of this service, each with its [`ErrorKind`].

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
        "the exchange order for order {order} is {state}: only an undeliverable one can be abandoned"
    )]
    NotUndeliverable { order: String, state: &'static str },
    #[error("the exchange order for order {0} is being replayed")]
    BeingReplayed(String),
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
            Self::Identifier(_) => ErrorKind::Malformed,
            Self::NoExchange(_) => ErrorKind::Missing,
            Self::NotUndeliverable { .. } | Self::BeingReplayed(_) => ErrorKind::Conflict,
            Self::Unplaceable { .. } => ErrorKind::Invalid,
            Self::Database(error) => error.kind(),
        }
    }
}
