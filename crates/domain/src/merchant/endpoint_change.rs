//! The body of a request that sets an endpoint.

use super::authentication::Authentication;
use super::endpoint::Endpoint;
use super::guard::Guard;
use super::headers::headers;
use super::interface::Interface;
use super::urls::{path, secret_url};
use crate::json::{Field, Object, integer, object, read_fields};
use crate::message_kind::MessageVersion;
use crate::variant_identifier::has_placeholder;

impl Endpoint<String> {
    /// Reads the new state of an endpoint. It has no signing secrets and is not paused. Auth adds when its
    /// certificate expires.
    pub fn read(document: &Object<'_>, interface: Interface, guard: &Guard) -> Option<Self> {
        let url = document.optional("url", |field| {
            let url = secret_url(guard)(field)?;
            check_placeholder(field, &url.base, interface)?;
            Some(url)
        });
        let path = document.optional("path", |field| {
            let path = path(field)?;
            check_placeholder(field, &path, interface)?;
            Some(path)
        });
        let headers = document.optional("headers", |field| {
            object(|document: &Object<'_>| headers(field, document))(field)
        });
        let authentication = document
            .optional("authentication", object(|object| Authentication::read(object, guard)));
        let timeout = document.optional("timeout_ms", integer(100..=120_000));
        let version = document.optional("version", |field| read_version(field, interface));
        let replay_days =
            document.optional("recovery_replay_days", |field| read_replay_days(field, interface));
        if document.has("url") && document.has("path") {
            document.invalid("path", "give the whole url or a path, not both");
        }
        read_fields!(document => Self {
            url: url,
            path: path,
            headers: headers.map(Option::unwrap_or_default),
            authentication: authentication.map(|it| it.unwrap_or(Authentication::None)),
            timeout_ms: timeout.map(|millis| millis.and_then(|millis| millis.try_into().ok())),
            version: version,
            recovery_replay_days: replay_days;
            certificate_expires_at: None,
            paused: false,
            signing_secrets: Vec::new(),
        })
    }
}

/// A message version that the interface supports.
fn read_version(field: Field<'_>, interface: Interface) -> Option<MessageVersion> {
    let number = integer(0..=i64::from(u16::MAX))(field)?;
    let versions = interface.versions();
    versions.iter().copied().find(|version| i64::from(version.0) == number).or_else(|| {
        let known = versions.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        field.invalid(format!("is not a version of {interface}: supported are {known}"))
    })
}

/// Only messages can be sent again.
fn read_replay_days(field: Field<'_>, interface: Interface) -> Option<u16> {
    if interface == Interface::Variants {
        return field.invalid("is for messages: variants are requested");
    }
    integer(1..=30)(field)
}

/// The variants endpoint needs a placeholder for the product in its path.
fn check_placeholder(field: Field<'_>, text: &str, interface: Interface) -> Option<()> {
    let is_missing = interface == Interface::Variants && !has_placeholder(text);
    if is_missing { field.invalid("must have {variant_identifier} in its path") } else { Some(()) }
}
