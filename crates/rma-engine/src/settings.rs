//! Typed settings. `default.toml` has the defaults.

use std::num::NonZeroU32;
use std::time::Duration;

use platform::{
    config::{
        self,
        range::{self, SECOND},
    },
    idempotency, identity, sealing, shopper_proof,
};
use serde::Deserialize;

/// In milliseconds, as all ranges of times.
const MAX_LATENCY: u64 = 10 * SECOND;

/// Settings of this service.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    pub(crate) broker: messaging::Settings,
    pub(crate) delivery: delivery::Settings,
    pub(crate) identity: identity::Settings,
    pub(crate) idempotency: idempotency::Settings,
    pub(crate) sealing: sealing::Settings,
    pub(crate) shopper: shopper_proof::Settings,
    pub(crate) lookups: Lookups,
    pub(crate) portal: Portal,
}

/// `[lookups]`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Lookups {
    pub(crate) order_failures_per_hour: NonZeroU32,
    pub(crate) address_failures_per_hour: NonZeroU32,
    #[serde(deserialize_with = "range::time::<0, MAX_LATENCY, _>")]
    pub(crate) min_failure_latency: Duration,
}

/// `[portal]`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Portal {
    #[serde(deserialize_with = "config::base_url")]
    pub(crate) public_url: String,
}

#[cfg(test)]
mod tests {
    use platform::Service as _;

    use super::*;
    use crate::App;

    #[test]
    fn unusable_settings_are_rejected() {
        for (name, value, expected) in [
            ("LOOKUPS__MIN_FAILURE_LATENCY", "1m", "must be a duration from 0s to 10s, not 1m"),
            ("PORTAL__PUBLIC_URL", "portal", "\"portal\" is not an http:// or https:// URL"),
        ] {
            let variables = [
                ("DATABASE__URL", "postgres://h/d"),
                ("BROKER__URL", "amqp://h"),
                ("IDENTITY__JWKS_URL", "https://auth.test/jwks.json"),
                ("IDENTITY__ISSUER", "https://auth.test"),
                ("SEALING__KEYS", testkit::sealing_keys()),
                ("SHOPPER__PROOF_KEYS", testkit::sealing_keys()),
                (name, value),
            ];
            let variables =
                variables.map(|(name, value)| (format!("RMA_ENGINE__{name}"), value.to_owned()));
            let loaded = config::load::<Settings>(App::NAME, App::DEFAULTS, None, variables.into());
            let faults = loaded.unwrap_err().to_string();
            let expected = format!("(RMA_ENGINE__{name}): {expected}");
            assert!(faults.starts_with("one setting of "), "{faults}");
            assert!(faults.contains(&expected), "{expected}: {faults}");
        }
    }
}
