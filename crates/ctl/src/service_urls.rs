//! URLs of the services, from flags or settings.

use anyhow::Context as _;
use url::Url;

use crate::settings::{Setting, Settings};

pub const AUTH: Setting =
    Setting { name: "AUTH_URL", flag: Some("--auth-url"), description: "the auth service URL" };
pub const ORDERS: Setting = service("ORDERS_URL", "the order intake URL");
pub const RETURNS: Setting = service("RMA_URL", "the RMA engine URL");
pub const EXCHANGE: Setting = service("EXCHANGE_URL", "the exchange service URL");
pub const WAREHOUSE: Setting = service("WAREHOUSE_URL", "the warehouse notifier URL");

const fn service(name: &'static str, description: &'static str) -> Setting {
    Setting { name, flag: Some("--service-url"), description }
}

/// The URL of a flag, or else of a setting.
pub fn resolve(flag: Option<&Url>, settings: &Settings, setting: Setting) -> anyhow::Result<Url> {
    match flag {
        Some(url) => Ok(url.clone()),
        None => {
            let text = settings.require(setting)?;
            text.parse().with_context(|| format!("{} is not a URL: {text}", setting.name))
        }
    }
}

/// Appends path segments to a URL.
pub fn join<'a>(base: &Url, segments: impl IntoIterator<Item = &'a str>) -> Url {
    let mut url = base.clone();
    if let Ok(mut path) = url.path_segments_mut() {
        path.pop_if_empty().extend(segments);
    }
    url
}
