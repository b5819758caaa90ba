//! HTTP client for merchants' endpoints and token servers, with SSRF protection.
//!
//! [`GuardedClient::request`] checks the URL, the built-in resolver checks the resolved addresses.
//! The client follows no redirects and uses no proxy, which would bypass both checks.

mod connect_observer;
mod identities;

use std::error::Error;
use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use platform::ClientIdentity;
use reqwest::dns::Resolve;
use reqwest::{ClientBuilder, Method, Request, RequestBuilder, Response, redirect};
use rustls::sign::SingleCertAndKey;
use url::Url;

use self::connect_observer::{ConnectObserver, observe};
use self::identities::Identities;
use crate::guard::{Guard, GuardError, GuardedResolver};

/// Bounds the response to a message, and that of a token server.
pub const MAX_RESPONSE_BYTES: usize = 64 * 1024;

/// Idle connections are closed after this time; most servers close theirs after a minute.
const IDLE_TIMEOUT: Duration = Duration::from_secs(30);

pub(crate) const USER_AGENT: &str = concat!("backhaul/", env!("CARGO_PKG_VERSION"));

#[derive(Clone)]
pub struct GuardedClient {
    http: reqwest::Client,
    /// Opens a connection for each request.
    unpooled: reqwest::Client,
    guard: Arc<Guard>,
    resolver: Arc<dyn Resolve>,
    tls: rustls::ClientConfig,
    connect_timeout: Duration,
    identities: Identities,
}

impl GuardedClient {
    pub fn new(
        guard: Guard,
        resolver: Arc<dyn Resolve>,
        tls: rustls::ClientConfig,
        connect_timeout: Duration,
    ) -> Result<Self, reqwest::Error> {
        Self::build(Arc::new(guard), resolver, tls, connect_timeout, Identities::new())
    }

    fn build(
        guard: Arc<Guard>,
        resolver: Arc<dyn Resolve>,
        tls: rustls::ClientConfig,
        connect_timeout: Duration,
        identities: Identities,
    ) -> Result<Self, reqwest::Error> {
        let builder = || {
            ClientBuilder::new()
                .user_agent(USER_AGENT)
                .dns_resolver(GuardedResolver::new(Arc::clone(&guard), Arc::clone(&resolver)))
                .tls_backend_preconfigured(tls.clone())
                .redirect(redirect::Policy::none())
                .no_proxy()
                .connect_timeout(connect_timeout)
        };
        let http =
            builder().pool_idle_timeout(IDLE_TIMEOUT).connector_layer(ConnectObserver).build()?;
        let unpooled = builder().pool_max_idle_per_host(0).build()?;
        Ok(Self { http, unpooled, guard, resolver, tls, connect_timeout, identities })
    }

    /// The client whose connections have this client certificate. Its connections are not shared with
    /// those of other certificates.
    pub fn with_identity(&self, identity: &ClientIdentity) -> Result<Self, RequestError> {
        self.identities.get_or_build(identity, || {
            let mut tls = self.tls.clone();
            let certified_key = SingleCertAndKey::from(Arc::clone(&identity.certified_key));
            tls.client_auth_cert_resolver = Arc::new(certified_key);
            let guard = Arc::clone(&self.guard);
            let resolver = Arc::clone(&self.resolver);
            Self::build(guard, resolver, tls, self.connect_timeout, self.identities.clone())
        })
    }

    /// Sends a request. A server may close a kept-alive connection at any time, so a request that
    /// found its connection closed is sent once more over a new one. The caller sets a timeout.
    pub async fn send(&self, request: Request) -> Result<Response, reqwest::Error> {
        let copy = request.try_clone();
        let (result, has_connected) = observe(self.http.execute(request)).await;
        match (result, copy) {
            (Err(error), Some(copy)) if !has_connected && is_closed(&error) => {
                self.unpooled.execute(copy).await
            }
            (result, _) => result,
        }
    }

    /// Builds a request for [`GuardedClient::send`].
    pub fn request(&self, method: Method, url: Url) -> Result<RequestBuilder, GuardError> {
        self.guard.check_url(&url)?;
        Ok(self.http.request(method, url))
    }
}

impl fmt::Debug for GuardedClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GuardedClient").field("guard", &self.guard).finish_non_exhaustive()
    }
}

/// Whether the connection was closed before the head of a response arrived.
fn is_closed(error: &reqwest::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, UnexpectedEof};
    let closed = [BrokenPipe, ConnectionAborted, ConnectionReset, UnexpectedEof];
    cause::<hyper::Error>(error)
        .is_some_and(|error| error.is_incomplete_message() || error.is_closed())
        || cause::<io::Error>(error).is_some_and(|error| closed.contains(&error.kind()))
}

/// A request that got no complete response.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RequestError {
    #[error("timed out")]
    TimedOut,
    #[error("{0}")]
    AddressRefused(GuardError),
    #[error("TLS failed: {0}")]
    TlsFailed(String),
    #[error("unreachable: {0}")]
    Unreachable(String),
}

impl From<GuardError> for RequestError {
    fn from(error: GuardError) -> Self {
        Self::AddressRefused(error)
    }
}

impl From<reqwest::Error> for RequestError {
    fn from(error: reqwest::Error) -> Self {
        // The URL may contain a merchant's secret.
        let error = error.without_url();
        if let Some(refused) = cause::<GuardError>(&error) {
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

/// How reading a response body ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BodyEnd {
    Complete,
    /// The body is longer than the limit.
    TooLarge,
    Failed(RequestError),
}

/// Reads a body up to the limit and the deadline. Returns the part that arrived in any case.
pub async fn read_body(
    mut response: Response,
    max_bytes: usize,
    deadline: tokio::time::Instant,
) -> (Bytes, BodyEnd) {
    let mut body = BytesMut::new();
    let end = loop {
        match tokio::time::timeout_at(deadline, response.chunk()).await {
            Err(_) => break BodyEnd::Failed(RequestError::TimedOut),
            Ok(Err(error)) => break BodyEnd::Failed(error.into()),
            Ok(Ok(None)) => break BodyEnd::Complete,
            Ok(Ok(Some(chunk))) => {
                let left = max_bytes - body.len();
                if chunk.len() > left {
                    body.extend_from_slice(chunk.get(..left).unwrap_or_default());
                    break BodyEnd::TooLarge;
                }
                body.extend_from_slice(&chunk);
            }
        }
    };
    (body.freeze(), end)
}

/// Finds the first error of type `E` in the chain, also inside an I/O error.
pub(crate) fn cause<'e, E: Error + 'static>(error: &'e (dyn Error + 'static)) -> Option<&'e E> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(found) = error.downcast_ref::<E>() {
            return Some(found);
        }
        // `source` of an I/O error skips the error that it wraps.
        next = match error.downcast_ref::<io::Error>().and_then(io::Error::get_ref) {
            Some(inner) => Some(inner),
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
