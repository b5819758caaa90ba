//! Outcomes of attempts, and the decision that follows from each: delivered, retry or dead.
//!
//! A message is attempted at most `1 + retries` times. Nothing here reads a clock or draws random
//! numbers: the caller passes both in.
//!
//! See docs/decisions/delivery-outcomes.md.

mod retry_after;
mod schedule;
#[cfg(test)]
mod tests;

use chrono::{DateTime, TimeDelta, Utc};
use domain::labels::LabelRefusal;
use domain::message_kind::MessageKind;
use strum::{IntoStaticStr, VariantNames};

use crate::client::RequestError;
use crate::guard::GuardError;

pub use retry_after::{MAX_RETRY_AFTER, parse_retry_after};
pub use schedule::{Jitter, Schedule, ScheduleError};

/// Bounds [`Outcome::detail`], which may quote a merchant's server.
const MAX_DETAIL_BYTES: usize = 500;

/// How one HTTP request to a merchant ended.
#[derive(Clone, Debug, PartialEq, Eq, IntoStaticStr, VariantNames)]
#[strum(serialize_all = "snake_case")]
pub enum Outcome {
    Delivered {
        status: u16,
    },
    Unauthorized,
    Rejected {
        status: u16,
        retry_after: Option<DateTime<Utc>>,
    },
    Redirected {
        status: u16,
    },
    /// The merchant already has the exchange order that the message creates. It is retried like any other
    /// failure.
    AlreadyExists {
        retry_after: Option<DateTime<Utc>>,
    },
    /// The label provider cannot make the label, or cancel it, and says why. The message is delivered: another
    /// attempt would get the same response.
    LabelRefused,
    TimedOut,
    Unreachable(String),
    TlsFailed(String),
    AddressRefused(GuardError),
    /// The request succeeded, but the response is longer than the limit.
    ResponseTooLarge {
        status: u16,
    },
    /// The merchant's token server issued no token, so no request was made.
    TokenRefused(String),
}

/// State of a message after an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    Delivered,
    RetryAt(DateTime<Utc>),
    Dead,
}

/// Effect of an outcome on the endpoint's window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    Grow,
    Hold,
    Shrink,
}

/// Decides what follows from the outcome of attempt `number` (1 is the first).
pub fn decide(
    schedule: &Schedule,
    outcome: &Outcome,
    number: u32,
    now: DateTime<Utc>,
    jitter: Jitter,
) -> Decision {
    let retry_after = match outcome {
        Outcome::Delivered { .. } | Outcome::LabelRefused => return Decision::Delivered,
        Outcome::Rejected { retry_after, .. } | Outcome::AlreadyExists { retry_after } => {
            *retry_after
        }
        Outcome::Unauthorized
        | Outcome::Redirected { .. }
        | Outcome::TimedOut
        | Outcome::Unreachable(_)
        | Outcome::TlsFailed(_)
        | Outcome::AddressRefused(_)
        | Outcome::ResponseTooLarge { .. }
        | Outcome::TokenRefused(_) => None,
    };
    let Some(delay) = schedule.delay_after(number, jitter) else { return Decision::Dead };
    let delay = TimeDelta::from_std(delay).unwrap_or(TimeDelta::MAX);
    let scheduled_at = now.checked_add_signed(delay).unwrap_or(DateTime::<Utc>::MAX_UTC);
    // A longer `Retry-After` wins over the schedule.
    let requested_at = retry_after.map(|at| at.min(now + MAX_RETRY_AFTER));
    Decision::RetryAt(requested_at.map_or(scheduled_at, |at| at.max(scheduled_at)))
}

impl Outcome {
    /// Classifies a response by its status and its `Retry-After` header.
    pub fn from_status(status: u16, retry_after: Option<&str>, now: DateTime<Utc>) -> Self {
        match status {
            200..=299 => Self::Delivered { status },
            300..=399 => Self::Redirected { status },
            401 => Self::Unauthorized,
            _ => {
                let retry_after = retry_after.and_then(|value| parse_retry_after(value, now));
                Self::Rejected { status, retry_after }
            }
        }
    }

    /// Applies the meaning that a response has for one kind of message: after a conflict of an exchange order,
    /// the merchant has the order; with a reason, a label provider refuses.
    pub fn for_kind(self, kind: MessageKind, response: &[u8]) -> Self {
        match (kind, self) {
            (MessageKind::ExchangeOrder, Self::Rejected { status: 409, retry_after }) => {
                Self::AlreadyExists { retry_after }
            }
            (MessageKind::LabelRequest, Self::Rejected { status: 422, .. })
                if LabelRefusal::from_response(response).is_some() =>
            {
                Self::LabelRefused
            }
            (_, outcome) => outcome,
        }
    }

    /// One of [`OUTCOMES`](domain::delivery::OUTCOMES).
    pub fn name(&self) -> &'static str {
        self.into()
    }

    /// HTTP status code; `None` when there was no response.
    pub fn status(&self) -> Option<u16> {
        match self {
            Self::Delivered { status }
            | Self::Rejected { status, .. }
            | Self::Redirected { status }
            | Self::ResponseTooLarge { status } => Some(*status),
            Self::Unauthorized => Some(401),
            Self::AlreadyExists { .. } => Some(409),
            Self::LabelRefused => Some(422),
            Self::TimedOut
            | Self::Unreachable(_)
            | Self::TlsFailed(_)
            | Self::AddressRefused(_)
            | Self::TokenRefused(_) => None,
        }
    }

    /// Explanation for an operator. It is bounded because it becomes a header of the dead letter,
    /// and AMQP headers must fit into one frame.
    pub fn detail(&self) -> String {
        shorten(match self {
            Self::Delivered { status } => format!("accepted with status {status}"),
            Self::Unauthorized => {
                "responded with 401: the credentials or the signature were refused".to_owned()
            }
            Self::Rejected { status, .. } => format!("responded with {status}"),
            Self::Redirected { status } => {
                format!("responded with {status}: redirects are not followed")
            }
            Self::AlreadyExists { .. } => {
                "responded with 409: there is an exchange order for the original order".to_owned()
            }
            Self::LabelRefused => "responded with 422: no label is possible".to_owned(),
            Self::TimedOut => "no response within the timeout".to_owned(),
            Self::Unreachable(why) => format!("could not be reached: {why}"),
            Self::TlsFailed(why) => format!("TLS failed: {why}"),
            Self::AddressRefused(why) => why.to_string(),
            Self::ResponseTooLarge { status } => {
                format!("responded with {status} and a body that is too large")
            }
            Self::TokenRefused(why) => format!("no token: {why}"),
        })
    }

    /// A response that rejects one message says nothing about the endpoint; any other failure does.
    pub fn signal(&self) -> Signal {
        match self {
            Self::Delivered { .. } => Signal::Grow,
            Self::Rejected { status: 400 | 409 | 413 | 415 | 422, .. }
            | Self::AlreadyExists { .. }
            | Self::LabelRefused
            | Self::ResponseTooLarge { .. } => Signal::Hold,
            Self::Unauthorized
            | Self::Rejected { .. }
            | Self::Redirected { .. }
            | Self::TimedOut
            | Self::Unreachable(_)
            | Self::TlsFailed(_)
            | Self::AddressRefused(_)
            | Self::TokenRefused(_) => Signal::Shrink,
        }
    }
}

/// Cuts a text that a merchant's server may have written.
pub(crate) fn shorten(mut text: String) -> String {
    text.truncate(text.floor_char_boundary(MAX_DETAIL_BYTES));
    text
}

impl From<RequestError> for Outcome {
    fn from(error: RequestError) -> Self {
        match error {
            RequestError::TimedOut => Self::TimedOut,
            RequestError::AddressRefused(refused) => Self::AddressRefused(refused),
            RequestError::TlsFailed(why) => Self::TlsFailed(why),
            RequestError::Unreachable(why) => Self::Unreachable(why),
        }
    }
}
