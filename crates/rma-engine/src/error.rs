//! Errors of the service and their kinds.

use std::time::Duration;

use domain::json::{FieldError, ValidationError};
use domain::returns::TransitionError;
use platform::batching::SubmitError;
use platform::database::DatabaseError;
use platform::sealing::SealError;
use platform::{ErrorKind, Failure};
use uuid::Uuid;

use crate::quotes::AssessmentError;
use crate::quotes::conflict::ReturnConflict;
use crate::store::return_rows::InsertError;

/// A request for a preview takes about as long.
const PREVIEW_RETRY: Duration = Duration::from_secs(3);

#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error("there is no order {0}")]
    NoOrder(String),
    #[error("there is no return {0}")]
    NoReturn(String),
    #[error("no return has the tracking number {0}")]
    NoParcel(String),
    #[error("there is no discrepancy {0}")]
    NoDiscrepancy(i64),
    #[error("there is no deep link {0}")]
    NoDeepLink(Uuid),
    #[error("discrepancy {0} was resolved already by {1} with another note")]
    AlreadyResolved(i64, String),
    #[error("refund {0} does not wait for a return")]
    RefundMatched(String),
    #[error(transparent)]
    Invalid(#[from] ValidationError),
    #[error("{0}")]
    Malformed(&'static str),
    #[error("this needs a token of the merchant or of an operator")]
    PortalRefused,
    #[error("{}", .0.message)]
    Conflict(Box<ReturnConflict>),
    /// One message for all failures, so that a caller learns nothing about the order.
    #[error("no order matches these details")]
    LookupFailed,
    #[error("too many look-ups of this order, or from this address, failed within an hour")]
    TooManyLookups(Duration),
    #[error("the merchant has another preview in progress")]
    PreviewInProgress,
    #[error("there is no portal {0}")]
    NoPortal(String),
    #[error("this installation sends no mails")]
    NoMails,
    #[error("the merchant has no address for replies: set mails.reply_to first")]
    NoReplyAddress,
    #[error("one of the units is in another return already")]
    UnitHeld,
    #[error("return {0}: {1}")]
    Refused(String, TransitionError),
    /// A retry finds the row of the other transaction.
    #[error("another transaction stored one of these orders at the same time")]
    ConcurrentInsert,
    /// A retry locks its orders first.
    #[error("return {0} expired at the same time")]
    ExpiredMeanwhile(String),
    /// The consumer then handles the events one by one, and moves an event that alone is too large to the queue for
    /// bulk.
    #[error("the units or returns of these orders are too large for one batch")]
    BatchTooLarge,
    /// A case that the code rules out.
    #[error("internal error: {0}")]
    Internal(String),
    #[error("sealing")]
    Seal(#[from] SealError),
    #[error("the response cannot be serialized")]
    Serialize(#[from] serde_json::Error),
    #[error(transparent)]
    Submit(#[from] SubmitError),
    #[error(transparent)]
    Database(#[from] DatabaseError),
}

impl From<AssessmentError> for Error {
    fn from(error: AssessmentError) -> Self {
        match error {
            AssessmentError::Invalid(invalid) => Self::Invalid(invalid),
            missing @ AssessmentError::NoAddress { .. } => Self::Internal(missing.to_string()),
        }
    }
}

impl From<InsertError> for Error {
    fn from(error: InsertError) -> Self {
        match error {
            InsertError::UnitHeld => Self::UnitHeld,
            InsertError::Database(error) => error.into(),
        }
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
            Self::NoOrder(_)
            | Self::NoReturn(_)
            | Self::NoParcel(_)
            | Self::NoDiscrepancy(_)
            | Self::NoDeepLink(_)
            | Self::NoPortal(_)
            | Self::LookupFailed => ErrorKind::Missing,
            Self::TooManyLookups(_) | Self::PreviewInProgress => ErrorKind::Limited,
            Self::Invalid(_) => ErrorKind::Invalid,
            Self::Malformed(_) => ErrorKind::Malformed,
            Self::PortalRefused => ErrorKind::Denied,
            Self::Conflict(_)
            | Self::UnitHeld
            | Self::AlreadyResolved(..)
            | Self::RefundMatched(_)
            | Self::NoMails
            | Self::NoReplyAddress
            | Self::Refused(..) => ErrorKind::Conflict,
            Self::ConcurrentInsert | Self::ExpiredMeanwhile(_) => ErrorKind::Unavailable,
            Self::BatchTooLarge => ErrorKind::TooLarge,
            Self::Internal(_) | Self::Seal(_) | Self::Serialize(_) => ErrorKind::Internal,
            Self::Submit(error) => error.kind(),
            Self::Database(error) => error.kind(),
        }
    }

    fn fields(&self) -> &[FieldError] {
        match self {
            Self::Invalid(invalid) => &invalid.errors,
            _ => &[],
        }
    }

    fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::TooManyLookups(wait) => Some(*wait),
            Self::PreviewInProgress => Some(PREVIEW_RETRY),
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
