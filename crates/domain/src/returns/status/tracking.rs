//! The tracking status of a parcel. Carrier reports arrive late, twice and out of order, so only
//! an event that leads past the current status is applied.

use strum::VariantArray as _;

use super::transition::{Transition, TransitionError};
use crate::returns::ReturnMethod;

crate::words! {
    /// The tracking status of a unit's parcel, absent until the carrier is involved. The variants are
    /// in the order in which they can follow each other.
    pub enum TrackingStatus as "SCREAMING_SNAKE_CASE" {
        /// The label exists.
        PreTransit,
        /// The shopper did not drop the parcel off in time, but still can.
        NotDroppedOff,
        /// The parcel was dropped off or picked up.
        Accepted,
        /// The carrier scanned the parcel in transit.
        Transit,
        /// The carrier reports a failure; the parcel may still arrive.
        Failure,
        /// The parcel arrived. Final.
        Delivered,
        /// The parcel went back to the shopper. Final.
        Returned,
    }
}

crate::words! {
    /// An event that a carrier reports about a parcel.
    pub enum TrackingEvent as "snake_case" {
        /// A label with a tracking number was created.
        Label,
        NotDroppedOff,
        /// The parcel was dropped off or picked up.
        Accepted,
        /// The carrier scanned the parcel in transit.
        InTransit,
        Failure,
        Delivered,
        Returned,
    }
}

impl TrackingEvent {
    pub const ALL: &'static [Self] = Self::VARIANTS;

    pub fn as_str(self) -> &'static str {
        self.into()
    }

    /// Whether the event proves that the carrier has or had the parcel. A failure does not: the
    /// parcel may never have been handed over.
    pub fn is_scan(self) -> bool {
        match self {
            Self::Label | Self::NotDroppedOff | Self::Failure => false,
            Self::Accepted | Self::InTransit | Self::Delivered | Self::Returned => true,
        }
    }

    /// The status that the event leads to.
    pub fn status(self) -> TrackingStatus {
        match self {
            Self::Label => TrackingStatus::PreTransit,
            Self::NotDroppedOff => TrackingStatus::NotDroppedOff,
            Self::Accepted => TrackingStatus::Accepted,
            Self::InTransit => TrackingStatus::Transit,
            Self::Failure => TrackingStatus::Failure,
            Self::Delivered => TrackingStatus::Delivered,
            Self::Returned => TrackingStatus::Returned,
        }
    }
}

impl TrackingStatus {
    /// Applies an event to the current status of a parcel.
    pub fn apply(
        current: Option<Self>,
        event: TrackingEvent,
        method: ReturnMethod,
    ) -> Transition<Self> {
        if method == ReturnMethod::CustomerKeep {
            return Transition::Refused(TransitionError::CustomerKeeps);
        }
        let next = event.status();
        match current {
            Some(Self::Delivered | Self::Returned) => Transition::Late,
            Some(current) if next <= current => Transition::Late,
            _ => Transition::Applied(next),
        }
    }
}
