//! Reasons that a variant lookup returns no variants.

use delivery::outcome::Outcome;
use serde::Serialize;
use strum::IntoStaticStr;
use utoipa::ToSchema;

use super::breaker::BreakerError;

/// A lookup that returned no variants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Unavailable {
    pub(crate) reason: Reason,
    /// Readable form of the reason.
    pub(crate) detail: String,
}

/// Reason that there are no variants.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema, IntoStaticStr)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub(crate) enum Reason {
    /// The merchant has no usable URL for variants.
    NotConfigured,
    /// An operator paused the endpoint.
    Paused,
    /// The circuit breaker is open: the last requests to the merchant failed.
    Unavailable,
    /// Too many requests to this merchant are in flight.
    Busy,
    TimedOut,
    Unreachable,
    /// The merchant rejected the credentials.
    Unauthorized,
    /// The merchant does not know the product.
    NotFound,
    /// The merchant responded with another error or with a redirect.
    Rejected,
    InvalidResponse,
    ResponseTooLarge,
}

impl Reason {
    pub(crate) fn as_str(self) -> &'static str {
        self.into()
    }
}

impl Unavailable {
    /// Whether the merchant was asked and responded, or cannot be asked by its settings. Otherwise the
    /// caller waited for a server that was not reached in time.
    pub(crate) fn is_known(&self) -> bool {
        !matches!(
            self.reason,
            Reason::Unavailable | Reason::Busy | Reason::TimedOut | Reason::Unreachable
        )
    }

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
            Outcome::ResponseTooLarge { .. } => Reason::ResponseTooLarge,
            Outcome::Delivered { .. }
            | Outcome::Rejected { .. }
            | Outcome::Redirected { .. }
            | Outcome::AlreadyExists { .. }
            | Outcome::LabelRefused => Reason::Rejected,
        };
        Self::new(reason, outcome.detail())
    }
}

impl From<BreakerError> for Unavailable {
    fn from(refused: BreakerError) -> Self {
        let reason = match refused {
            BreakerError::Open => Reason::Unavailable,
            BreakerError::Busy => Reason::Busy,
        };
        Self::new(reason, refused.to_string())
    }
}
