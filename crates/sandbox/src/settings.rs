//! Settings: the embedded defaults, overridden by environment variables.

use std::net::IpAddr;

use config::{Config, ConfigError, Environment, File, FileFormat};
use platform::config::List;
use secrecy::SecretString;
use serde::Deserialize;

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    pub http: Http,
    pub journal: Journal,
    pub signing: Signing,
    pub tokens: Tokens,
    pub mail: Mail,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Http {
    pub host: IpAddr,
    pub port: u16,
    pub workers: usize,
    /// The URL that browsers load pictures from. Empty: the URL of the request.
    pub public_url: String,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Journal {
    pub enabled: bool,
    pub capacity: usize,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Signing {
    pub secrets: List<SecretString>,
    pub required: bool,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tokens {
    pub lifetime: u32,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mail {
    pub enabled: bool,
    pub port: u16,
    pub capacity: usize,
}

impl Settings {
    /// The defaults, overridden by `SANDBOX__…` from the environment.
    pub fn from_environment() -> Result<Self, ConfigError> {
        let environment =
            Environment::with_prefix("SANDBOX").prefix_separator("__").separator("__");
        Config::builder().add_source(defaults()).add_source(environment).build()?.try_deserialize()
    }

    /// The defaults with free ports, for a sandbox inside a test.
    pub fn for_tests() -> Result<Self, ConfigError> {
        let defaults = Config::builder().add_source(defaults());
        let defaults = defaults.set_override("http.port", 0)?.set_override("mail.port", 0)?;
        defaults.build()?.try_deserialize()
    }
}

fn defaults() -> File<config::FileSourceString, FileFormat> {
    File::from_str(include_str!("../default.toml"), FileFormat::Toml)
}
