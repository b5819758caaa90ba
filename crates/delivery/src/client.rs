//! The one HTTP client that dials merchants: their endpoints and their token servers.
//!
//! No request leaves it unguarded: URLs are judged by [`GuardedClient::request`], names by the
//! resolver built in. It follows no redirect and uses no proxy, so nothing is dialled that was
//! not judged.

use std::error::Error;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use reqwest::dns::Resolve;
use reqwest::{Method, RequestBuilder, Response, redirect};
use url::Url;

use crate::guard::{Guard, GuardedResolver, Refused};

/// At most this much of the answer to a message is read.
pub const ANSWER_LIMIT: usize = 64 * 1024;

/// Connections that sit unused longer are closed; most servers close theirs after a minute.
const IDLE: Duration = Duration::from_secs(30);

#[derive(Clone, Debug)]
pub struct GuardedClient {
    http: reqwest::Client,
    guard: Arc<Guard>,
}

impl GuardedClient {
    pub fn new(
        guard: Guard,
        names: Arc<dyn Resolve>,
        tls: rustls::ClientConfig,
        connect_timeout: Duration,
    ) -> Result<Self, reqwest::Error> {
        let guard = Arc::new(guard);
        let http = reqwest::Client::builder()
            .user_agent(concat!("backhaul/", env!("CARGO_PKG_VERSION")))
            .dns_resolver(GuardedResolver::new(Arc::clone(&guard), names))
            .tls_backend_preconfigured(tls)
            .redirect(redirect::Policy::none())
            .no_proxy()
            .connect_timeout(connect_timeout)
            .pool_idle_timeout(IDLE)
            .build()?;
        Ok(Self { http, guard })
    }

    /// Begins a request. The total deadline is the caller's to set, around everything it awaits.
    pub fn request(&self, method: Method, url: Url) -> Result<RequestBuilder, Refused> {
        self.guard.check_url(&url)?;
        Ok(self.http.request(method, url))
    }
}

/// Why no usable answer came back.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    #[error("timed out")]
    TimedOut,
    #[error("{0}")]
    AddressRefused(Refused),
    #[error("TLS failed: {0}")]
    TlsFailed(String),
    #[error("unreachable: {0}")]
    Unreachable(String),
}

impl From<Refused> for Fault {
    fn from(refused: Refused) -> Self {
        Self::AddressRefused(refused)
    }
}

impl From<reqwest::Error> for Fault {
    fn from(error: reqwest::Error) -> Self {
        // The URL may hold what a merchant would not want in a log.
        let error = error.without_url();
        if let Some(refused) = cause::<Refused>(&error) {
            Self::AddressRefused(refused.clone())
        } else if let Some(tls) = cause::<rustls::Error>(&error) {
            Self::TlsFailed(tls.to_string())
        } else if error.is_timeout() {
            Self::TimedOut
        } else {
            Self::Unreachable(innermost(&error).to_string())
        }
    }
}

/// What was read of an answer's body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Read {
    pub body: Bytes,
    pub end: End,
}

/// How reading a body ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    Complete,
    /// More than the limit was on its way.
    TooLarge,
    Broken(Fault),
}

/// Reads a body up to the limit and the deadline; what arrived until then is kept.
pub async fn read_body(mut answer: Response, limit: usize, deadline: tokio::time::Instant) -> Read {
    let mut body = BytesMut::new();
    let end = loop {
        match tokio::time::timeout_at(deadline, answer.chunk()).await {
            Err(_) => break End::Broken(Fault::TimedOut),
            Ok(Err(error)) => break End::Broken(error.into()),
            Ok(Ok(None)) => break End::Complete,
            Ok(Ok(Some(chunk))) => {
                let room = limit - body.len();
                if chunk.len() > room {
                    body.extend_from_slice(chunk.get(..room).unwrap_or_default());
                    break End::TooLarge;
                }
                body.extend_from_slice(&chunk);
            }
        }
    };
    Read { body: body.freeze(), end }
}

/// The first error of type `E` in the chain, also when an I/O error wraps it.
pub(crate) fn cause<'e, E: Error + 'static>(error: &'e (dyn Error + 'static)) -> Option<&'e E> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(found) = error.downcast_ref::<E>() {
            return Some(found);
        }
        // An I/O error's source is its content's source: the content itself would be skipped.
        next = match error.downcast_ref::<io::Error>().and_then(io::Error::get_ref) {
            Some(content) => Some(content),
            None => error.source(),
        };
    }
    None
}

fn innermost<'e>(error: &'e (dyn Error + 'static)) -> &'e (dyn Error + 'static) {
    let mut error = error;
    while let Some(source) = error.source() {
        error = source;
    }
    error
}
