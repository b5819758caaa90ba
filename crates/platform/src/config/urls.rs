//! Settings that are URLs.

use serde::{Deserialize as _, Deserializer, de::Error as _};
use url::Url;

/// Reads an http:// or https:// URL.
pub fn http_url<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Url, D::Error> {
    parse(&String::deserialize(deserializer)?).map_err(D::Error::custom)
}

/// Reads a URL as [`http_url`] does; an empty text means that there is none.
pub fn optional_http_url<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Url>, D::Error> {
    let text = String::deserialize(deserializer)?;
    if text.is_empty() {
        return Ok(None);
    }
    parse(&text).map(Some).map_err(D::Error::custom)
}

/// Reads a URL that paths are appended to. The text stays as it is written, because the `iss` of tokens must
/// equal it and a [`Url`] would add a slash.
pub fn base_url<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let text = String::deserialize(deserializer)?;
    let url = parse(&text).map_err(D::Error::custom)?;
    if url.query().is_some() || url.fragment().is_some() {
        return Err(D::Error::custom(format!("{text:?} must have no query and no fragment")));
    }
    Ok(text)
}

fn parse(text: &str) -> Result<Url, String> {
    match Url::parse(text) {
        Ok(url) if matches!(url.scheme(), "http" | "https") => Ok(url),
        _ => Err(format!("{text:?} is not an http:// or https:// URL")),
    }
}
