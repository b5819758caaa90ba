//! What can go wrong here, and what it means to whoever asked.

use domain::exchange::{BadIdentifier, Unplaceable};
use platform::{Failure, Kind};

#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error(transparent)]
    Identifier(#[from] BadIdentifier),
    #[error("there is no exchange order for order {0}")]
    NoExchange(String),
    #[error("{0}")]
    BadQuery(String),
    #[error("return {rma} of order {order} cannot be exchanged: {cause}")]
    Unplaceable { rma: String, order: String, cause: Unplaceable },
}

impl Failure for Error {
    fn kind(&self) -> Kind {
        match self {
            Self::Identifier(_) | Self::BadQuery(_) => Kind::Malformed,
            Self::NoExchange(_) => Kind::Missing,
            Self::Unplaceable { .. } => Kind::Invalid,
        }
    }
}
