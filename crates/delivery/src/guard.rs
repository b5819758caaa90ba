//! Which addresses a merchant's URL may lead to: public ones, and those the operator listed.
//!
//! The address that is checked is the address that is dialled. Host names are resolved by
//! [`GuardedResolver`], which the HTTP client asks at the moment it connects, so an answer that
//! changes between two look-ups is judged each time; hosts written as an address never reach a
//! resolver and are judged by [`Guard::check_url`] before the request is made.

mod address;
mod resolver;
#[cfg(test)]
mod tests;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::IpNet;
use url::{Host, Url};

pub use address::{Embedding, Reason};
pub use resolver::{GuardedResolver, SystemResolver};

/// The rule for endpoint and token URLs alike. The default allows public addresses over https.
#[derive(Clone, Debug, Default)]
pub struct Guard {
    pub transport: Transport,
    /// Networks that may be dialled although they are not public. Listing a network of
    /// addresses that embed IPv4 opens the tunnel, not what lies behind it: the embedded
    /// address is still judged.
    pub allowed: Vec<IpNet>,
}

/// Whether plain HTTP may be spoken to an endpoint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Transport {
    #[default]
    HttpsOnly,
    HttpToo,
}

impl Guard {
    /// Judges a URL before anything is dialled; a host name is judged later, by its addresses.
    pub fn check_url(&self, url: &Url) -> Result<(), Refused> {
        match (url.scheme(), self.transport) {
            ("https", _) | ("http", Transport::HttpToo) => {}
            (scheme, _) => return Err(Refused::Scheme(scheme.to_owned())),
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(Refused::UserInfo);
        }
        match url.host() {
            Some(Host::Ipv4(address)) => self.check_address(IpAddr::V4(address)),
            Some(Host::Ipv6(address)) => self.check_address(IpAddr::V6(address)),
            Some(Host::Domain(_)) => Ok(()),
            None => Err(Refused::NoHost),
        }
    }

    /// Judges an address that is about to be dialled.
    pub fn check_address(&self, address: IpAddr) -> Result<(), Refused> {
        match address {
            IpAddr::V4(v4) => self.check_v4(v4),
            IpAddr::V6(v6) => self.check_v6(v6),
        }
        .map_err(|reason| Refused::Address { address, reason })
    }

    fn check_v4(&self, address: Ipv4Addr) -> Result<(), Reason> {
        match address::reserved_v4(address) {
            Some(reason) if !self.lists(IpAddr::V4(address)) => Err(reason),
            _ => Ok(()),
        }
    }

    fn check_v6(&self, address: Ipv6Addr) -> Result<(), Reason> {
        let listed = self.lists(IpAddr::V6(address));
        match (address::embedded_v4(address), address::reserved_v6(address)) {
            (Some((_, inner)), _) if listed => self.check_v4(inner),
            (Some((embedding, _)), _) => Err(Reason::Embedded(embedding)),
            (None, Some(reason)) if !listed => Err(reason),
            (None, _) => Ok(()),
        }
    }

    fn lists(&self, address: IpAddr) -> bool {
        self.allowed.iter().any(|network| network.contains(&address))
    }
}

/// Why a URL or an address is not dialled.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    #[error("scheme `{0}` is not allowed for an endpoint")]
    Scheme(String),
    #[error("an endpoint URL must not carry a user name or password")]
    UserInfo,
    #[error("an endpoint URL needs a host")]
    NoHost,
    #[error("address {address} is refused: {reason}")]
    Address { address: IpAddr, reason: Reason },
}
