//! Settings of the stack that scripts/bench started.

use anyhow::Context as _;
use ctl::settings::Settings;
use url::Url;

/// A value that scripts/bench sets.
pub(crate) fn setting<'a>(settings: &'a Settings, name: &str) -> anyhow::Result<&'a str> {
    settings.get(name).with_context(|| format!("{name} is not set: use scripts/bench"))
}

pub(crate) fn database_url(settings: &Settings, database: &str) -> anyhow::Result<String> {
    let mut url: Url = setting(settings, "POSTGRES_URL")?.parse()?;
    url.set_path(database);
    Ok(url.into())
}
