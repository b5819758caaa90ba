//! What can be set; the defaults and their reasons are in `default.toml`.

use std::num::NonZeroU32;
use std::time::Duration;

use platform::{identity, sealing};
use serde::Deserialize;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    pub(crate) broker: messaging::Settings,
    pub(crate) identity: identity::Settings,
    pub(crate) sealing: sealing::Settings,
    pub(crate) delivery: delivery::Settings,
    pub(crate) variants: Variants,
    pub(crate) placing: Placing,
}

/// `[variants]`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Variants {
    #[serde(with = "humantime_serde")]
    pub(crate) budget: Duration,
    #[serde(with = "humantime_serde")]
    pub(crate) keep: Duration,
    pub(crate) kept_bytes: u64,
    pub(crate) longest_answer: usize,
    pub(crate) most_at_once: u32,
    pub(crate) failures: NonZeroU32,
    #[serde(with = "humantime_serde")]
    pub(crate) pause: Duration,
}

/// `[placing]`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Placing {
    #[serde(with = "humantime_serde")]
    pub(crate) poll: Duration,
    pub(crate) batch: NonZeroU32,
    #[serde(with = "humantime_serde")]
    pub(crate) lease: Duration,
}
