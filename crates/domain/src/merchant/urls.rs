//! Readers of URLs, paths and e-mail addresses.

use url::Url;

use super::guard::{Guard, Transport};
use super::headers::{IS_REDACTED, REDACTED};
use super::secret_url::SecretUrl;
use crate::email::is_email;
use crate::json::{Field, parsed};

const NOT_AN_HTTP_URL: &str = "must be an http or https URL without credentials or fragment";
const DOT_SEGMENT: &str = "must not have `.` or `..` as a part of its path";

/// An http or https URL that `guard` allows.
pub(super) fn http_url(guard: &Guard) -> impl FnMut(Field<'_>) -> Option<String> {
    move |field| {
        parsed(1..=2000, |text| {
            check_syntax(text)?;
            let url = Url::parse(text).map_err(|_not_a_url| NOT_AN_HTTP_URL)?;
            let is_http = matches!(url.scheme(), "http" | "https") && url.has_host();
            if !is_http || url.fragment().is_some() {
                return Err(NOT_AN_HTTP_URL.to_owned());
            }
            guard.check_url(&url).map_err(|error| error.to_string())?;
            Ok(text.to_owned())
        })(field)
    }
}

/// Rejects forms that the URL parser repairs or drops: a missing host, backslashes, white space, empty
/// credentials and dot segments.
fn check_syntax(text: &str) -> Result<(), &'static str> {
    let is_clean = !text.chars().any(|c| c == '\\' || c.is_whitespace() || c.is_control());
    let (scheme, rest) = text.split_once("://").ok_or(NOT_AN_HTTP_URL)?;
    let is_http = ["http", "https"].iter().any(|known| scheme.eq_ignore_ascii_case(known));
    let (authority, path) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    if !is_clean || !is_http || authority.is_empty() || authority.contains('@') {
        return Err(NOT_AN_HTTP_URL);
    }
    let path = path.split(['?', '#']).next().unwrap_or_default();
    if has_dot_segment(path) { Err(DOT_SEGMENT) } else { Ok(()) }
}

/// Whether a server could understand a part of the path as `.` or `..`, also when it is
/// percent-encoded.
fn has_dot_segment(path: &str) -> bool {
    let path = path.to_ascii_lowercase().replace("%2e", ".").replace("%2f", "/");
    path.replace("%5c", "/").split('/').any(|segment| matches!(segment, "." | ".."))
}

/// A URL with a secret query. The placeholder of a secret, as the query or as a value in it, would
/// overwrite the secret that it stands for.
pub(super) fn secret_url(guard: &Guard) -> impl FnMut(Field<'_>) -> Option<SecretUrl<String>> {
    let mut read = http_url(guard);
    move |field| {
        let url: SecretUrl<String> = read(field)?.into();
        let mut parts = url.query.iter().flat_map(|query| query.split(['&', '=']));
        if parts.any(|part| part == REDACTED) { field.invalid(IS_REDACTED) } else { Some(url) }
    }
}

/// A URL that a shopper's browser opens. The address is not checked, because no service connects to
/// it.
pub(super) fn link(guard: &Guard) -> impl FnMut(Field<'_>) -> Option<String> {
    let is_http_allowed = guard.transport == Transport::HttpAllowed;
    move |field| {
        parsed(1..=2000, |text| {
            check_syntax(text)?;
            let url = Url::parse(text).map_err(|_not_a_url| NOT_AN_HTTP_URL)?;
            let is_secure = url.scheme() == "https" || is_http_allowed;
            if is_secure { Ok(String::from(url)) } else { Err("must be an https URL") }
        })(field)
    }
}

/// A URL to which paths are appended.
pub(super) fn base_url(guard: &Guard) -> impl FnMut(Field<'_>) -> Option<String> {
    let mut read = http_url(guard);
    move |field| match read(field)? {
        text if text.contains('?') => {
            field.invalid("must not have a query: paths are put behind it")
        }
        text => Some(text),
    }
}

pub(super) fn path(field: Field<'_>) -> Option<String> {
    parsed(1..=1000, |text| {
        let is_plain =
            text.bytes().all(|b| b.is_ascii_graphic() && !matches!(b, b'?' | b'#' | b'\\'));
        if !text.starts_with('/') || !is_plain {
            Err("must be a path that begins with /")
        } else if has_dot_segment(text) {
            Err(DOT_SEGMENT)
        } else {
            Ok(text.to_owned())
        }
    })(field)
}

pub(super) fn email(field: Field<'_>) -> Option<String> {
    parsed(3..=254, |text| {
        if is_email(text) { Ok(text.to_owned()) } else { Err("must be an e-mail address") }
    })(field)
}
