//! What can be set; the defaults and their reasons are in `default.toml`.

use std::{num::NonZeroU32, time::Duration};

use chrono::TimeDelta;
use platform::sealing;
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Deserializer, de::Error as _};

use crate::clients;

const SHORTEST_SECRET: usize = 20;
/// How long any token that is about can live, whatever `tokens.lifetime` was when it was granted: the
/// 25 hours of the contract.
pub(crate) const LONGEST_LIFETIME: TimeDelta = TimeDelta::hours(25);

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
    #[serde(deserialize_with = "lifetime")]
    pub(crate) lifetime: Duration,
}

/// Refuses what would outlive a revocation once it is lowered.
fn lifetime<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    let lifetime: Duration = humantime_serde::deserialize(deserializer)?;
    if TimeDelta::from_std(lifetime).is_ok_and(|lifetime| lifetime <= LONGEST_LIFETIME) {
        Ok(lifetime)
    } else {
        Err(D::Error::custom("a token lives for 25 hours at the most"))
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

#[cfg(test)]
mod tests {
    use platform::{Service as _, config};

    use super::*;
    use crate::App;

    #[test]
    fn a_token_that_would_outlive_its_revocation_is_refused() {
        let read = |lifetime: &str| {
            let given = [
                ("AUTH__DATABASE__URL", "postgres://h"),
                ("AUTH__BROKER__URL", "amqp://h"),
                ("AUTH__SEALING__KEYS", testkit::sealing_keys()),
                ("AUTH__TOKENS__LIFETIME", lifetime),
            ];
            let given = given.map(|(key, value)| (key.to_owned(), value.to_owned()));
            config::load::<Settings>(App::NAME, App::DEFAULTS, None, given.into())
        };
        read("25h").unwrap();
        for lifetime in ["25h 1s", "2days", "1000000000years"] {
            let refused = read(lifetime).unwrap_err().to_string();
            assert!(refused.contains("25 hours at the most"), "{lifetime}: {refused}");
        }
    }
}
