//! The three state machines of a return: its status, and for each unit the parcel's and the
//! warehouse's. Every event in every state is applied, ignored as late, or refused.
//!
//! The invariant: nothing moves backwards. The one step that looks like it, undoing a receipt, is
//! a new step that a person takes, and only while receiving is open.

mod receiving;
mod tracking;

pub use receiving::{ReceivingEvent, ReceivingStatus};
pub use tracking::{TrackingEvent, TrackingStatus};

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::words::words;

/// What becomes of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step<S> {
    /// This is the state now; it may be the one it was.
    Applied(S),
    /// The state is already there or further.
    Late,
    Refused(Refusal),
}

/// Why an event is refused.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    Hash,
    PartialOrd,
    Ord,
    Serialize,
    Deserialize,
    ToSchema,
    thiserror::Error,
)]
#[serde(rename_all = "snake_case")]
pub enum Refusal {
    #[error("the return was canceled")]
    Canceled,
    #[error("it was already refunded")]
    Refunded,
    #[error("the carrier already has the parcel")]
    Scanned,
    #[error("the warehouse already received some of it")]
    Received,
    #[error("something was already ordered in exchange for it")]
    ExchangeUnderWay,
    #[error("the shopper keeps the units of this return")]
    CustomerKeeps,
    #[error("no tracking number is known for this parcel")]
    NoTrackingNumber,
    #[error("no parcel of this return has that tracking number")]
    UnknownParcel,
    #[error("we do not receive returns for this merchant")]
    NotManaged,
    #[error("the receiving of this return is closed")]
    ReceivingClosed,
    #[error("nothing was received that could be undone")]
    NothingReceived,
    #[error("the return has no such unit")]
    UnknownUnit,
    #[error("the unit is not exchanged")]
    NotExchanged,
}

/// Where a return stands.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, ToSchema,
)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
#[schema(as = RmaStatus)]
pub enum Status {
    Created,
    /// We closed the receiving before every unit was refunded.
    PartialRefund,
    /// Every unit is refunded.
    Refunded,
    /// It ended before anything came back.
    Canceled,
}

/// What can happen to a return as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StatusEvent {
    /// Refunds cover some units but not all.
    SomeRefunded,
    /// Refunds cover every unit.
    AllRefunded,
    /// The receiving was closed before refunds covered every unit.
    ReceivingClosed,
    /// Every unit was canceled.
    Canceled,
}

impl StatusEvent {
    pub const ALL: [Self; 4] =
        [Self::SomeRefunded, Self::AllRefunded, Self::ReceivingClosed, Self::Canceled];
}

impl Status {
    pub const ALL: [Self; 4] = [Self::Created, Self::PartialRefund, Self::Refunded, Self::Canceled];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Created => "CREATED",
            Self::PartialRefund => "PARTIAL_REFUND",
            Self::Refunded => "REFUNDED",
            Self::Canceled => "CANCELED",
        }
    }

    /// Whether refunds are still expected.
    pub fn is_open(self) -> bool {
        matches!(self, Self::Created | Self::PartialRefund)
    }

    pub fn step(self, event: StatusEvent) -> Step<Self> {
        use StatusEvent::{AllRefunded, Canceled, ReceivingClosed, SomeRefunded};
        match (self, event) {
            (Self::Created | Self::PartialRefund, SomeRefunded) => Step::Applied(self),
            (Self::Created | Self::PartialRefund, AllRefunded) => Step::Applied(Self::Refunded),
            (Self::Created, ReceivingClosed) => Step::Applied(Self::PartialRefund),
            (Self::Created, Canceled) => Step::Applied(Self::Canceled),
            (Self::PartialRefund, ReceivingClosed) => Step::Late,
            (Self::PartialRefund, Canceled) => Step::Refused(Refusal::ReceivingClosed),
            (Self::Refunded, SomeRefunded | AllRefunded | ReceivingClosed) => Step::Late,
            (Self::Refunded, Canceled) => Step::Refused(Refusal::Refunded),
            (Self::Canceled, Canceled) => Step::Late,
            (Self::Canceled, SomeRefunded | AllRefunded | ReceivingClosed) => {
                Step::Refused(Refusal::Canceled)
            }
        }
    }
}

words!(Status);
