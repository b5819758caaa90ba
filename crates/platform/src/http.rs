//! HTTP as every service speaks it: one server, one way to read a body, one middleware.

mod body;
mod client_ip;
mod connections;
mod memory;
mod middleware;
mod page;
mod sequential;
mod server;
mod tls;

use std::time::Duration;

use actix_web::{HttpResponse, http::StatusCode};
use serde::Deserialize;

pub use crate::failure::ErrorBody;
pub use body::{Body, Form, Json, JsonSource};
pub use client_ip::ClientIp;
pub use memory::{RequestMemory, reserve_for_response};
pub use middleware::request_id;
pub use page::{BadCursor, Page, PageLimit};
pub use sequential::Sequential;
pub(crate) use server::{bind, check};

use crate::config::List;

/// A response whose body is JSON text already.
pub fn json_response(status: StatusCode, json: String) -> HttpResponse {
    HttpResponse::build(status).content_type("application/json").body(json)
}

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

/// The header in which a proxy says whom it speaks for.
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
    pub certificate: std::path::PathBuf,
    pub key: std::path::PathBuf,
    /// TLS 1.2 only, unless this is set.
    #[serde(default)]
    pub allow_tls13: bool,
}
