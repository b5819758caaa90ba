//! Closes idle connections: the client started a second request without finishing it, or does not read
//! the response. The timeouts of actix-web cover only the first request of a connection and the
//! keep-alive after a response. Clients that read a response slowly get the same time as clients that
//! do not read it.

use std::{
    any::Any,
    net::{Shutdown, TcpStream},
    os::fd::AsFd as _,
    sync::{Arc, Mutex, MutexGuard, Weak},
    time::Duration,
};

use actix_tls::accept::rustls_0_23::TlsStream;
use actix_web::{dev::Extensions, rt};
use tokio::time::Instant;

use crate::Tasks;

const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Every connection of a server.
#[derive(Clone, Default)]
pub(super) struct IdleConnections(Arc<Mutex<Vec<Weak<Connection>>>>);

/// One connection. actix-web drops it when the connection ends.
pub(super) struct Connection {
    socket: TcpStream,
    used: Mutex<Use>,
}

struct Use {
    requests: usize,
    idle_since: Instant,
}

impl IdleConnections {
    /// Starts closing connections that had no request for `timeout`.
    pub(super) fn start(timeout: Duration, tasks: &Tasks) -> Self {
        let lines = Self::default();
        let same = lines.clone();
        tasks.spawn_interval("lines", LOOK_EVERY, move || {
            same.close_idle(timeout);
            std::future::ready(())
        });
        lines
    }

    /// Adds a connection. A connection of an unknown type is served without an idle timeout.
    pub(super) fn add(&self, io: &dyn Any, data: &mut Extensions) {
        type Plain = rt::net::TcpStream;
        let tls = || io.downcast_ref::<TlsStream<Plain>>().map(|tls| tls.get_ref().0);
        let Some(stream) = io.downcast_ref::<Plain>().or_else(tls) else { return };
        let Ok(socket) = stream.as_fd().try_clone_to_owned() else { return };
        let used = Mutex::new(Use { requests: 0, idle_since: Instant::now() });
        let line = Arc::new(Connection { socket: socket.into(), used });
        lock(&self.0).push(Arc::downgrade(&line));
        data.insert(line);
    }

    fn close_idle(&self, timeout: Duration) {
        lock(&self.0).retain(|line| {
            let Some(line) = line.upgrade() else { return false };
            let idle = {
                let used = lock(&line.used);
                used.requests == 0 && used.idle_since.elapsed() > timeout
            };
            if idle {
                // The connection may already be closed.
                line.socket.shutdown(Shutdown::Both).ok();
            }
            !idle
        });
    }
}

/// A request is in flight on a connection until this is dropped.
pub(super) struct ActiveRequest(Arc<Connection>);

impl ActiveRequest {
    pub(super) fn on(line: &Arc<Connection>) -> Self {
        lock(&line.used).requests += 1;
        Self(line.clone())
    }
}

impl Drop for ActiveRequest {
    fn drop(&mut self) {
        let mut used = lock(&self.0.used);
        used.requests -= 1;
        used.idle_since = Instant::now();
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}
