//! The errors of this service, each with its [`ErrorKind`].

use domain::exchange::{InvalidVariantIdentifier, Unplaceable, VariantIdentifier};
use platform::database::DatabaseError;
use platform::{ErrorKind, Failure};

use crate::variant_cache::{Reason, Unavailable};

#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error(transparent)]
    Identifier(#[from] InvalidVariantIdentifier),
    #[error("the merchant's variants of product {0} are not available: {detail}", detail = .1.detail)]
    Variants(VariantIdentifier, Unavailable),
    #[error("there is no exchange order for order {0}")]
    NoExchange(String),
    #[error(
        "the exchange order for order {order} is {state}: only an undeliverable one can be abandoned"
    )]
    NotUndeliverable { order: String, state: &'static str },
    #[error("the exchange order for order {order} was abandoned already by {by} with another note")]
    AlreadyAbandoned { order: String, by: String },
    #[error("the exchange order for order {0} is being replayed")]
    BeingReplayed(String),
    #[error("return {rma} of order {order} cannot be exchanged: {cause}")]
    Unplaceable { rma: String, order: String, cause: Unplaceable },
    #[error(transparent)]
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
            Self::Variants(_, none) => match none.reason {
                Reason::Busy => ErrorKind::Limited,
                Reason::TimedOut => ErrorKind::Unavailable,
                _ => ErrorKind::BadGateway,
            },
            Self::NoExchange(_) => ErrorKind::Missing,
            Self::NotUndeliverable { .. }
            | Self::AlreadyAbandoned { .. }
            | Self::BeingReplayed(_) => ErrorKind::Conflict,
            Self::Unplaceable { .. } => ErrorKind::Invalid,
            Self::Database(error) => error.kind(),
        }
    }
    fn code(&self) -> Option<&'static str> {
        match self {
            Self::Variants(_, none) => Some(none.reason.as_str()),
            _ => None,
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
