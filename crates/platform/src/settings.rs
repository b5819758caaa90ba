//! The settings of a service: the sections of the platform and those of the service.

#[cfg(test)]
mod tests;

use std::{collections::HashMap, path::Path};

use config::{ConfigError, Value, ValueKind};
use serde::{Deserialize, de::DeserializeOwned};

use crate::{
    config::{Fault, Faults, Table, deserialize, merge_defaults, read},
    database, http, limits, telemetry,
};

/// The sections every service has.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    pub http: http::Settings,
    pub limits: limits::Settings,
    pub database: database::Settings,
    pub telemetry: telemetry::Settings,
}

#[derive(Deserialize)]
struct HttpOnly {
    http: http::Settings,
}

const PLATFORM_DEFAULTS: &str = include_str!("../default.toml");
const SECTIONS: [&str; 4] = ["http", "limits", "database", "telemetry"];

/// Reads the settings of the service `name`.
pub fn load<S: DeserializeOwned>(
    name: &str,
    defaults: &[&str],
    file: Option<&Path>,
    environment: HashMap<String, String>,
) -> Result<(Settings, S), Faults> {
    let mut faults = Faults::new(name);
    match read_sections(&mut faults, defaults, file, environment) {
        Some(settings) if faults.is_empty() => Ok(settings),
        _ => Err(faults),
    }
}

/// Reads only `[http]`, for commands that do not need the other settings and may not have them.
pub fn load_http(
    name: &str,
    defaults: &[&str],
    file: Option<&Path>,
    environment: HashMap<String, String>,
) -> Result<http::Settings, Faults> {
    let mut faults = Faults::new(name);
    let read = read_all(name, defaults, file, environment).and_then(|mut all| {
        let http = all.remove_entry("http").into_iter().collect();
        Value::new(None, ValueKind::Table(http)).try_deserialize::<HttpOnly>()
    });
    read.map(|read| read.http).map_err(|error| {
        faults.push(Fault::from(error));
        faults
    })
}

/// The text of the settings with their defaults.
pub(crate) fn default_text(defaults: &[&str]) -> String {
    merge_defaults(&with_platform(defaults))
}

/// Reads all sections and records their faults. Without a fault the result is the settings; with
/// faults it is what is left after repairs, and `None` if a fault cannot be repaired.
pub(crate) fn read_sections<S: DeserializeOwned>(
    faults: &mut Faults,
    defaults: &[&str],
    file: Option<&Path>,
    environment: HashMap<String, String>,
) -> Option<(Settings, S)> {
    let sources = read_all(faults.service(), defaults, file, environment)
        .and_then(|all| Ok((all, read_all(faults.service(), defaults, None, HashMap::new())?)));
    let (all, defaults) = match sources {
        Ok(sources) => sources,
        Err(error) => {
            faults.push(Fault::from(error));
            return None;
        }
    };
    faults.set_given(&all);
    let (platform, own) = all.into_iter().partition(|(key, _)| SECTIONS.contains(&key.as_str()));
    let platform = deserialize(platform, &defaults, faults);
    let own = deserialize(own, &defaults, faults);
    platform.zip(own)
}

fn read_all(
    name: &str,
    defaults: &[&str],
    file: Option<&Path>,
    environment: HashMap<String, String>,
) -> Result<Table, ConfigError> {
    read(name, &with_platform(defaults), file, environment)
}

fn with_platform<'a>(defaults: &[&'a str]) -> Vec<&'a str> {
    [&[PLATFORM_DEFAULTS], defaults].concat()
}
