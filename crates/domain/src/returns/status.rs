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
        /// The return waits for review by the merchant.
        Requested,
        Created,
        /// Receiving was closed before every unit was refunded.
        PartialRefund,
        /// Every unit is refunded.
        Refunded,
        /// The return was canceled before any unit came back.
        Canceled,
        /// The merchant declined the return in its review.
        Declined,
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
    /// The return was approved in its review.
    Approved,
    /// The return was declined in its review.
    Declined,
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
        use StatusEvent::{
            AllRefunded, Approved, Canceled, Declined, ReceivingClosed, Reopened, SomeRefunded,
        };
        match (self, event) {
            (Self::Requested, Approved) => Transition::Applied(Self::Created),
            (Self::Requested, Declined) => Transition::Applied(Self::Declined),
            (Self::Requested | Self::Created, Canceled) => Transition::Applied(Self::Canceled),
            (Self::Requested, SomeRefunded | AllRefunded | ReceivingClosed | Reopened) => {
                Transition::Refused(TransitionError::InReview)
            }
            (Self::Created | Self::PartialRefund | Self::Refunded, Approved | Declined) => {
                Transition::Refused(TransitionError::NotInReview)
            }
            (Self::Created | Self::PartialRefund, SomeRefunded) => Transition::Applied(self),
            (Self::Created | Self::PartialRefund, AllRefunded) => {
                Transition::Applied(Self::Refunded)
            }
            (Self::Created, ReceivingClosed) => Transition::Applied(Self::PartialRefund),
            (Self::PartialRefund, ReceivingClosed) => Transition::Late,
            (Self::PartialRefund, Canceled | Reopened) => {
                Transition::Refused(TransitionError::ReceivingClosed)
            }
            (Self::Refunded, SomeRefunded | AllRefunded | ReceivingClosed) => Transition::Late,
            (Self::Refunded, Canceled | Reopened) => Transition::Refused(TransitionError::Refunded),
            (Self::Canceled, Canceled) => Transition::Late,
            (Self::Created | Self::Canceled, Reopened) => Transition::Applied(Self::Created),
            (
                Self::Canceled,
                SomeRefunded | AllRefunded | ReceivingClosed | Approved | Declined,
            ) => Transition::Refused(TransitionError::Canceled),
            (Self::Declined, _) => Transition::Refused(TransitionError::Declined),
        }
    }
}
