//! Typed settings. `default.toml` has the defaults.

use std::num::NonZeroU32;
use std::time::Duration;

use platform::{
    config::{
        self,
        range::{self, CENTURY, HOUR, SECOND},
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
    pub(crate) portal: PortalSettings,
    pub(crate) deadlines: Deadlines,
    pub(crate) labels: Labels,
}

/// `[deadlines]`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Deadlines {
    #[serde(deserialize_with = "range::time::<10, HOUR, _>")]
    pub(crate) poll_interval: Duration,
}

/// `[labels]`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Labels {
    #[serde(deserialize_with = "range::time::<HOUR, CENTURY, _>")]
    pub(crate) document_retention: Duration,
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
pub(crate) struct PortalSettings {
    #[serde(deserialize_with = "config::base_url")]
    pub(crate) public_url: String,
}

#[cfg(test)]
mod tests {
    use testkit::check_setting_rejected;

    use crate::App;

    #[test]
    fn unusable_settings_are_rejected() {
        let keys = testkit::sealing_keys();
        let required = [("SEALING__KEYS", keys), ("SHOPPER__PROOF_KEYS", keys)];
        for (name, value, expected) in [
            ("LOOKUPS__MIN_FAILURE_LATENCY", "1m", "must be a duration from 0s to 10s, not 1m"),
            ("DEADLINES__POLL_INTERVAL", "0s", "must be a duration from 10ms to 1h, not 0s"),
            ("LABELS__DOCUMENT_RETENTION", "1m", "must be a duration from 1h to 100years, not 1m"),
            ("PORTAL__PUBLIC_URL", "portal", "\"portal\" is not an http:// or https:// URL"),
        ] {
            check_setting_rejected::<App>(&required, (name, value), expected);
        }
    }
}
