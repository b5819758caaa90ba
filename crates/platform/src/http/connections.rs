//! The connections of a server: limits those of one network, closes idle ones, and counts those without a request.
//!
//! actix-web calls [`Connections::add`] after it has accepted a connection, and the client may have sent a request by
//! then. A connection beyond the share of its network is closed for reading, and the middleware rejects the request.
//!
//! A client has `header_timeout` for its first request. Bytes that a busy worker has not read yet are not the
//! client's delay: such a connection stays open.
//!
//! A connection is idle if the client started a second request without finishing it, or does not read the
//! response. The timeout of actix-web covers only the keep-alive after a response. Clients that read a response
//! slowly get the same time as clients that do not read it, unless the response is sent in parts
//! ([`ResponseProgress`]).
//!
//! actix-web responds to a request that it cannot parse before any middleware runs, and closes the
//! connection. So a connection that ends without a request, or with one that cannot be parsed, counts as
//! one request of its address.

use std::{
    any::Any,
    io::Write as _,
    net::{IpAddr, Shutdown, TcpStream},
    os::fd::AsFd as _,
    sync::{Arc, Mutex, MutexGuard, Weak},
    time::Duration,
};

use actix_tls::accept::rustls_0_23::TlsStream;
use actix_web::{HttpRequest, dev::Extensions, rt};
use tokio::time::Instant;

use super::Settings;
use crate::{
    ErrorKind, Failure, Tasks,
    limits::{PerAddress, network},
    shares::{Share, Shares},
};

/// One network has at most this part of the connections.
const NETWORK_PART: usize = 8;
const CLOSE_INTERVAL: Duration = Duration::from_secs(1);
const REQUEST_TIMEOUT: &[u8] =
    b"HTTP/1.1 408 Request Timeout\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";

/// Every connection of a server.
#[derive(Clone)]
pub(super) struct Connections {
    all: Arc<Mutex<Vec<Weak<Connection>>>>,
    limits: Arc<PerAddress>,
    /// The connections of each network that is no trusted proxy.
    shares: Arc<Shares<IpAddr>>,
    settings: Settings,
}

/// One connection. actix-web drops it when the connection ends.
pub(super) struct Connection {
    socket: TcpStream,
    is_tls: bool,
    peer: IpAddr,
    /// `None` for a trusted proxy, and beyond the share of the network.
    _share: Option<Share<IpAddr>>,
    is_beyond_share: bool,
    usage: Mutex<Usage>,
    limits: Arc<PerAddress>,
}

/// A connection was refused, because its network has its share of the connections.
#[derive(Debug, thiserror::Error)]
#[error("too many connections from this network")]
pub(super) struct TooManyConnections;

impl Failure for TooManyConnections {
    fn kind(&self) -> ErrorKind {
        ErrorKind::Limited
    }
}

struct Usage {
    has_had_request: bool,
    active_requests: usize,
    idle_since: Instant,
}

impl Connections {
    /// Starts closing connections that had no request for too long.
    pub(super) fn start(settings: &Settings, limits: Arc<PerAddress>, tasks: &Tasks) -> Self {
        // actix-web limits the connections of all networks together.
        let share = settings.max_connections.div_ceil(NETWORK_PART);
        let shares = Shares::new(share, usize::MAX);
        let connections = Self { all: Arc::default(), limits, shares, settings: settings.clone() };
        let same = connections.clone();
        let keep_alive = settings.keep_alive;
        let header_timeout = settings.header_timeout;
        tasks.spawn_interval("idle connections", CLOSE_INTERVAL.min(header_timeout), move || {
            same.close_idle(header_timeout, keep_alive + header_timeout);
            std::future::ready(())
        });
        connections
    }

    /// Adds a connection. A connection of an unknown type is served without an idle timeout.
    pub(super) fn add(&self, io: &dyn Any, data: &mut Extensions) {
        type Plain = rt::net::TcpStream;
        let tls = io.downcast_ref::<TlsStream<Plain>>().map(|tls| tls.get_ref().0);
        let Some(stream) = tls.or_else(|| io.downcast_ref::<Plain>()) else { return };
        let Ok(peer) = stream.peer_addr() else { return };
        let peer = peer.ip().to_canonical();
        let Ok(socket) = stream.as_fd().try_clone_to_owned() else { return };
        let usage =
            Usage { has_had_request: false, active_requests: 0, idle_since: Instant::now() };
        let is_proxy = self.settings.is_trusted_proxy(peer);
        let share = if is_proxy { None } else { self.shares.try_acquire(&network(peer)) };
        let connection = Arc::new(Connection {
            socket: socket.into(),
            is_tls: tls.is_some(),
            peer,
            is_beyond_share: !is_proxy && share.is_none(),
            _share: share,
            usage: Mutex::new(usage),
            limits: self.limits.clone(),
        });
        if connection.is_beyond_share {
            tracing::info!(
                remote_address = %peer,
                "connection closed: its network has too many connections"
            );
            // The connection may already be closed.
            connection.socket.shutdown(Shutdown::Read).ok();
        }
        lock(&self.all).push(Arc::downgrade(&connection));
        data.insert(connection);
    }

    fn close_idle(&self, first_timeout: Duration, timeout: Duration) {
        lock(&self.all).retain(|connection| {
            let Some(connection) = connection.upgrade() else { return false };
            let has_had_request = lock(&connection.usage).has_had_request;
            let is_idle = if has_had_request {
                connection.is_idle(timeout)
            } else {
                connection.is_idle(first_timeout) && !connection.has_unread_bytes()
            };
            if is_idle && !has_had_request {
                connection.respond_with_timeout();
            }
            if is_idle {
                // The connection may already be closed.
                connection.socket.shutdown(Shutdown::Both).ok();
            }
            !is_idle
        });
    }
}

impl Connection {
    /// Rejects a request that arrived before the connection was closed.
    pub(super) fn check_share(&self) -> Result<(), TooManyConnections> {
        if self.is_beyond_share { Err(TooManyConnections) } else { Ok(()) }
    }

    /// Whether the client had no request for so long.
    fn is_idle(&self, timeout: Duration) -> bool {
        let usage = lock(&self.usage);
        usage.active_requests == 0 && usage.idle_since.elapsed() > timeout
    }

    /// Whether the client sent bytes that no worker has read yet.
    fn has_unread_bytes(&self) -> bool {
        matches!(self.socket.peek(&mut [0]), Ok(1..))
    }

    /// Tells a client that its first request did not arrive in time. Only TLS clients see no response.
    fn respond_with_timeout(&self) {
        tracing::info!(
            status = 408,
            remote_address = %self.peer,
            "connection closed: no complete request arrived in time"
        );
        if !self.is_tls {
            // The client may not read it.
            (&self.socket).write_all(REQUEST_TIMEOUT).ok();
        }
    }

    /// Whether actix-web ended the connection with an error. It shuts the socket down after the last
    /// response, when the client closes the connection, and after a timeout, but not after an error.
    /// A socket that was shut down accepts no bytes, not even none.
    fn ended_with_error(&self) -> bool {
        let is_open = (&self.socket).write(&[]).is_ok();
        // TLS clients often close the connection without the notice that TLS requires, which is an error.
        is_open && !(self.is_tls && self.is_closed_by_client())
    }

    fn is_closed_by_client(&self) -> bool {
        matches!(self.socket.peek(&mut [0]), Ok(0))
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        if !lock(&self.usage).has_had_request || self.ended_with_error() {
            // The limit takes effect on the next request of the address.
            self.limits.count(self.peer).ok();
        }
    }
}

/// A request is in flight on a connection until this is dropped.
pub(super) struct ActiveRequest(Arc<Connection>);

impl ActiveRequest {
    pub(super) fn on(connection: &Arc<Connection>) -> Self {
        let mut usage = lock(&connection.usage);
        usage.has_had_request = true;
        usage.active_requests += 1;
        drop(usage);
        Self(connection.clone())
    }
}

impl Drop for ActiveRequest {
    fn drop(&mut self) {
        let mut usage = lock(&self.0.usage);
        usage.active_requests -= 1;
        usage.idle_since = Instant::now();
    }
}

/// The connection of a long response that is sent in parts. It is idle if the client does not read the next part in time.
#[derive(Clone)]
pub struct ResponseProgress(Option<Arc<Connection>>);

impl ResponseProgress {
    pub fn of(request: &HttpRequest) -> Self {
        Self(request.conn_data::<Arc<Connection>>().cloned())
    }

    /// Records that the client has read the parts before.
    pub fn made(&self) {
        if let Some(connection) = &self.0 {
            lock(&connection.usage).idle_since = Instant::now();
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}
