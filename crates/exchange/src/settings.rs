//! Typed settings. `default.toml` has the defaults.

use std::num::NonZeroU32;
use std::time::Duration;

use platform::{
    config::range::{self, DAY, GIB, HOUR, MINUTE, SECOND, TIB},
    idempotency, identity, sealing, shopper_proof,
};
use serde::Deserialize;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    pub(crate) broker: messaging::Settings,
    pub(crate) identity: identity::Settings,
    pub(crate) sealing: sealing::Settings,
    pub(crate) shopper: shopper_proof::Settings,
    pub(crate) delivery: delivery::Settings,
    pub(crate) idempotency: idempotency::Settings,
    pub(crate) variants: Variants,
    pub(crate) placing: Placing,
}

/// `[variants]`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Variants {
    // A lookup keeps 100 ms of this time for itself.
    #[serde(deserialize_with = "range::time::<200, MINUTE, _>")]
    pub(crate) timeout: Duration,
    #[serde(deserialize_with = "range::time::<0, DAY, _>")]
    pub(crate) cache_ttl: Duration,
    #[serde(rename = "cache_size", deserialize_with = "range::size::<0, TIB, _, _>")]
    pub(crate) cache_max_bytes: u64,
    #[serde(rename = "max_response", deserialize_with = "range::size::<1_000, GIB, _, _>")]
    pub(crate) max_response_bytes: usize,
    #[serde(deserialize_with = "range::number::<1, 100_000, _, _>")]
    pub(crate) max_concurrency: u32,
    pub(crate) breaker_threshold: NonZeroU32,
    #[serde(deserialize_with = "range::time::<100, DAY, _>")]
    pub(crate) breaker_open_for: Duration,
}

/// `[placing]`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Placing {
    #[serde(deserialize_with = "range::time::<10, HOUR, _>")]
    pub(crate) poll_interval: Duration,
    pub(crate) max_concurrency: NonZeroU32,
    #[serde(deserialize_with = "range::time::<SECOND, DAY, _>")]
    pub(crate) lease: Duration,
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
            ("VARIANTS__TIMEOUT", "0s", "must be a duration from 200ms to 1m, not 0s"),
            ("VARIANTS__CACHE_TTL", "2days", "must be a duration from 0s to 1day, not 2days"),
            ("VARIANTS__MAX_RESPONSE", "0", "must be a size from 1000 B to 1.0 GiB, not 0 B"),
            ("VARIANTS__MAX_CONCURRENCY", "0", "must be a whole number from 1 to 100000, not 0"),
            ("VARIANTS__BREAKER_OPEN_FOR", "0s", "must be a duration from 100ms to 1day, not 0s"),
            ("PLACING__POLL_INTERVAL", "0s", "must be a duration from 10ms to 1h, not 0s"),
            ("PLACING__LEASE", "0s", "must be a duration from 1s to 1day, not 0s"),
        ] {
            check_setting_rejected::<App>(&required, (name, value), expected);
        }
    }
}
