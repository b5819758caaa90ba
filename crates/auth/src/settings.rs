//! What can be set; the defaults and their reasons are in `default.toml`.

use std::{num::NonZeroU32, time::Duration};

use platform::sealing;
use secrecy::SecretString;
use serde::Deserialize;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    pub(crate) tokens: Tokens,
    pub(crate) keys: Keys,
    pub(crate) secrets: Secrets,
    pub(crate) brute_force: BruteForce,
    pub(crate) bootstrap: Bootstrap,
    pub(crate) sealing: sealing::Settings,
    pub(crate) broker: messaging::Settings,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Tokens {
    pub(crate) issuer: String,
    #[serde(with = "humantime_serde")]
    pub(crate) lifetime: Duration,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Keys {
    #[serde(with = "humantime_serde")]
    pub(crate) publish_ahead: Duration,
    #[serde(with = "humantime_serde")]
    pub(crate) rotate_every: Duration,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Secrets {
    #[serde(with = "humantime_serde")]
    pub(crate) overlap: Duration,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct BruteForce {
    pub(crate) per_client: NonZeroU32,
    pub(crate) per_address: NonZeroU32,
    #[serde(with = "humantime_serde")]
    pub(crate) floor: Duration,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Bootstrap {
    pub(crate) client_id: String,
    pub(crate) client_secret: SecretString,
}
