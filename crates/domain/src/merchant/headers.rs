//! Readers of HTTP headers.

use std::collections::BTreeMap;

use crate::json::{Field, Object, parsed};

pub(super) fn headers(document: &Object<'_>) -> Option<BTreeMap<String, String>> {
    let mut headers = BTreeMap::new();
    let mut is_valid = true;
    for (name, field) in document.entries() {
        let value =
            check_name(name).map_or_else(|reason| field.invalid(reason), |()| header_value(field));
        match value {
            Some(value) => drop(headers.insert(name.to_ascii_lowercase(), value)),
            None => is_valid = false,
        }
    }
    is_valid.then_some(headers)
}

/// Accepts a header name that neither HTTP nor Backhaul sets.
fn check_name(name: &str) -> Result<(), &'static str> {
    const RESERVED: [&str; 9] = [
        "authorization",
        "connection",
        "content-length",
        "content-type",
        "host",
        "traceparent",
        "transfer-encoding",
        "te",
        "upgrade",
    ];
    let is_token = |b: u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b);
    let name = name.to_ascii_lowercase();
    if name.is_empty() || name.len() > 100 || !name.bytes().all(is_token) {
        return Err("is not a header name");
    }
    if RESERVED.contains(&name.as_str())
        || name.starts_with("webhook-")
        || name.starts_with("x-service-")
    {
        return Err("this header is set by the service");
    }
    Ok(())
}

/// The name of a header that carries an API key. `Authorization` is allowed here.
pub(super) fn key_header(field: Field<'_>) -> Option<String> {
    parsed(1..=100, |name| {
        if !name.eq_ignore_ascii_case("authorization") {
            check_name(name)?;
        }
        Ok::<_, &str>(name.to_ascii_lowercase())
    })(field)
}

pub(super) fn header_value(field: Field<'_>) -> Option<String> {
    parsed(0..=1000, |text| {
        let is_printable = text.chars().all(|c| matches!(c, ' '..='~'));
        if is_printable { Ok(text.to_owned()) } else { Err("must be printable ASCII") }
    })(field)
}
