//! The words and tones of states. All pages take them from here.

use api::{
    delivery::{self, DeliveryView, ReplayState, ReplayView},
    exchange,
};
use domain::endpoint_state::EndpointState;

use crate::{
    listing::words,
    markup::{Markup, badge},
};

/// A state, or a record in a state, as pages show it.
pub(crate) trait Shown {
    /// The class of the badge; empty for a state that is neither good nor bad.
    fn tone(&self) -> &'static str;

    fn words(&self) -> String;

    fn badge(&self) -> Markup {
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

    fn words(&self) -> String {
        self.state.to_string()
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

    fn words(&self) -> String {
        self.state.to_string()
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

    fn words(&self) -> String {
        words(self)
    }
}
