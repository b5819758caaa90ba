//! Why there is nothing to offer.

use delivery::outcome::Outcome;
use serde::Serialize;
use utoipa::ToSchema;

use super::breaker::Refused;

/// The merchant did not say what there is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Unavailable {
    pub(crate) reason: Reason,
    /// For people.
    pub(crate) detail: String,
}

/// Why not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Reason {
    /// The merchant has no address for this, or one that cannot be used.
    NotConfigured,
    /// An operator paused the endpoint.
    Paused,
    /// The merchant failed too often and is left alone for a while.
    Resting,
    /// Too many questions to this merchant are under way.
    Busy,
    TimedOut,
    Unreachable,
    /// The merchant did not let us in.
    Unauthorized,
    /// The merchant does not know the product.
    NotFound,
    /// The merchant answered with another error, or with a redirect.
    Rejected,
    AnswerInvalid,
    AnswerTooLarge,
}

impl Reason {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::NotConfigured => "not_configured",
            Self::Paused => "paused",
            Self::Resting => "resting",
            Self::Busy => "busy",
            Self::TimedOut => "timed_out",
            Self::Unreachable => "unreachable",
            Self::Unauthorized => "unauthorized",
            Self::NotFound => "not_found",
            Self::Rejected => "rejected",
            Self::AnswerInvalid => "answer_invalid",
            Self::AnswerTooLarge => "answer_too_large",
        }
    }
}

impl Unavailable {
    pub(crate) fn new(reason: Reason, detail: impl Into<String>) -> Self {
        Self { reason, detail: detail.into() }
    }
}

impl From<Outcome> for Unavailable {
    fn from(outcome: Outcome) -> Self {
        let reason = match &outcome {
            Outcome::TimedOut => Reason::TimedOut,
            Outcome::Unreachable(_) | Outcome::TlsFailed(_) | Outcome::AddressRefused(_) => {
                Reason::Unreachable
            }
            Outcome::Unauthorized
            | Outcome::TokenRefused(_)
            | Outcome::Rejected { status: 403, .. } => Reason::Unauthorized,
            Outcome::Rejected { status: 404, .. } => Reason::NotFound,
            Outcome::ResponseTooLarge { .. } => Reason::AnswerTooLarge,
            Outcome::Delivered { .. }
            | Outcome::Rejected { .. }
            | Outcome::Redirected { .. }
            | Outcome::Gone => Reason::Rejected,
        };
        Self::new(reason, outcome.detail())
    }
}

impl From<Refused> for Unavailable {
    fn from(refused: Refused) -> Self {
        let reason = match refused {
            Refused::Resting => Reason::Resting,
            Refused::Busy => Reason::Busy,
        };
        Self::new(reason, refused.to_string())
    }
}
