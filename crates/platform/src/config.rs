//! Settings: embedded defaults, then a file, then the environment; read once.
//!
//! `ORDER_INTAKE__HTTP__PORT=9000` sets `port` of `[http]` for order-intake. An unknown key is an
//! error, so that a misspelt setting is not silently ignored. All faults are reported at once.

mod defaults;
mod fault;
mod list;
pub mod range;
mod repair;
#[cfg(test)]
mod tests;
mod urls;

use std::{collections::HashMap, path::Path};

use ::config::{Config, ConfigError, Environment, File, FileFormat, Map, Value, ValueKind};
use serde::{Deserialize, de::DeserializeOwned};

pub(crate) use defaults::merge as merge_defaults;
pub use fault::Faults;
pub use list::{FromListItem, List};
pub use urls::{base_url, http_url, optional_http_url};

use crate::{database, http, limits, telemetry};

use fault::Fault;
use repair::repair;

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

type Table = Map<String, Value>;

pub(crate) const PLATFORM_DEFAULTS: &str = include_str!("../default.toml");
const SECTIONS: [&str; 4] = ["http", "limits", "database", "telemetry"];

/// Reads the settings of the service `name`: the sections of the platform and those of the service.
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
    let read = read(name, defaults, file, environment).and_then(|mut all| {
        let http = all.remove_entry("http").into_iter().collect();
        Value::new(None, ValueKind::Table(http)).try_deserialize::<HttpOnly>()
    });
    read.map(|read| read.http).map_err(|error| {
        faults.push(Fault::from(error));
        faults
    })
}

/// Reads all sections and records their faults. Without a fault the result is the settings; with
/// faults it is what is left after repairs, and `None` if a fault cannot be repaired.
pub(crate) fn read_sections<S: DeserializeOwned>(
    faults: &mut Faults,
    defaults: &[&str],
    file: Option<&Path>,
    environment: HashMap<String, String>,
) -> Option<(Settings, S)> {
    let sources = read(faults.service(), defaults, file, environment)
        .and_then(|all| Ok((all, read(faults.service(), defaults, None, HashMap::new())?)));
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

/// Deserializes a table. After each fault the faulty value is replaced, so that the next one is found.
fn deserialize<T: DeserializeOwned>(
    mut table: Table,
    defaults: &Table,
    faults: &mut Faults,
) -> Option<T> {
    loop {
        let value = Value::new(None, ValueKind::Table(table.clone()));
        match value.try_deserialize() {
            Ok(value) => return Some(value),
            Err(error) => {
                let fault = Fault::from(error);
                let is_new = faults.push(fault.clone());
                // The default of one setting can contradict another setting: then the whole section is replaced.
                let is_repaired = (is_new && repair(&mut table, defaults, &fault))
                    || repair(&mut table, defaults, &fault.of_section());
                if !is_repaired {
                    return None;
                }
            }
        }
    }
}

/// Merges all sources into one table.
fn read(
    name: &str,
    defaults: &[&str],
    file: Option<&Path>,
    environment: HashMap<String, String>,
) -> Result<Table, ConfigError> {
    let mut builder =
        Config::builder().add_source(File::from_str(PLATFORM_DEFAULTS, FileFormat::Toml));
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
