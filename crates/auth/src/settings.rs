//! Typed settings; `default.toml` has the defaults and describes each setting.

use std::{
    num::{NonZeroU16, NonZeroU32},
    time::Duration,
};

use ipnet::IpNet;
use platform::{
    config::{
        self, List,
        range::{self, CENTURY, DAY, HOUR, MINUTE, SECOND, YEAR},
    },
    idempotency, sealing,
};
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Deserializer, de::Error as _};
use url::Url;

use crate::{credentials, oidc, token_lifetimes::MAX_TOKEN_LIFETIME};

const MIN_SECRET_LENGTH: usize = 20;
/// In milliseconds, as all ranges of times.
const MAX_LIFETIME: u64 = MAX_TOKEN_LIFETIME.num_milliseconds().unsigned_abs();
/// The same as the maximum of `overlap_seconds` in requests.
const MAX_OVERLAP: u64 = 30 * DAY;
const MAX_LATENCY: u64 = 10 * SECOND;

// `remote = "Self"` derives a function instead of the trait. The trait below calls it and then checks the
// sections against each other.
#[derive(Debug, Deserialize)]
#[serde(remote = "Self", deny_unknown_fields)]
pub struct Settings {
    pub(crate) tokens: Tokens,
    pub(crate) keys: Keys,
    pub(crate) secrets: Secrets,
    pub(crate) brute_force: BruteForce,
    pub(crate) people: People,
    pub(crate) bootstrap: Bootstrap,
    pub(crate) oidc: oidc::settings::Settings,
    pub(crate) delivery: Delivery,
    pub(crate) sealing: sealing::Settings,
    pub(crate) idempotency: idempotency::Settings,
    pub(crate) broker: messaging::Settings,
}

impl<'de> Deserialize<'de> for Settings {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let settings = Self::deserialize(deserializer)?;
        settings.oidc.check().map_err(D::Error::custom)?;
        if !settings.people.passwords && !settings.oidc.is_enabled() {
            let error = "people.passwords is false and oidc.issuer is empty: nobody could sign in";
            return Err(D::Error::custom(error));
        }
        Ok(settings)
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Tokens {
    #[serde(deserialize_with = "config::base_url")]
    pub(crate) issuer: String,
    #[serde(deserialize_with = "range::time::<MINUTE, MAX_LIFETIME, _>")]
    pub(crate) lifetime: Duration,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Keys {
    #[serde(deserialize_with = "range::time::<0, YEAR, _>")]
    pub(crate) publish_ahead: Duration,
    #[serde(deserialize_with = "range::time::<HOUR, CENTURY, _>")]
    pub(crate) rotate_every: Duration,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Secrets {
    #[serde(deserialize_with = "range::time::<0, MAX_OVERLAP, _>")]
    pub(crate) overlap: Duration,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct BruteForce {
    pub(crate) account_failures_per_minute: NonZeroU32,
    #[serde(deserialize_with = "range::time::<0, MAX_LATENCY, _>")]
    pub(crate) failure_latency_step: Duration,
}

/// The sign-in of people.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct People {
    #[serde(deserialize_with = "config::http_url")]
    pub(crate) console_url: Url,
    #[serde(deserialize_with = "range::time::<MINUTE, YEAR, _>")]
    pub(crate) invitation_lifetime: Duration,
    #[serde(deserialize_with = "range::time::<MINUTE, YEAR, _>")]
    pub(crate) session_lifetime: Duration,
    #[serde(deserialize_with = "range::time::<MINUTE, YEAR, _>")]
    pub(crate) session_idle: Duration,
    pub(crate) passwords: bool,
    pub(crate) password_hashers: NonZeroU16,
}

impl People {
    /// The URL of a page of the console.
    pub(crate) fn console_page(&self, path: &str) -> String {
        format!("{}{path}", self.console_url.as_str().trim_end_matches('/'))
    }
}

/// The rules for merchants' URLs. Services that deliver messages have the same settings.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Delivery {
    pub(crate) https_only: bool,
    pub(crate) allowed_networks: List<IpNet>,
}

/// Clients that come from the settings: the first operator and the returns portal. There is none of them
/// if its id is empty.
#[derive(Debug, Clone, Deserialize)]
#[serde(try_from = "UncheckedBootstrap")]
pub(crate) struct Bootstrap {
    pub(crate) client_id: String,
    pub(crate) client_secret: SecretString,
    pub(crate) portal_client_id: String,
    pub(crate) portal_client_secret: SecretString,
}

impl Bootstrap {
    /// Whether the secret of this client is a setting.
    pub(crate) fn has(&self, client: &str) -> bool {
        client == self.client_id || client == self.portal_client_id
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct UncheckedBootstrap {
    client_id: String,
    client_secret: SecretString,
    portal_client_id: String,
    portal_client_secret: SecretString,
}

impl TryFrom<UncheckedBootstrap> for Bootstrap {
    type Error = String;

    fn try_from(unchecked: UncheckedBootstrap) -> Result<Self, String> {
        let UncheckedBootstrap { client_id, client_secret, portal_client_id, portal_client_secret } =
            unchecked;
        check_client("", &client_id, &client_secret)?;
        check_client("portal_", &portal_client_id, &portal_client_secret)?;
        if client_id == portal_client_id && !client_id.is_empty() {
            return Err("bootstrap.portal_client_id is the id of the first operator".to_owned());
        }
        Ok(Self { client_id, client_secret, portal_client_id, portal_client_secret })
    }
}

/// Checks the id and the secret of a client, whose settings have this prefix.
fn check_client(prefix: &str, id: &str, secret: &SecretString) -> Result<(), String> {
    if !credentials::is_valid_client_id(id) {
        return Err(format!("bootstrap.{prefix}client_id is not a valid client id"));
    }
    if !id.is_empty() && secret.expose_secret().len() < MIN_SECRET_LENGTH {
        return Err(format!(
            "bootstrap.{prefix}client_secret must have at least {MIN_SECRET_LENGTH} characters"
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use platform::{Service as _, settings};

    use super::*;
    use crate::App;

    fn read(name: &str, value: &str) -> Result<(), String> {
        let variables = [
            ("AUTH__DATABASE__URL", "postgres://h"),
            ("AUTH__BROKER__URL", "amqp://h"),
            ("AUTH__SEALING__KEYS", testkit::sealing_keys()),
            (name, value),
        ];
        let variables = variables.map(|(key, value)| (key.to_owned(), value.to_owned()));
        let loaded = settings::load::<Settings>(App::NAME, App::DEFAULTS, None, variables.into());
        loaded.map(drop).map_err(|faults| faults.to_string())
    }

    #[test]
    fn a_token_lifetime_over_25_hours_is_rejected() {
        read("AUTH__TOKENS__LIFETIME", "25h").unwrap();
        for lifetime in ["25h 1s", "2days", "1000000000years", "0s"] {
            let error = read("AUTH__TOKENS__LIFETIME", lifetime).unwrap_err();
            let rule =
                "tokens.lifetime (AUTH__TOKENS__LIFETIME): must be a duration from 1m to 1day 1h";
            assert!(error.contains(rule), "{lifetime}: {error}");
        }
    }

    #[test]
    fn unusable_settings_are_rejected() {
        for (name, value, rule) in [
            ("TOKENS__ISSUER", "auth", "\"auth\" is not an http:// or https:// URL"),
            ("PEOPLE__CONSOLE_URL", "localhost:8086", "is not an http:// or https:// URL"),
            ("PEOPLE__SESSION_IDLE", "0s", "must be a duration from 1m to 1year, not 0s"),
            ("PEOPLE__SESSION_LIFETIME", "2years", "must be a duration from 1m to 1year"),
            ("PEOPLE__INVITATION_LIFETIME", "0s", "must be a duration from 1m to 1year"),
            ("KEYS__PUBLISH_AHEAD", "2years", "must be a duration from 0s to 1year"),
            ("KEYS__ROTATE_EVERY", "0s", "must be a duration from 1h to 100years"),
            ("SECRETS__OVERLAP", "31days", "must be a duration from 0s to 30days"),
            ("BRUTE_FORCE__FAILURE_LATENCY_STEP", "1m", "must be a duration from 0s to 10s"),
        ] {
            let name = format!("AUTH__{name}");
            let error = read(&name, value).unwrap_err();
            assert!(error.contains(&format!("({name}): ")), "{error}");
            assert!(error.contains(rule), "{name}={value}: {error}");
        }
    }
}
