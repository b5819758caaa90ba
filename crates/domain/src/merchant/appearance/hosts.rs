//! Readers of host names.

use std::num::NonZeroU16;

use crate::json::{Field, parsed};

const NOT_A_NAME: &str = "must be a host name, like returns.acme.example";
const NOT_A_HOST: &str = "must be a host, like cdn.acme.example, with a port if it needs one";

/// A host name in lower case. The dot tells it apart from the identifier of a merchant.
pub(super) fn host_name(field: Field<'_>) -> Option<String> {
    parsed(1..=253, |text| {
        let name = text.to_ascii_lowercase();
        let is_public = name.contains('.') && is_host_name(&name);
        if is_public { Ok(name) } else { Err(NOT_A_NAME) }
    })(field)
}

/// A host name or an IPv4 address, with an optional port.
pub(super) fn host(field: Field<'_>) -> Option<String> {
    parsed(1..=259, |text| {
        let host = text.to_ascii_lowercase();
        let (name, port) = host.split_once(':').unwrap_or((&host, "443"));
        let is_port =
            port.bytes().all(|b| b.is_ascii_digit()) && port.parse::<NonZeroU16>().is_ok();
        let is_host = is_host_name(name) || name.parse::<std::net::Ipv4Addr>().is_ok();
        if is_host && is_port { Ok(host) } else { Err(NOT_A_HOST) }
    })(field)
}

/// Whether the text is a host name and not an address. The last label of a name has a letter.
fn is_host_name(text: &str) -> bool {
    let is_label = |label: &str| {
        (1..=63).contains(&label.len())
            && label.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    let last = text.rsplit('.').next().unwrap_or_default();
    text.len() <= 253 && text.split('.').all(is_label) && last.contains(|c: char| c.is_alphabetic())
}
