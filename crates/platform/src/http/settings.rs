//! The settings of the HTTP server.

use std::{net::IpAddr, path::PathBuf, time::Duration};

use serde::Deserialize;

use crate::config::{
    List,
    range::{self, GIB, HOUR, SECOND, TIB},
};

/// In milliseconds. The headers or the body of a distant client take longer.
const MIN_TIMEOUT: u64 = 100;
/// A lower limit would reject ordinary requests.
const MIN_BODY: u64 = 1_000;

/// `[http]`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    pub host: String,
    pub port: u16,
    #[serde(deserialize_with = "range::number::<0, 1_024, _, _>")]
    pub workers: usize,
    #[serde(deserialize_with = "range::time::<SECOND, HOUR, _>")]
    pub keep_alive: Duration,
    #[serde(deserialize_with = "range::time::<MIN_TIMEOUT, HOUR, _>")]
    pub header_timeout: Duration,
    #[serde(deserialize_with = "range::time::<MIN_TIMEOUT, HOUR, _>")]
    pub body_timeout: Duration,
    #[serde(deserialize_with = "range::time::<MIN_TIMEOUT, HOUR, _>")]
    pub request_timeout: Duration,
    #[serde(rename = "max_body", deserialize_with = "range::size::<MIN_BODY, GIB, _, _>")]
    pub max_body_bytes: usize,
    #[serde(rename = "max_inflight", deserialize_with = "range::size::<0, TIB, _, _>")]
    pub max_inflight_bytes: usize,
    #[serde(deserialize_with = "range::number::<1, 1_000_000, _, _>")]
    pub max_connections: usize,
    pub trusted_proxies: List<ipnet::IpNet>,
    pub proxy_header: ProxyHeader,
    pub behind_tls_proxy: bool,
    pub tls: Option<Tls>,
}

impl Settings {
    /// Whether the process believes the headers of a peer with this address.
    pub(super) fn is_trusted_proxy(&self, address: IpAddr) -> bool {
        self.trusted_proxies.iter().any(|network| network.contains(&address))
    }
}

/// The header in which a proxy names the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ProxyHeader {
    XForwardedFor,
    Forwarded,
}

/// `[http.tls]`; without it the service speaks plain HTTP.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tls {
    /// PEM files; read again when they change.
    pub certificate: PathBuf,
    pub key: PathBuf,
    /// TLS 1.2 only, unless this is set.
    #[serde(default)]
    pub allow_tls13: bool,
}
