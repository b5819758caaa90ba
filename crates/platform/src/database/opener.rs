//! Opens the connections of a pool.

use std::{
    collections::VecDeque,
    fmt::Display,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use diesel::ConnectionError;
use diesel_async::{AsyncPgConnection, pooled_connection::PoolableConnection as _};
use tokio::{runtime::Handle, task::JoinHandle};

use super::connect::connect;

/// A server that takes longer to accept a connection has failed, and the next attempt may reach its successor.
const OPEN_TIMEOUT: Duration = Duration::from_secs(5);

type Connecting = JoinHandle<Result<AsyncPgConnection, ConnectionError>>;

/// Opens connections on the runtime that it was created on. A caller that stops waiting leaves its connection
/// to the next caller. Otherwise a server that needs longer than callers wait would be asked for new
/// connections all the time, and none would ever be used.
#[derive(Clone)]
pub(super) struct Opener {
    postgres: tokio_postgres::Config,
    runtime: Handle,
    abandoned: Arc<Mutex<VecDeque<Connecting>>>,
}

/// A connection that is being opened for a caller.
struct Attempt<'a> {
    connecting: Option<Connecting>,
    opener: &'a Opener,
}

impl Opener {
    pub(super) fn new(postgres: tokio_postgres::Config) -> Self {
        Self { postgres, runtime: Handle::current(), abandoned: Arc::default() }
    }

    /// Waits for a connection that another caller no longer waits for, or opens one.
    pub(super) async fn open(&self) -> Result<AsyncPgConnection, ConnectionError> {
        loop {
            let abandoned =
                self.abandoned.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
            let is_new = abandoned.is_none();
            let connecting = abandoned.unwrap_or_else(|| self.connect());
            let mut attempt = Attempt { connecting: Some(connecting), opener: self };
            let mut opened = attempt.wait().await;
            // The server may have closed a connection that nobody used.
            if is_new || opened.as_mut().is_ok_and(|conn| !conn.is_broken()) {
                return opened;
            }
        }
    }

    fn connect(&self) -> Connecting {
        let postgres = self.postgres.clone();
        self.runtime.spawn(async move {
            let opened = tokio::time::timeout(OPEN_TIMEOUT, connect(postgres)).await;
            opened.map_err(|elapsed| bad_connection(&elapsed))?
        })
    }
}

impl Attempt<'_> {
    async fn wait(&mut self) -> Result<AsyncPgConnection, ConnectionError> {
        let Some(connecting) = &mut self.connecting else {
            return Err(bad_connection(&"the connection was taken"));
        };
        let opened = connecting.await;
        self.connecting = None;
        opened.map_err(|error| bad_connection(&error))?
    }
}

impl Drop for Attempt<'_> {
    fn drop(&mut self) {
        if let Some(connecting) = self.connecting.take() {
            let abandoned = self.opener.abandoned.lock();
            abandoned.unwrap_or_else(PoisonError::into_inner).push_back(connecting);
        }
    }
}

pub(super) fn bad_connection(reason: &dyn Display) -> ConnectionError {
    ConnectionError::BadConnection(reason.to_string())
}
