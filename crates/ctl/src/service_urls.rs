//! URLs of the services, from flags or settings.

use anyhow::Context as _;
use platform::url_path;
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
    let segments: Vec<_> = segments.into_iter().collect();
    let path = base.path();
    let path = path.strip_suffix('/').unwrap_or(path);
    let mut url = base.clone();
    url.set_path(&format!("{path}/{}", url_path::join(&segments)));
    url
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_character_of_an_identifier_stays_in_its_segment() {
        let base = Url::parse("http://orders.example/base/").unwrap();
        for (identifier, path) in [
            ("1001", "/base/v1/orders/1001"),
            ("10\t01\r\n", "/base/v1/orders/10%0901%0D%0A"),
            ("a/b?c#d", "/base/v1/orders/a%2Fb%3Fc%23d"),
            ("50%", "/base/v1/orders/50%25"),
            ("..", "/base/v1/orders/%00"),
            ("", "/base/v1/orders/"),
        ] {
            let url = join(&base, ["v1", "orders", identifier]);
            assert_eq!(url.as_str(), format!("http://orders.example{path}"), "{identifier:?}");
        }
        let base = Url::parse("http://orders.example").unwrap();
        assert_eq!(join(&base, ["readyz"]).as_str(), "http://orders.example/readyz");
    }
}
