//! HTTP headers of requests to a merchant's endpoint.

use std::collections::BTreeMap;

use crate::json::{Field, Object, parsed};

/// The maximum number of headers of an endpoint.
const MAX_HEADERS: usize = 50;
const MAX_NAME_CHARS: usize = 100;
const MAX_VALUE_CHARS: usize = 1000;
const MAX_SESSION_TOKEN_CHARS: usize = 4096;

/// The placeholder of a secret in responses.
pub const REDACTED: &str = "********";
pub(super) const IS_REDACTED: &str = "is the placeholder of a secret: send the secret itself";

/// Headers that HTTP or the service sets.
const RESERVED: [&str; 14] = [
    "accept",
    "accept-encoding",
    "authorization",
    "connection",
    "content-encoding",
    "content-length",
    "content-type",
    "expect",
    "host",
    "te",
    "trailer",
    "traceparent",
    "transfer-encoding",
    "upgrade",
];
const RESERVED_PREFIXES: [&str; 5] =
    ["keep-alive", "proxy-", "tracestate", "webhook-", "x-service-"];

/// Whether HTTP or the service sets this header, so that a merchant cannot.
pub fn is_reserved_header(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    RESERVED.contains(&name.as_str())
        || RESERVED_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
}

pub(super) fn headers(field: Field<'_>, document: &Object<'_>) -> Option<BTreeMap<String, String>> {
    if document.entries().count() > MAX_HEADERS {
        return field.invalid(format!("must have at most {MAX_HEADERS} headers"));
    }
    let mut headers = BTreeMap::new();
    let mut is_valid = true;
    for (name, field) in document.entries() {
        let name_checked = check_name(name).and_then(|()| {
            let is_repeated = headers.contains_key(&name.to_ascii_lowercase());
            if is_repeated { Err("another header has the same name") } else { Ok(()) }
        });
        let value =
            name_checked.map_or_else(|reason| field.invalid(reason), |()| secret_value(field));
        match value {
            Some(value) => drop(headers.insert(name.to_ascii_lowercase(), value)),
            None => is_valid = false,
        }
    }
    is_valid.then_some(headers)
}

/// Accepts a header name that neither HTTP nor the service sets.
fn check_name(name: &str) -> Result<(), &'static str> {
    let is_token = |b: u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b);
    if name.is_empty() || name.len() > MAX_NAME_CHARS || !name.bytes().all(is_token) {
        return Err("is not a header name");
    }
    if is_reserved_header(name) {
        return Err("this header is set by the service");
    }
    Ok(())
}

/// The name of a header that carries an API key. `Authorization` is allowed here.
pub(super) fn key_header(field: Field<'_>) -> Option<String> {
    parsed(1..=MAX_NAME_CHARS, |name| {
        if !name.eq_ignore_ascii_case("authorization") {
            check_name(name)?;
        }
        Ok::<_, &str>(name.to_ascii_lowercase())
    })(field)
}

pub(super) fn header_value(field: Field<'_>) -> Option<String> {
    parsed(0..=MAX_VALUE_CHARS, |text| {
        let is_printable = text.chars().all(|c| matches!(c, ' '..='~'));
        if is_printable { Ok(text.to_owned()) } else { Err("must be printable ASCII") }
    })(field)
}

/// A header value that is not blank.
pub(super) fn filled_value(field: Field<'_>) -> Option<String> {
    let value = header_value(field)?;
    if value.trim().is_empty() { field.invalid("must not be empty") } else { Some(value) }
}

/// A secret header value. The placeholder would overwrite the secret that it stands for.
pub(super) fn secret_value(field: Field<'_>) -> Option<String> {
    let value = header_value(field)?;
    if value.trim() == REDACTED { field.invalid(IS_REDACTED) } else { Some(value) }
}

/// A secret header value that is not blank.
pub(super) fn filled_secret(field: Field<'_>) -> Option<String> {
    filled_value(field)?;
    secret_value(field)
}

/// A session token of AWS, which is longer than other secrets.
pub(super) fn session_token(field: Field<'_>) -> Option<String> {
    parsed(1..=MAX_SESSION_TOKEN_CHARS, |text| {
        let is_printable = text.chars().all(|c| matches!(c, '!'..='~'));
        match text {
            REDACTED => Err(IS_REDACTED),
            _ if is_printable => Ok(text.to_owned()),
            _ => Err("must be printable ASCII without spaces"),
        }
    })(field)
}

/// A part of the scope of an AWS signature. A slash would end it.
pub(super) fn scope_part(field: Field<'_>) -> Option<String> {
    parsed(1..=MAX_NAME_CHARS, |text| {
        let is_valid = text.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b));
        if is_valid { Ok(text.to_owned()) } else { Err("must be letters, digits, -, _ or .") }
    })(field)
}

/// The user name of HTTP Basic authentication. A colon would end it (RFC 7617).
pub(super) fn basic_username(field: Field<'_>) -> Option<String> {
    let value = header_value(field)?;
    if value.contains(':') { field.invalid("must not contain a colon") } else { Some(value) }
}
