//! Typed settings. `default.toml` has the defaults.

use std::num::NonZeroU32;
use std::time::Duration;

use platform::{identity, sealing, shopper_proof};
use serde::Deserialize;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    pub(crate) broker: messaging::Settings,
    pub(crate) identity: identity::Settings,
    pub(crate) sealing: sealing::Settings,
    pub(crate) shopper: shopper_proof::Settings,
    pub(crate) delivery: delivery::Settings,
    pub(crate) variants: Variants,
    pub(crate) placing: Placing,
}

/// `[variants]`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Variants {
    #[serde(with = "humantime_serde")]
    pub(crate) timeout: Duration,
    #[serde(with = "humantime_serde")]
    pub(crate) cache_ttl: Duration,
    pub(crate) cache_max_bytes: u64,
    pub(crate) max_response_bytes: usize,
    pub(crate) max_concurrency: u32,
    pub(crate) breaker_threshold: NonZeroU32,
    #[serde(with = "humantime_serde")]
    pub(crate) breaker_open_for: Duration,
}

/// `[placing]`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Placing {
    #[serde(with = "humantime_serde")]
    pub(crate) poll_interval: Duration,
    pub(crate) max_concurrency: NonZeroU32,
    #[serde(with = "humantime_serde")]
    pub(crate) lease: Duration,
}
