//! Whether a unit arrived at our warehouse, where we receive for the merchant.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{Transition, TransitionError};
use crate::returns::words::words;

/// Whether a unit arrived.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, ToSchema,
)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum ReceivingStatus {
    Pending,
    /// Receiving was closed without it.
    NotReceived,
    Received,
}

/// What can happen to a unit at the warehouse.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ReceivingEvent {
    Received,
    /// It arrived, damaged.
    Damaged,
    /// It was not in its parcel; another one may bring it.
    Short,
    /// Something else arrived in its place, or it was not taken.
    Wrong,
    /// Its receipt was a mistake.
    Undone,
    /// Nothing more is expected.
    Closed,
}

impl ReceivingEvent {
    pub const ALL: [Self; 6] =
        [Self::Received, Self::Damaged, Self::Short, Self::Wrong, Self::Undone, Self::Closed];
}

impl ReceivingStatus {
    pub const ALL: [Self; 3] = [Self::Pending, Self::NotReceived, Self::Received];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "PENDING",
            Self::NotReceived => "NOT_RECEIVED",
            Self::Received => "RECEIVED",
        }
    }

    /// What becomes of an event for a unit in this state. `closed` says whether the receiving of
    /// its return is closed.
    pub fn step(self, event: ReceivingEvent, closed: bool) -> Transition<Self> {
        use ReceivingEvent::{Closed, Damaged, Received, Short, Undone, Wrong};
        match (self, event) {
            (Self::Pending | Self::NotReceived, Received | Damaged) => {
                Transition::Applied(Self::Received)
            }
            (Self::Pending, Short | Wrong) => Transition::Applied(Self::Pending),
            // Found at a second look.
            (Self::Received, Damaged | Wrong) | (Self::NotReceived, Wrong) => {
                Transition::Applied(self)
            }
            (Self::Pending, Closed) => Transition::Applied(Self::NotReceived),
            (_, Undone) if closed => Transition::Refused(TransitionError::ReceivingClosed),
            (Self::Received, Undone) => Transition::Applied(Self::Pending),
            (Self::Pending | Self::NotReceived, Undone) => {
                Transition::Refused(TransitionError::NothingReceived)
            }
            (Self::NotReceived, Short | Closed) => Transition::Late,
            (Self::Received, Received | Short | Closed) => Transition::Late,
        }
    }
}

words!(ReceivingStatus);
