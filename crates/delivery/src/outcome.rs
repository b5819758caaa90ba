//! What an attempt came to, and what follows from it: one table.
//!
//! The invariant: a message is delivered, retried at a known time or dead, and after at most
//! `1 + retries` counted attempts it is no longer retried. Nothing here reads a clock or rolls
//! dice; both come in.

mod retry_after;
mod schedule;
#[cfg(test)]
mod tests;

use chrono::{DateTime, TimeDelta, Utc};

use crate::client::Fault;
use crate::guard::Refused;

pub use retry_after::{LONGEST, parse_retry_after};
pub use schedule::{BadSchedule, Jitter, Schedule};

/// The longest sentence for an operator, in bytes: a merchant's server may have written most of it.
const LONGEST_DETAIL: usize = 500;

/// What came of one attempt to deliver a message.
#[derive(Clone, Debug, PartialEq, Eq)]
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
    Gone,
    TimedOut,
    Unreachable(String),
    TlsFailed(String),
    AddressRefused(Refused),
    /// The message was accepted, but the answer we need is longer than we read.
    AnswerTooLarge {
        status: u16,
    },
    /// No request was made: the merchant's token server gave us no token.
    TokenRefused(String),
}

/// What happens to the message next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    Delivered,
    Retry {
        at: DateTime<Utc>,
    },
    Dead,
    /// The endpoint asked never to be called again: nothing further is queued for it.
    DeadAndPause,
    /// Get a token that is newer than the one refused and try at once; not counted.
    RefreshToken,
}

/// What the endpoint's window learns from an outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    Grow,
    Hold,
    Shrink,
}

/// Whether a 401 can still be answered with a new token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenRefresh {
    /// The endpoint takes tokens and none was renewed for this attempt yet.
    Possible,
    /// This attempt already runs with a renewed token, or the endpoint takes none.
    Spent,
}

/// The facts a decision rests on, beside the outcome itself.
#[derive(Clone, Copy, Debug)]
pub struct Attempt {
    /// 1 for the first try.
    pub number: u32,
    pub renewal: TokenRefresh,
    pub now: DateTime<Utc>,
    pub roll: Jitter,
}

/// The table: outcome × attempt → what follows.
pub fn decide(schedule: &Schedule, outcome: &Outcome, attempt: Attempt) -> Step {
    match outcome {
        Outcome::Delivered { .. } => Step::Delivered,
        Outcome::Unauthorized if attempt.renewal == TokenRefresh::Possible => Step::RefreshToken,
        Outcome::Gone => Step::DeadAndPause,
        Outcome::Rejected { retry_after, .. } => retry(schedule, attempt, *retry_after),
        Outcome::Unauthorized
        | Outcome::Redirected { .. }
        | Outcome::TimedOut
        | Outcome::Unreachable(_)
        | Outcome::TlsFailed(_)
        | Outcome::AddressRefused(_)
        | Outcome::AnswerTooLarge { .. }
        | Outcome::TokenRefused(_) => retry(schedule, attempt, None),
    }
}

/// A longer `Retry-After` wins over the schedule, up to [`LONGEST`].
fn retry(schedule: &Schedule, attempt: Attempt, retry_after: Option<DateTime<Utc>>) -> Step {
    let Some(delay) = schedule.delay_after(attempt.number, attempt.roll) else {
        return Step::Dead;
    };
    let delay = TimeDelta::from_std(delay).unwrap_or(TimeDelta::MAX);
    let scheduled = attempt.now.checked_add_signed(delay).unwrap_or(DateTime::<Utc>::MAX_UTC);
    let asked = retry_after.map(|at| at.min(attempt.now + LONGEST));
    Step::Retry { at: asked.map_or(scheduled, |asked| asked.max(scheduled)) }
}

impl Outcome {
    /// Reads an answer's status line; `retry_after` is the header's value.
    pub fn of_status(status: u16, retry_after: Option<&str>, now: DateTime<Utc>) -> Self {
        match status {
            200..=299 => Self::Delivered { status },
            300..=399 => Self::Redirected { status },
            401 => Self::Unauthorized,
            410 => Self::Gone,
            _ => {
                let retry_after = retry_after.and_then(|value| parse_retry_after(value, now));
                Self::Rejected { status, retry_after }
            }
        }
    }

    /// The name used in the attempt log, in metrics and in reports.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Delivered { .. } => "delivered",
            Self::Unauthorized => "unauthorized",
            Self::Rejected { .. } => "rejected",
            Self::Redirected { .. } => "redirected",
            Self::Gone => "gone",
            Self::TimedOut => "timed_out",
            Self::Unreachable(_) => "unreachable",
            Self::TlsFailed(_) => "tls_failed",
            Self::AddressRefused(_) => "address_refused",
            Self::AnswerTooLarge { .. } => "answer_too_large",
            Self::TokenRefused(_) => "token_refused",
        }
    }

    /// The endpoint's status code, when it got as far as answering.
    pub fn status(&self) -> Option<u16> {
        match self {
            Self::Delivered { status }
            | Self::Rejected { status, .. }
            | Self::Redirected { status }
            | Self::AnswerTooLarge { status } => Some(*status),
            Self::Unauthorized => Some(401),
            Self::Gone => Some(410),
            Self::TimedOut
            | Self::Unreachable(_)
            | Self::TlsFailed(_)
            | Self::AddressRefused(_)
            | Self::TokenRefused(_) => None,
        }
    }

    /// A sentence for an operator, of 500 bytes at the most: it becomes a header of a dead
    /// letter, and all headers together must fit into one frame.
    pub fn detail(&self) -> String {
        brief(match self {
            Self::Delivered { status } => format!("accepted with status {status}"),
            Self::Unauthorized => "answered 401: the credentials were refused".to_owned(),
            Self::Rejected { status, .. } => format!("answered {status}"),
            Self::Redirected { status } => {
                format!("answered {status}: redirects are not followed")
            }
            Self::Gone => "answered 410: the endpoint is gone".to_owned(),
            Self::TimedOut => "no answer within the deadline".to_owned(),
            Self::Unreachable(why) => format!("could not be reached: {why}"),
            Self::TlsFailed(why) => format!("TLS failed: {why}"),
            Self::AddressRefused(why) => why.to_string(),
            Self::AnswerTooLarge { status } => {
                format!("answered {status} with more than is read of an answer")
            }
            Self::TokenRefused(why) => format!("no token: {why}"),
        })
    }

    /// A prompt no to one message says nothing about the next; every other failure does.
    pub fn signal(&self) -> Signal {
        match self {
            Self::Delivered { .. } => Signal::Grow,
            Self::Rejected { status: 400 | 409 | 413 | 415 | 422, .. }
            | Self::AnswerTooLarge { .. } => Signal::Hold,
            Self::Unauthorized
            | Self::Rejected { .. }
            | Self::Redirected { .. }
            | Self::Gone
            | Self::TimedOut
            | Self::Unreachable(_)
            | Self::TlsFailed(_)
            | Self::AddressRefused(_)
            | Self::TokenRefused(_) => Signal::Shrink,
        }
    }
}

/// As much of a text as an operator reads.
pub(crate) fn brief(mut text: String) -> String {
    text.truncate(text.floor_char_boundary(LONGEST_DETAIL));
    text
}

impl From<Fault> for Outcome {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::TimedOut => Self::TimedOut,
            Fault::AddressRefused(refused) => Self::AddressRefused(refused),
            Fault::TlsFailed(why) => Self::TlsFailed(why),
            Fault::Unreachable(why) => Self::Unreachable(why),
        }
    }
}
