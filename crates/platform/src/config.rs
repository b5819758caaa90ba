//! Settings: embedded defaults, then a file, then the environment; read once.
//!
//! `ORDER_INTAKE__HTTP__PORT=9000` sets `port` of `[http]` for order-intake. An unknown key is an
//! error, so that a misspelt setting is not silently ignored. All faults are reported at once.

mod defaults;
mod fault;
mod list;
pub mod range;
mod repair;
mod urls;

use std::{collections::HashMap, path::Path};

use ::config::{Config, ConfigError, Environment, File, FileFormat, Map, Value, ValueKind};
use serde::de::DeserializeOwned;

pub(crate) use defaults::merge as merge_defaults;
pub(crate) use fault::Fault;
pub use fault::Faults;
pub use list::{FromListItem, List};
pub use urls::{base_url, http_url, optional_http_url};

use repair::repair;

pub(crate) type Table = Map<String, Value>;

/// Deserializes a table. After each fault the faulty value is replaced, so that the next one is found.
pub(crate) fn deserialize<T: DeserializeOwned>(
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
pub(crate) fn read(
    name: &str,
    defaults: &[&str],
    file: Option<&Path>,
    environment: HashMap<String, String>,
) -> Result<Table, ConfigError> {
    let mut builder = Config::builder();
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
