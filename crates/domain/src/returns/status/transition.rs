//! The result of applying an event to a state.

use serde::Serialize;

/// The result of applying an event to a state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transition<S> {
    /// The new state, which may equal the old one.
    Applied(S),
    /// The state is already at or past the one that the event leads to.
    Late,
    Refused(TransitionError),
}

/// Why an event is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, thiserror::Error)]
#[serde(rename_all = "snake_case")]
pub enum TransitionError {
    #[error("the return was canceled")]
    Canceled,
    #[error("the return waits for review")]
    InReview,
    #[error("the return does not wait for review")]
    NotInReview,
    #[error("the return was approved already")]
    Approved,
    #[error("the return was declined")]
    Declined,
    #[error("already refunded")]
    Refunded,
    #[error("the carrier already has the parcel")]
    Scanned,
    #[error("the warehouse already received some of its units")]
    Received,
    #[error("an exchange order for the unit was already placed or is in progress")]
    ExchangeInProgress,
    #[error("the shopper keeps the units of this return")]
    CustomerKeeps,
    #[error("the parcel has no tracking number")]
    NoTrackingNumber,
    #[error("no parcel of this return has that tracking number")]
    UnknownParcel,
    #[error("the merchant does not use managed receiving")]
    NotManaged,
    #[error("receiving of this return is closed")]
    ReceivingClosed,
    #[error("the unit was not received, so there is nothing to undo")]
    NothingReceived,
    #[error("the return has no such unit")]
    UnknownUnit,
    #[error("the unit is not exchanged")]
    NotExchanged,
    #[error("no exchange order was accepted for the unit")]
    NotGuaranteed,
}
