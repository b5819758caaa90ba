//! The settings of the database.

use std::time::Duration;

use anyhow::Context as _;
use secrecy::{ExposeSecret as _, SecretString};
use serde::{Deserialize, Deserializer, de::Error as _};

use crate::config::range::{self, DAY, HOUR};

/// `[database]`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// `None` for a service without a database, whose default is an empty text.
    #[serde(deserialize_with = "postgres_url")]
    pub url: Option<SecretString>,
    #[serde(deserialize_with = "range::number::<1, 10_000, _, _>")]
    pub max_connections: usize,
    #[serde(deserialize_with = "range::number::<1, 10_000, _, _>")]
    pub max_readers: usize,
    #[serde(deserialize_with = "range::time::<10, HOUR, _>")]
    pub acquire_timeout: Duration,
    // PostgreSQL takes 0 as no timeout, and no more than 24 days.
    #[serde(deserialize_with = "range::time::<10, DAY, _>")]
    pub statement_timeout: Duration,
}

/// Rejects a bad URL when the settings are read, so that nothing starts with it.
fn postgres_url<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<SecretString>, D::Error> {
    let url = SecretString::deserialize(deserializer)?;
    if url.expose_secret().is_empty() {
        return Ok(None);
    }
    parse(&url).map_err(|error| D::Error::custom(format!("{error:#}")))?;
    Ok(Some(url))
}

impl Settings {
    pub(super) fn postgres_config(&self) -> anyhow::Result<tokio_postgres::Config> {
        let url = self.url.as_ref().context("database.url is empty")?;
        parse(url).context("database.url")
    }
}

fn parse(url: &SecretString) -> anyhow::Result<tokio_postgres::Config> {
    let config: tokio_postgres::Config =
        url.expose_secret().parse().context("it is not a PostgreSQL URL")?;
    let has_host = !config.get_hosts().is_empty() || !config.get_hostaddrs().is_empty();
    anyhow::ensure!(has_host, "it has no host");
    Ok(config)
}
