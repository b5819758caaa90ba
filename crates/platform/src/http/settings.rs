//! The settings of the HTTP server.

use std::{path::PathBuf, time::Duration};

use serde::Deserialize;

use crate::config::List;

/// `[http]`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    pub host: String,
    pub port: u16,
    pub workers: usize,
    #[serde(with = "humantime_serde")]
    pub keep_alive: Duration,
    #[serde(with = "humantime_serde")]
    pub header_timeout: Duration,
    #[serde(with = "humantime_serde")]
    pub body_timeout: Duration,
    #[serde(with = "humantime_serde")]
    pub request_timeout: Duration,
    pub max_body_bytes: usize,
    pub max_inflight_bytes: usize,
    pub max_connections: usize,
    pub trusted_proxies: List<ipnet::IpNet>,
    pub proxy_header: ProxyHeader,
    pub behind_tls_proxy: bool,
    pub tls: Option<Tls>,
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
