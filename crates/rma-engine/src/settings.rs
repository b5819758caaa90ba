//! Typed settings. `default.toml` has the defaults.

use std::num::NonZeroU32;
use std::time::Duration;

use platform::{idempotency, identity, sealing, shopper_proof};
use serde::Deserialize;

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
    #[serde(with = "humantime_serde")]
    pub(crate) min_failure_latency: Duration,
}

/// `[portal]`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Portal {
    pub(crate) public_url: String,
}
