//! The body of a request that sets an endpoint.

use std::collections::BTreeMap;

use super::authentication::Authentication;
use super::headers::headers;
use super::interface::Interface;
use super::urls::{http_url, path};
use crate::exchange::has_placeholder;
use crate::json::{Field, Object, integer, object};

/// The new state of an endpoint, with plain secrets and without signing secrets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndpointChange {
    pub url: Option<String>,
    pub path: Option<String>,
    pub headers: BTreeMap<String, String>,
    pub authentication: Authentication<String>,
    pub timeout_ms: Option<u32>,
}

impl EndpointChange {
    pub fn read(document: &Object<'_>, interface: Interface) -> Option<Self> {
        document.reject_unknown(&["url", "path", "headers", "authentication", "timeout_ms"]);
        let url =
            document.optional("url", |field| check_placeholder(field, http_url(field)?, interface));
        let path =
            document.optional("path", |field| check_placeholder(field, path(field)?, interface));
        let headers = document.optional("headers", object(headers));
        let authentication = document.optional("authentication", object(Authentication::read));
        let timeout = document.optional("timeout_ms", integer(100..=120_000));
        if document.has("url") && document.has("path") {
            document.invalid("path", "give the whole url or a path, not both");
        }
        Some(Self {
            url: url?,
            path: path?,
            headers: headers?.unwrap_or_default(),
            authentication: authentication?.unwrap_or(Authentication::None),
            timeout_ms: timeout?.and_then(|millis| millis.try_into().ok()),
        })
    }
}

/// The variants endpoint needs a placeholder for the product in its path.
fn check_placeholder(field: Field<'_>, text: String, interface: Interface) -> Option<String> {
    let is_missing = interface == Interface::Variants && !has_placeholder(&text);
    if is_missing {
        field.invalid("must hold {variant_identifier} in its path")
    } else {
        Some(text)
    }
}
