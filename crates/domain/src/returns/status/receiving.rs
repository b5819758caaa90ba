//! The receiving status of a unit at our warehouse, for merchants with managed receiving.

use strum::VariantArray;

use super::transition::{Transition, TransitionError};

crate::words! {
    /// Whether a unit arrived at the warehouse.
    pub enum ReceivingStatus as "SCREAMING_SNAKE_CASE" {
        Pending,
        /// Receiving was closed before the unit arrived.
        NotReceived,
        Received,
    }
}

/// An event that concerns a unit at the warehouse.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, VariantArray)]
pub enum ReceivingEvent {
    Received,
    /// The unit arrived damaged.
    Damaged,
    /// The unit was not in its parcel; a later parcel may contain it.
    Short,
    /// Another item arrived in place of the unit, or the warehouse rejected the unit.
    Wrong,
    /// The receipt of the unit was a mistake.
    Undone,
    /// No further parcels are expected.
    Closed,
}

impl ReceivingStatus {
    /// `is_closed` says whether receiving of the return is closed.
    pub fn apply(self, event: ReceivingEvent, is_closed: bool) -> Transition<Self> {
        use ReceivingEvent::{Closed, Damaged, Received, Short, Undone, Wrong};
        match (self, event) {
            (Self::Pending | Self::NotReceived, Received | Damaged) => {
                Transition::Applied(Self::Received)
            }
            (Self::Pending, Short | Wrong) => Transition::Applied(Self::Pending),
            // A second inspection can find these after the receipt.
            (Self::Received, Damaged | Wrong) | (Self::NotReceived, Wrong) => {
                Transition::Applied(self)
            }
            (Self::Pending, Closed) => Transition::Applied(Self::NotReceived),
            (_, Undone) if is_closed => Transition::Refused(TransitionError::ReceivingClosed),
            (Self::Received, Undone) => Transition::Applied(Self::Pending),
            (Self::Pending | Self::NotReceived, Undone) => {
                Transition::Refused(TransitionError::NothingReceived)
            }
            (Self::NotReceived, Short | Closed) => Transition::Late,
            (Self::Received, Received | Short | Closed) => Transition::Late,
        }
    }
}
