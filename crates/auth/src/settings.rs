//! What can be set; the defaults and their reasons are in `default.toml`.

use std::{num::NonZeroU32, time::Duration};

use chrono::TimeDelta;
use platform::sealing;
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;

use crate::clients;

const SHORTEST_SECRET: usize = 20;
/// The 25 hours of the contract.
const USUAL_LIFETIME: Duration = Duration::from_secs(90_000);

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

impl Tokens {
    /// How long any token that is about can live: some were granted before `lifetime` was lowered.
    pub(crate) fn longest_life(&self) -> TimeDelta {
        TimeDelta::from_std(self.lifetime.max(USUAL_LIFETIME)).unwrap_or(TimeDelta::MAX)
    }
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

/// Without a client id there is no first operator.
#[derive(Debug, Clone, Deserialize)]
#[serde(try_from = "WrittenBootstrap")]
pub(crate) struct Bootstrap {
    pub(crate) client_id: String,
    pub(crate) client_secret: SecretString,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenBootstrap {
    client_id: String,
    client_secret: SecretString,
}

impl TryFrom<WrittenBootstrap> for Bootstrap {
    type Error = String;

    fn try_from(written: WrittenBootstrap) -> Result<Self, String> {
        let WrittenBootstrap { client_id, client_secret } = written;
        if !clients::is_possible(&client_id) {
            return Err("bootstrap.client_id cannot be a client's id".to_owned());
        }
        if !client_id.is_empty() && client_secret.expose_secret().len() < SHORTEST_SECRET {
            return Err(format!(
                "bootstrap.client_secret must have at least {SHORTEST_SECRET} characters"
            ));
        }
        Ok(Self { client_id, client_secret })
    }
}
