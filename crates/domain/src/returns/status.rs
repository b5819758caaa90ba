//! The state machines of a return: its status, and per unit the parcel's tracking status and the
//! warehouse's receiving status. Every event in every state is applied, ignored as late, or
//! refused.
//!
//! No state moves backwards, except that staff can undo a receipt while receiving is open, and that a late scan
//! re-opens an expired return.

mod guarantee;
mod receiving;
mod tracking;
mod transition;

pub use guarantee::GuaranteeState;
pub use receiving::{ReceivingEvent, ReceivingStatus};
pub use tracking::{TrackingEvent, TrackingStatus};
pub use transition::{Transition, TransitionError};

use strum::VariantArray;

crate::words! {
    /// The status of a return.
    pub enum RmaStatus as "SCREAMING_SNAKE_CASE" {
        Created,
        /// Receiving was closed before every unit was refunded.
        PartialRefund,
        /// Every unit is refunded.
        Refunded,
        /// The return was canceled before any unit came back.
        Canceled,
    }
}

/// An event that concerns the return as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq, VariantArray)]
pub enum StatusEvent {
    /// Refunds cover some units but not all.
    SomeRefunded,
    /// Refunds cover every unit.
    AllRefunded,
    /// Receiving was closed before refunds covered every unit.
    ReceivingClosed,
    /// Every unit was canceled.
    Canceled,
    /// Units that expired are part of the return again.
    Reopened,
}

impl RmaStatus {
    pub const ALL: &'static [Self] = Self::VARIANTS;

    pub fn as_str(self) -> &'static str {
        self.into()
    }

    /// Whether refunds are still expected.
    pub fn is_open(self) -> bool {
        matches!(self, Self::Created | Self::PartialRefund)
    }

    pub fn apply(self, event: StatusEvent) -> Transition<Self> {
        use StatusEvent::{AllRefunded, Canceled, ReceivingClosed, Reopened, SomeRefunded};
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
            (Self::Created | Self::Canceled, Reopened) => Transition::Applied(Self::Created),
            (Self::PartialRefund, Reopened) => {
                Transition::Refused(TransitionError::ReceivingClosed)
            }
            (Self::Refunded, Reopened) => Transition::Refused(TransitionError::Refunded),
            (Self::Canceled, SomeRefunded | AllRefunded | ReceivingClosed) => {
                Transition::Refused(TransitionError::Canceled)
            }
        }
    }
}
