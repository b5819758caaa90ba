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
pub enum Transition<S> {
    /// This is the state now; it may be the one it was.
    Applied(S),
    /// The state is already there or further.
    Late,
    Refused(TransitionError),
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
pub enum TransitionError {
    #[error("the return was canceled")]
    Canceled,
    #[error("it was already refunded")]
    Refunded,
    #[error("the carrier already has the parcel")]
    Scanned,
    #[error("the warehouse already received some of it")]
    Received,
    #[error("something was already ordered in exchange for it")]
    ExchangeInProgress,
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
pub enum RmaStatus {
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

impl RmaStatus {
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

    pub fn step(self, event: StatusEvent) -> Transition<Self> {
        use StatusEvent::{AllRefunded, Canceled, ReceivingClosed, SomeRefunded};
        match (self, event) {
            (Self::Created | Self::PartialRefund, SomeRefunded) => Transition::Applied(self),
            (Self::Created | Self::PartialRefund, AllRefunded) => {
                Transition::Applied(Self::Refunded)
            }
            (Self::Created, ReceivingClosed) => Transition::Applied(Self::PartialRefund),
            (Self::Created, Canceled) => Transition::Applied(Self::Canceled),
            (Self::PartialRefund, ReceivingClosed) => Transition::Late,
            (Self::PartialRefund, Canceled) => {
                Transition::Refused(TransitionError::ReceivingClosed)
            }
            (Self::Refunded, SomeRefunded | AllRefunded | ReceivingClosed) => Transition::Late,
            (Self::Refunded, Canceled) => Transition::Refused(TransitionError::Refunded),
            (Self::Canceled, Canceled) => Transition::Late,
            (Self::Canceled, SomeRefunded | AllRefunded | ReceivingClosed) => {
                Transition::Refused(TransitionError::Canceled)
            }
        }
    }
}

words!(RmaStatus);
