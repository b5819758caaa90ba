//! The words and tones of states. All pages take them from here.

use std::fmt::Display;

use api::{
    delivery::{self, DeliveryView, ReplayState, ReplayView},
    exchange,
};
use domain::{
    endpoint_state::EndpointState,
    returns::{
        ExchangeStatus, GuaranteeState, ReceivingStatus, RmaStatus, TrackingStatus, WorkList,
    },
    warehouse::AsnStatus,
};

use crate::{
    markup::{Markup, badge},
    record_list::words,
};

/// A state, or a record in a state, as pages show it.
pub(crate) trait Shown {
    /// The class of the badge; empty for a state that is neither good nor bad.
    fn tone(&self) -> &'static str;

    /// The words of a state are its name in the API.
    fn words(&self) -> String
    where
        Self: Display,
    {
        words(self)
    }

    fn badge(&self) -> Markup
    where
        Self: Display,
    {
        badge(self.tone(), self.words())
    }
}

impl Shown for DeliveryView {
    fn tone(&self) -> &'static str {
        match self.state {
            delivery::State::Delivered => "good",
            delivery::State::Dead => "bad",
            delivery::State::Pending if self.attempt_count.unwrap_or(0) > 0 => "warn",
            delivery::State::Pending => "info",
        }
    }
}

impl Shown for ReplayView {
    fn tone(&self) -> &'static str {
        match self.state {
            ReplayState::Finished if self.failed == 0 => "good",
            ReplayState::Running => "info",
            ReplayState::Finished | ReplayState::Paused | ReplayState::Stopped => "warn",
        }
    }
}

impl Shown for EndpointState {
    fn tone(&self) -> &'static str {
        match self {
            Self::Ok => "good",
            Self::NotTried => "info",
            Self::Paused => "warn",
            Self::Failing => "bad",
        }
    }

    fn words(&self) -> String {
        (*self).words().to_owned()
    }
}

impl Shown for exchange::State {
    fn tone(&self) -> &'static str {
        match self {
            Self::Placed => "good",
            Self::Undeliverable | Self::AlreadyExists | Self::Unreadable => "bad",
            Self::Waiting | Self::Sending => "info",
            Self::Abandoned | Self::AlreadyExchanged | Self::NotExchangeable => "warn",
        }
    }
}

impl Shown for RmaStatus {
    fn tone(&self) -> &'static str {
        match self {
            Self::Refunded => "good",
            Self::PartialRefund | Self::Requested => "warn",
            Self::Created => "info",
            Self::Canceled | Self::Declined => "",
        }
    }
}

impl Shown for WorkList {
    fn tone(&self) -> &'static str {
        match self {
            Self::ToReview | Self::ToRefund => "warn",
            Self::OnItsWay => "info",
            Self::NotSent | Self::Done => "",
        }
    }
}

impl Shown for ExchangeStatus {
    fn tone(&self) -> &'static str {
        match self {
            Self::Placed => "good",
            Self::Undeliverable => "bad",
            Self::Failed => "warn",
            Self::Pending => "info",
        }
    }
}

impl Shown for GuaranteeState {
    fn tone(&self) -> &'static str {
        match self {
            Self::Met => "good",
            Self::Due => "bad",
            Self::Waived => "warn",
            Self::Open => "info",
        }
    }
}

impl Shown for TrackingStatus {
    fn tone(&self) -> &'static str {
        match self {
            Self::Delivered => "good",
            Self::Failure | Self::Returned | Self::NotDroppedOff => "warn",
            Self::PreTransit | Self::Accepted | Self::Transit => "info",
        }
    }
}

impl Shown for ReceivingStatus {
    fn tone(&self) -> &'static str {
        if *self == Self::Received { "good" } else { "info" }
    }
}

/// The tone of the status of a stored order.
pub(crate) fn order_tone(status: &str) -> &'static str {
    if status == "Cancelled" { "warn" } else { "info" }
}

impl Shown for AsnStatus {
    fn tone(&self) -> &'static str {
        match self {
            Self::Delivered => "good",
            Self::Canceled => "warn",
            Self::Pending | Self::Shipped => "info",
        }
    }
}
