//! The states of an endpoint, with their names and words for the API, the command line, metrics and pages.

use strum::VariantNames as _;

crate::words! {
    /// State of an endpoint.
    #[derive(strum::VariantNames)]
    pub enum EndpointState as "snake_case" {
        /// The endpoint delivered a message, and has not failed since.
        Ok,
        /// The endpoint has had no attempt.
        NotTried,
        /// Since the last success the endpoint failed or a message was given up, or no attempt has succeeded.
        Failing,
        /// Paused; messages wait.
        Paused,
    }
}

impl EndpointState {
    /// All names, see [`EndpointState::name`].
    pub const NAMES: &'static [&'static str] = Self::VARIANTS;

    /// The name in the API, on the command line and in metrics.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// The state on pages.
    pub fn words(self) -> &'static str {
        match self {
            Self::NotTried => "not tried yet",
            Self::Ok | Self::Failing | Self::Paused => self.name(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::EndpointState;

    #[test]
    fn every_state_has_one_name() {
        assert_eq!(EndpointState::NAMES, ["ok", "not_tried", "failing", "paused"]);
        for name in EndpointState::NAMES {
            let state: EndpointState = name.parse().unwrap();
            assert_eq!(serde_json::to_value(state).unwrap(), *name);
            assert_eq!(state.to_string(), *name);
        }
    }
}
