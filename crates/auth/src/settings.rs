//! Typed settings; `default.toml` has the defaults and describes each setting.

use std::{num::NonZeroU32, time::Duration};

use chrono::TimeDelta;
use ipnet::IpNet;
use platform::{config::List, sealing};
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Deserializer, de::Error as _};

use crate::credentials;

const MIN_SECRET_LENGTH: usize = 20;
/// Upper bound of `tokens.lifetime`, and so of the lifetime of every token issued so far.
pub(crate) const MAX_TOKEN_LIFETIME: TimeDelta = TimeDelta::hours(25);

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    pub(crate) tokens: Tokens,
    pub(crate) keys: Keys,
    pub(crate) secrets: Secrets,
    pub(crate) brute_force: BruteForce,
    pub(crate) bootstrap: Bootstrap,
    pub(crate) delivery: Delivery,
    pub(crate) sealing: sealing::Settings,
    pub(crate) broker: messaging::Settings,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Tokens {
    pub(crate) issuer: String,
    #[serde(deserialize_with = "token_lifetime")]
    pub(crate) lifetime: Duration,
}

fn token_lifetime<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    let lifetime: Duration = humantime_serde::deserialize(deserializer)?;
    if TimeDelta::from_std(lifetime).is_ok_and(|lifetime| lifetime <= MAX_TOKEN_LIFETIME) {
        Ok(lifetime)
    } else {
        Err(D::Error::custom("tokens.lifetime must be at most 25 hours"))
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
    pub(crate) client_failures_per_minute: NonZeroU32,
    pub(crate) address_failures_per_minute: NonZeroU32,
    #[serde(with = "humantime_serde")]
    pub(crate) min_failure_latency: Duration,
}

/// The rules for merchants' URLs. Services that deliver messages have the same settings.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Delivery {
    pub(crate) https_only: bool,
    pub(crate) allowed_networks: List<IpNet>,
}

/// The first operator; there is none if `client_id` is empty.
#[derive(Debug, Clone, Deserialize)]
#[serde(try_from = "UncheckedBootstrap")]
pub(crate) struct Bootstrap {
    pub(crate) client_id: String,
    pub(crate) client_secret: SecretString,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct UncheckedBootstrap {
    client_id: String,
    client_secret: SecretString,
}

impl TryFrom<UncheckedBootstrap> for Bootstrap {
    type Error = String;

    fn try_from(unchecked: UncheckedBootstrap) -> Result<Self, String> {
        let UncheckedBootstrap { client_id, client_secret } = unchecked;
        if !credentials::is_valid_client_id(&client_id) {
            return Err("bootstrap.client_id is not a valid client id".to_owned());
        }
        if !client_id.is_empty() && client_secret.expose_secret().len() < MIN_SECRET_LENGTH {
            return Err(format!(
                "bootstrap.client_secret must have at least {MIN_SECRET_LENGTH} characters"
            ));
        }
        Ok(Self { client_id, client_secret })
    }
}

#[cfg(test)]
mod tests {
    use platform::{Service as _, config};

    use super::*;
    use crate::App;

    #[test]
    fn a_token_lifetime_over_25_hours_is_rejected() {
        let load = |lifetime: &str| {
            let variables = [
                ("AUTH__DATABASE__URL", "postgres://h"),
                ("AUTH__BROKER__URL", "amqp://h"),
                ("AUTH__SEALING__KEYS", testkit::sealing_keys()),
                ("AUTH__TOKENS__LIFETIME", lifetime),
            ];
            let variables = variables.map(|(key, value)| (key.to_owned(), value.to_owned()));
            config::load::<Settings>(App::NAME, App::DEFAULTS, None, variables.into())
        };
        load("25h").unwrap();
        for lifetime in ["25h 1s", "2days", "1000000000years"] {
            let error = load(lifetime).unwrap_err().to_string();
            assert!(error.contains("at most 25 hours"), "{lifetime}: {error}");
        }
    }
}
