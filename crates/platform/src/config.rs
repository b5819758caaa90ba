//! Settings: embedded defaults, then a file, then the environment; read once.
//!
//! `ORDER_INTAKE__HTTP__PORT=9000` sets `port` of `[http]` for order-intake. An unknown key is an
//! error, so that a misspelt setting is not silently ignored.

mod list;

use std::{collections::HashMap, path::Path};

use ::config::{Config, ConfigError, Environment, File, FileFormat, Value, ValueKind};
use serde::{Deserialize, de::DeserializeOwned};

pub use list::{FromListItem, List};

use crate::{database, http, limits, telemetry};

/// The sections every service has.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    pub http: http::Settings,
    pub limits: limits::Settings,
    pub database: database::Settings,
    pub telemetry: telemetry::Settings,
}

const SECTIONS: [&str; 4] = ["http", "limits", "database", "telemetry"];

/// Reads the settings of the service `name`: the sections of the platform and those of the service.
pub fn load<S: DeserializeOwned>(
    name: &str,
    defaults: &[&str],
    file: Option<&Path>,
    environment: HashMap<String, String>,
) -> Result<(Settings, S), ConfigError> {
    let all = read(name, defaults, file, environment)?;
    let (platform, own) = all.into_iter().partition(|(key, _)| SECTIONS.contains(&key.as_str()));
    Ok((section(platform)?, section(own)?))
}

/// Reads only `[http]`, for commands that do not need the other settings and may not have them.
pub fn load_http(
    name: &str,
    defaults: &[&str],
    file: Option<&Path>,
    environment: HashMap<String, String>,
) -> Result<http::Settings, ConfigError> {
    let mut all = read(name, defaults, file, environment)?;
    let http = all.remove("http").ok_or_else(|| ConfigError::NotFound("http".to_owned()))?;
    http.try_deserialize()
}

/// Merges all sources into one table.
fn read(
    name: &str,
    defaults: &[&str],
    file: Option<&Path>,
    environment: HashMap<String, String>,
) -> Result<::config::Map<String, Value>, ConfigError> {
    let mut builder = Config::builder()
        .add_source(File::from_str(include_str!("../default.toml"), FileFormat::Toml));
    for text in defaults {
        builder = builder.add_source(File::from_str(text, FileFormat::Toml));
    }
    if let Some(file) = file {
        builder = builder.add_source(File::from(file).format(FileFormat::Toml));
    }
    let prefix = name.replace('-', "_");
    let environment = Environment::with_prefix(&prefix)
        .prefix_separator("__")
        .separator("__")
        .source(Some(environment.into_iter().collect()));
    builder.add_source(environment).build()?.cache.into_table()
}

fn section<T: DeserializeOwned>(table: ::config::Map<String, Value>) -> Result<T, ConfigError> {
    Value::new(None, ValueKind::Table(table)).try_deserialize()
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use secrecy::ExposeSecret;

    use super::*;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Own {
        tokens: Tokens,
    }

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Tokens {
        lifetime: u32,
        names: List<String>,
    }

    const DEFAULTS: &str = "[http]\nport = 1\n[tokens]\nlifetime = 5\nnames = []";

    fn read(environment: &[(&str, &str)]) -> Result<(Settings, Own), ConfigError> {
        let url = ("ORDER_INTAKE__DATABASE__URL", "postgres://u:topsecret@h/d");
        let environment = environment.iter().copied().chain([url]);
        load(
            "order-intake",
            &[DEFAULTS],
            None,
            environment.map(|(k, v)| (k.to_owned(), v.to_owned())).collect(),
        )
    }

    #[track_caller]
    fn check_error(key: &str, value: &str, message: &Expect) {
        message.assert_eq(&read(&[(key, value)]).unwrap_err().to_string());
    }

    #[test]
    fn the_environment_wins_over_the_defaults() {
        let (settings, own) = read(&[
            ("ORDER_INTAKE__HTTP__PORT", "9000"),
            ("ORDER_INTAKE__TOKENS__NAMES", "a, b"),
            ("ORDER_INTAKE__HTTP__TRUSTED_PROXIES", "10.0.0.0/8,192.0.2.7"),
            ("AUTH__HTTP__PORT", "1234"),
        ])
        .unwrap();
        assert_eq!((settings.http.port, own.tokens.lifetime), (9000, 5));
        assert_eq!(*own.tokens.names, ["a", "b"]);
        assert_eq!(settings.http.trusted_proxies.len(), 2);
        assert_eq!(settings.database.url.unwrap().expose_secret(), "postgres://u:topsecret@h/d");
    }

    #[test]
    fn an_unknown_setting_is_rejected() {
        check_error(
            "ORDER_INTAKE__HTPP__PORT",
            "1",
            &expect!["unknown field `htpp`, expected `tokens`"],
        );
        check_error(
            "ORDER_INTAKE__HTTP__PROT",
            "1",
            &expect![
                "unknown field `prot`, expected one of `host`, `port`, `workers`, `keep_alive`, `header_timeout`, `body_timeout`, `request_timeout`, `max_body_bytes`, `max_inflight_bytes`, `max_connections`, `trusted_proxies`, `proxy_header`, `behind_tls_proxy`, `tls` for key `http`"
            ],
        );
        check_error(
            "ORDER_INTAKE__HTTP__PORT",
            "eighty",
            &expect![[
                r#"invalid type: string "eighty", expected an integer for key `http.port` in the environment"#
            ]],
        );
        check_error(
            "ORDER_INTAKE__HTTP__TRUSTED_PROXIES",
            "everyone",
            &expect![[
                r#""everyone" is not an address or a network like 10.0.0.0/8 for key `http.trusted_proxies`"#
            ]],
        );
    }

    #[test]
    fn a_setting_that_no_service_can_start_with_is_rejected() {
        check_error(
            "ORDER_INTAKE__TELEMETRY__LOG",
            "info,x=loud",
            &expect![[
                r#""info,x=loud" is not a log filter: error parsing level filter: expected one of "off", "error", "warn", "info", "debug", "trace", or a number 0-5 for key `telemetry.log`"#
            ]],
        );
        check_error(
            "ORDER_INTAKE__TELEMETRY__OTLP_ENDPOINT",
            "collector:4318",
            &expect![[
                r#""collector:4318" is not an http:// or https:// URL for key `telemetry.otlp_endpoint`"#
            ]],
        );
        for (url, message) in [
            (
                "localhost/orders",
                expect![
                    "it is not a PostgreSQL URL: invalid connection string: unexpected EOF for key `database.url`"
                ],
            ),
            (
                "postgres://u:topsecret@h:port/d",
                expect![
                    "it is not a PostgreSQL URL: invalid connection string: invalid value for option `port` for key `database.url`"
                ],
            ),
            ("postgres:///d", expect!["it has no host for key `database.url`"]),
        ] {
            let url = [("ORDER_INTAKE__DATABASE__URL".to_owned(), url.to_owned())];
            let read = load::<Own>("order-intake", &[DEFAULTS], None, url.into());
            message.assert_eq(&read.unwrap_err().to_string());
        }
    }

    #[test]
    fn the_address_can_be_read_without_the_secrets() {
        let environment =
            [("ORDER_INTAKE__HTTP__HOST", "0.0.0.0"), ("ORDER_INTAKE__TOKENS__X", "1")];
        let environment = environment.map(|(k, v)| (k.to_owned(), v.to_owned())).into();
        let http = load_http("order-intake", &[DEFAULTS], None, environment).unwrap();
        assert_eq!((http.host.as_str(), http.port), ("0.0.0.0", 1));
    }

    #[test]
    fn secrets_are_not_printed() {
        let (settings, _) = read(&[]).unwrap();
        assert!(!format!("{settings:?}").contains("topsecret"));
    }
}
