//! The URLs and addresses that Backhaul may send requests to (SSRF protection): public addresses and
//! allowed networks.
//!
//! Auth checks the URLs that it stores. Delivery checks each URL before a request, and each resolved
//! address before it connects.

mod address;
#[cfg(test)]
mod tests;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::IpNet;
use url::{Host, Url};

pub use address::{Embedding, Reason};

/// Rule for endpoint and token URLs. The default allows public addresses over HTTPS.
#[derive(Clone, Debug, Default)]
pub struct Guard {
    pub transport: Transport,
    /// Non-public networks that are allowed. An IPv6 network that embeds IPv4 addresses does not
    /// allow the embedded addresses: they are checked too.
    pub allowed_networks: Vec<IpNet>,
}

/// Allowed URL schemes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Transport {
    #[default]
    HttpsOnly,
    HttpAllowed,
}

impl Guard {
    /// The rule of the settings `delivery.https_only` and `delivery.allowed_networks`.
    pub fn new(https_only: bool, allowed_networks: &[IpNet]) -> Self {
        let transport = if https_only { Transport::HttpsOnly } else { Transport::HttpAllowed };
        Self { transport, allowed_networks: allowed_networks.to_vec() }
    }

    /// Checks a URL. A host name passes, unless it always means a non-public address. Delivery checks
    /// the resolved addresses of host names when it connects.
    pub fn check_url(&self, url: &Url) -> Result<(), GuardError> {
        match (url.scheme(), self.transport) {
            ("https", _) | ("http", Transport::HttpAllowed) => {}
            (scheme, _) => return Err(GuardError::Scheme(scheme.to_owned())),
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(GuardError::UserInfo);
        }
        match url.host() {
            Some(Host::Ipv4(address)) => self.check_address(IpAddr::V4(address)),
            Some(Host::Ipv6(address)) => self.check_address(IpAddr::V6(address)),
            Some(Host::Domain(name)) => self.check_name(name),
            None => Err(GuardError::NoHost),
        }
    }

    fn check_name(&self, name: &str) -> Result<(), GuardError> {
        let addresses = address::known_name(name);
        let checked = addresses.iter().map(|address| self.check_address(*address));
        checked.reduce(|first, next| next.or(first)).unwrap_or(Ok(()))
    }

    /// Checks an address before connecting to it.
    pub fn check_address(&self, address: IpAddr) -> Result<(), GuardError> {
        match address {
            IpAddr::V4(v4) => self.check_v4(v4),
            IpAddr::V6(v6) => self.check_v6(v6),
        }
        .map_err(|reason| GuardError::Address { address, reason })
    }

    fn check_v4(&self, address: Ipv4Addr) -> Result<(), Reason> {
        match address::reserved_v4(address) {
            Some(reason) if !self.is_allowed(IpAddr::V4(address)) => Err(reason),
            _ => Ok(()),
        }
    }

    fn check_v6(&self, address: Ipv6Addr) -> Result<(), Reason> {
        let allowed = self.is_allowed(IpAddr::V6(address));
        match (address::embedded_v4(address), address::reserved_v6(address)) {
            (Some((_, inner)), _) if allowed => self.check_v4(inner),
            (Some((embedding, _)), _) => Err(Reason::Embedded(embedding)),
            (None, Some(reason)) if !allowed => Err(reason),
            (None, _) => Ok(()),
        }
    }

    fn is_allowed(&self, address: IpAddr) -> bool {
        self.allowed_networks.iter().any(|network| network.contains(&address))
    }
}

/// A URL or an address that must not be connected to.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GuardError {
    #[error("scheme `{0}` is not allowed for an endpoint")]
    Scheme(String),
    #[error("an endpoint URL must not contain a user name or password")]
    UserInfo,
    #[error("an endpoint URL must have a host")]
    NoHost,
    #[error("address {address} is refused: {reason}")]
    Address { address: IpAddr, reason: Reason },
}
