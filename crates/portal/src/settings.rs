//! Typed settings. `default.toml` has the defaults.

use platform::{config, sealing};
use serde::Deserialize;
use url::Url;

use crate::access;

/// The sections of the portal's settings.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    #[serde(deserialize_with = "config::http_url")]
    pub(crate) public_url: Url,
    pub(crate) pseudo_languages: bool,
    pub(crate) services: ServiceUrls,
    pub(crate) client: access::Client,
    pub(crate) sealing: sealing::Settings,
}

/// The services that the portal calls.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ServiceUrls {
    #[serde(deserialize_with = "config::http_url")]
    pub(crate) auth: Url,
    #[serde(deserialize_with = "config::http_url")]
    pub(crate) returns: Url,
    #[serde(deserialize_with = "config::http_url")]
    pub(crate) exchange: Url,
}

#[cfg(test)]
mod tests {
    use platform::{Service as _, settings};

    use super::*;
    use crate::App;

    const CLIENT_ID: (&str, &str) = ("CLIENT__ID", "cl_4f1d");
    const CLIENT_SECRET: (&str, &str) = ("CLIENT__SECRET", "a-client-secret");
    const SEALING_KEYS: (&str, &str) =
        ("SEALING__KEYS", "k1:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=");

    /// The faults, one a line.
    fn faults(settings: &[(&str, &str)]) -> Vec<String> {
        let variables = settings.iter().map(|(name, value)| (format!("PORTAL__{name}"), *value));
        let variables = variables.map(|(name, value)| (name, value.to_owned())).collect();
        let loaded = settings::load::<Settings>(App::NAME, App::DEFAULTS, None, variables);
        let text = loaded.err().map(|faults| faults.to_string()).unwrap_or_default();
        text.lines().skip(1).map(|line| line.trim().to_owned()).collect()
    }

    #[test]
    fn exactly_the_missing_settings_are_listed() {
        let id = "client.id (PORTAL__CLIENT__ID): is required and not set";
        let secret = "client.secret (PORTAL__CLIENT__SECRET): is required and not set";
        let keys = "sealing.keys (PORTAL__SEALING__KEYS): is required and not set";
        assert_eq!(faults(&[]), [id, secret, keys]);
        assert_eq!(faults(&[CLIENT_ID]), [secret, keys]);
        assert_eq!(faults(&[CLIENT_SECRET]), [id, keys]);
        assert_eq!(faults(&[SEALING_KEYS]), [id, secret]);
        assert!(faults(&[CLIENT_ID, CLIENT_SECRET, SEALING_KEYS]).is_empty());
    }

    #[test]
    fn a_setting_without_a_section_is_named_with_its_variable() {
        let required = [CLIENT_ID, CLIENT_SECRET, SEALING_KEYS];
        let public_url = ("PUBLIC_URL", "localhost:8080");
        assert_eq!(
            faults(&[&required[..], &[public_url]].concat()),
            [
                "public_url (PORTAL__PUBLIC_URL): \"localhost:8080\" is not an http:// or https:// URL"
            ]
        );
    }
}
