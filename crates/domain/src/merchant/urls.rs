//! Readers of URLs and paths.

use url::Url;

use crate::json::{Field, parsed};

const NOT_AN_HTTP_URL: &str = "must be an http or https URL without credentials or fragment";

/// An http or https URL without credentials. Each request checks whether its address is allowed.
pub(super) fn http_url(field: Field<'_>) -> Option<String> {
    parsed(1..=2000, |text| {
        let url = Url::parse(text).map_err(|_not_a_url| NOT_AN_HTTP_URL)?;
        let is_http = matches!(url.scheme(), "http" | "https") && url.has_host();
        let is_bare =
            url.username().is_empty() && url.password().is_none() && url.fragment().is_none();
        if is_http && is_bare { Ok(text.to_owned()) } else { Err(NOT_AN_HTTP_URL) }
    })(field)
}

/// A URL to which paths are appended.
pub(super) fn base_url(field: Field<'_>) -> Option<String> {
    let text = http_url(field)?;
    match Url::parse(&text) {
        Ok(url) if url.query().is_none() => Some(text),
        _ => field.invalid("must not have a query: paths are put behind it"),
    }
}

pub(super) fn path(field: Field<'_>) -> Option<String> {
    parsed(1..=1000, |text| {
        let is_plain =
            text.bytes().all(|b| b.is_ascii_graphic() && !matches!(b, b'?' | b'#' | b'\\'));
        if text.starts_with('/') && is_plain {
            Ok(text.to_owned())
        } else {
            Err("must be a path that begins with /")
        }
    })(field)
}
