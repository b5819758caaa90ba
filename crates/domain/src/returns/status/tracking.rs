//! Where a parcel is, by what its carrier reports. Reports come late, twice and out of order: only
//! what is further along than what is known is applied.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{Transition, TransitionError};
use crate::returns::{ReturnMethod, words::words};

/// The status of a unit's parcel; none until the carrier is involved. In the order in which they
/// can follow each other.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, ToSchema,
)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum TrackingStatus {
    /// There is a label.
    PreTransit,
    /// The shopper did not hand it over in time; they still may.
    NotDroppedOff,
    /// It was dropped off or picked up.
    Accepted,
    /// The carrier scanned it on its way.
    Transit,
    /// The carrier reports a failure; the parcel may still turn up.
    Failure,
    /// It arrived. Final.
    Delivered,
    /// It went back to the shopper. Final.
    Returned,
}

/// What a carrier can report of a parcel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum TrackingEvent {
    /// There is a tracking number and a label.
    Label,
    NotDroppedOff,
    /// Drop-off or pick-up.
    Accepted,
    /// A scan on the way.
    InTransit,
    Failure,
    Delivered,
    Returned,
}

impl TrackingEvent {
    pub const ALL: [Self; 7] = [
        Self::Label,
        Self::NotDroppedOff,
        Self::Accepted,
        Self::InTransit,
        Self::Failure,
        Self::Delivered,
        Self::Returned,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Label => "label",
            Self::NotDroppedOff => "not_dropped_off",
            Self::Accepted => "accepted",
            Self::InTransit => "in_transit",
            Self::Failure => "failure",
            Self::Delivered => "delivered",
            Self::Returned => "returned",
        }
    }

    /// Whether the carrier must have the parcel, or have had it. What failed may never have come.
    pub fn is_scan(self) -> bool {
        match self {
            Self::Label | Self::NotDroppedOff | Self::Failure => false,
            Self::Accepted | Self::InTransit | Self::Delivered | Self::Returned => true,
        }
    }

    /// The status it leads to.
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
    pub const ALL: [Self; 7] = [
        Self::PreTransit,
        Self::NotDroppedOff,
        Self::Accepted,
        Self::Transit,
        Self::Failure,
        Self::Delivered,
        Self::Returned,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::PreTransit => "PRE_TRANSIT",
            Self::NotDroppedOff => "NOT_DROPPED_OFF",
            Self::Accepted => "ACCEPTED",
            Self::Transit => "TRANSIT",
            Self::Failure => "FAILURE",
            Self::Delivered => "DELIVERED",
            Self::Returned => "RETURNED",
        }
    }

    /// What becomes of an event for a parcel in the given state.
    pub fn step(now: Option<Self>, event: TrackingEvent, method: ReturnMethod) -> Transition<Self> {
        if method == ReturnMethod::CustomerKeep {
            return Transition::Refused(TransitionError::CustomerKeeps);
        }
        let next = event.status();
        match now {
            Some(Self::Delivered | Self::Returned) => Transition::Late,
            Some(now) if next <= now => Transition::Late,
            _ => Transition::Applied(next),
        }
    }
}

words!(TrackingStatus, TrackingEvent);
