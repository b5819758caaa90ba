//! A broker connection that reconnects.
//!
//! The client library's own recovery can hang, so it is off. After any error or timeout the
//! connection is closed, opened again with back-off, and the topology is declared again. Unconfirmed
//! messages are published again, and unacknowledged ones are delivered again. A connection that the
//! broker blocked, because it is short of memory or disk, stays open.

use std::{future::Future, sync::Arc, time::Duration};

use futures_util::StreamExt;
use lapin::{
    Connection, ConnectionProperties, ErrorKind, Event,
    protocol::{AMQPErrorKind, AMQPSoftError},
    uri::AMQPUri,
};
use platform::{Tasks, chain, retry::Backoff};
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize as _, Deserializer, de::Error as _};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::topology::Topology;

/// Limit for every request to the broker.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Heartbeat interval in seconds, unless the URL sets one. A lost broker is detected after two
/// intervals; the client's default takes two minutes.
const HEARTBEAT: u16 = 10;

/// Bytes of a frame, unless the URL sets them. The client has buffers for 64 frames. With the broker's default
/// of 128 KiB, the two connections of a service took 16 MiB. All headers of a message are in one frame.
const FRAME_MAX: u32 = 16 * 1024;

/// Failure of a broker request.
#[derive(Debug, thiserror::Error)]
pub enum BrokerError {
    #[error("not connected to the broker")]
    Down,
    #[error("broker URL {0}")]
    Url(&'static str),
    /// The broker is short of memory or disk.
    #[error("the broker blocks publishers")]
    Blocked,
    #[error("no response from the broker within {} s", TIMEOUT.as_secs())]
    Timeout,
    #[error("broker request failed")]
    Broker(#[from] lapin::Error),
}

/// Deserializes a valid URL. The error does not quote the URL, which contains a password.
pub(crate) fn deserialize_url<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<SecretString, D::Error> {
    let url = SecretString::deserialize(deserializer)?;
    parse(&url).map_err(D::Error::custom)?;
    Ok(url)
}

fn parse(url: &SecretString) -> Result<AMQPUri, &'static str> {
    let parsed = url.expose_secret().parse::<AMQPUri>();
    let mut uri = parsed.map_err(|_reason| "is not like amqp://user:password@host:5672/%2f")?;
    uri.query.heartbeat.get_or_insert(HEARTBEAT);
    uri.query.frame_max.get_or_insert(FRAME_MAX);
    Ok(uri)
}

/// Limits a broker request to [`TIMEOUT`].
pub(crate) async fn with_timeout<T>(
    request: impl Future<Output = lapin::Result<T>>,
) -> Result<T, BrokerError> {
    match tokio::time::timeout(TIMEOUT, request).await {
        Ok(response) => Ok(response?),
        Err(_elapsed) => Err(BrokerError::Timeout),
    }
}

/// One open connection. After the first error it is invalidated and never used again.
pub(crate) struct Session {
    connection: Connection,
    invalidated: CancellationToken,
}

impl Session {
    pub(crate) async fn channel(&self) -> Result<lapin::Channel, BrokerError> {
        with_timeout(self.connection.create_channel()).await
    }

    /// Fails while the broker blocks this connection. A blocked broker reads nothing from
    /// publishers, not even a request to close.
    pub(crate) fn check_not_blocked(&self) -> Result<(), BrokerError> {
        if self.connection.status().blocked() { Err(BrokerError::Blocked) } else { Ok(()) }
    }

    /// Invalidates the connection unless it is blocked: a new connection would be blocked as well,
    /// and this one cannot be closed.
    pub(crate) fn invalidate_after(&self, error: BrokerError) -> BrokerError {
        match self.check_not_blocked() {
            Ok(()) => {
                self.invalidate();
                error
            }
            Err(blocked) => blocked,
        }
    }

    /// Ends the use of this connection.
    pub(crate) fn invalidate(&self) {
        self.invalidated.cancel();
    }

    /// Resolves when the connection is invalidated.
    pub(crate) fn ended(&self) -> impl Future<Output = ()> + Send + 'static {
        self.invalidated.clone().cancelled_owned()
    }
}

/// A handle to the current connection.
#[derive(Clone)]
pub struct BrokerConnection(watch::Receiver<Option<Arc<Session>>>);

impl BrokerConnection {
    /// Connects and reconnects until the process stops. Tasks that use the connection stop first.
    pub fn start(url: &SecretString, topology: &Topology, name: &str, tasks: &Tasks) -> Self {
        let (sender, receiver) = watch::channel(None);
        let connector = Connector {
            url: url.clone(),
            topology: topology.clone(),
            name: name.to_owned(),
            sender,
        };
        tasks.spawn_infrastructure("broker connection", |stop| connector.run(stop));
        Self(receiver)
    }

    /// Fails if there is no connection now.
    pub fn state(&self) -> Result<(), BrokerError> {
        self.current().map(drop)
    }

    /// Waits for a connection, up to [`TIMEOUT`]. Fails if there is none then, or if the broker takes no messages.
    pub async fn check_ready(&self) -> Result<(), BrokerError> {
        self.clone().session_with_timeout().await?.check_not_blocked()
    }

    /// The connection, if there is one now.
    pub(crate) fn current(&self) -> Result<Arc<Session>, BrokerError> {
        self.0.borrow().clone().ok_or(BrokerError::Down)
    }

    /// Waits for a connection, up to [`TIMEOUT`].
    pub(crate) async fn session_with_timeout(&mut self) -> Result<Arc<Session>, BrokerError> {
        tokio::time::timeout(TIMEOUT, self.session()).await.unwrap_or(Err(BrokerError::Down))
    }

    /// Waits for a connection.
    pub(crate) async fn session(&mut self) -> Result<Arc<Session>, BrokerError> {
        let session =
            self.0.wait_for(Option::is_some).await.map_err(|_stopped| BrokerError::Down)?;
        session.clone().ok_or(BrokerError::Down)
    }
}

struct Connector {
    url: SecretString,
    topology: Topology,
    name: String,
    sender: watch::Sender<Option<Arc<Session>>>,
}

impl Connector {
    async fn run(self, stop: CancellationToken) {
        let mut backoff = Backoff::new(Duration::from_millis(100), Duration::from_secs(3));
        loop {
            let connected = tokio::select! {
                () = stop.cancelled() => return,
                connected = self.connect() => connected,
            };
            match connected {
                Ok(session) => {
                    tracing::info!(connection = self.name, "connected to the broker");
                    backoff.reset();
                    self.share_until_ended(Arc::new(session), &stop).await;
                }
                Err(error) => {
                    tracing::warn!(
                        connection = self.name,
                        error = chain(&error),
                        "broker connection failed"
                    );
                }
            }
            tokio::select! {
                () = stop.cancelled() => return,
                () = tokio::time::sleep(backoff.pause()) => {}
            }
        }
    }

    async fn connect(&self) -> Result<Session, BrokerError> {
        let properties =
            ConnectionProperties::default().with_connection_name(self.name.as_str().into());
        let uri = parse(&self.url).map_err(BrokerError::Url)?;
        let connection = with_timeout(Connection::connect_uri(uri, properties)).await?;
        let session = Session { connection, invalidated: CancellationToken::new() };
        let mut channel = session.channel().await?;
        match with_timeout(self.topology.declare(&channel)).await {
            // Only the operator may declare. The topology must exist already.
            Err(BrokerError::Broker(error)) if is_access_refused(&error) => {
                channel = session.channel().await?;
                with_timeout(self.topology.verify(&channel)).await?;
            }
            declared => declared?,
        }
        with_timeout(channel.close(200, "declared".into())).await?;
        Ok(session)
    }

    /// Publishes the session to its users, and waits until it is invalidated or the process stops.
    async fn share_until_ended(&self, session: Arc<Session>, stop: &CancellationToken) {
        let mut events = Box::pin(session.connection.events_listener());
        self.sender.send_replace(Some(session.clone()));
        loop {
            tokio::select! {
                () = stop.cancelled() => break,
                () = session.invalidated.cancelled() => break,
                event = events.next() => match event {
                    Some(Event::Error(error)) => {
                        tracing::warn!(connection = self.name, error = chain(&error), "broker connection lost");
                        break;
                    }
                    Some(_) => {}
                    None => break,
                },
            }
            if !session.connection.status().connected() {
                break;
            }
        }
        self.sender.send_replace(None);
        session.invalidate();
        if let Err(error) = with_timeout(session.connection.close(200, "bye".into())).await {
            tracing::debug!(
                connection = self.name,
                error = chain(&error),
                "broker connection was already closed"
            );
        }
    }
}

/// Whether the user lacks a permission. The broker closes the channel then, not the connection.
fn is_access_refused(error: &lapin::Error) -> bool {
    let ErrorKind::ProtocolError(error) = error.kind() else { return false };
    *error.kind() == AMQPErrorKind::Soft(AMQPSoftError::ACCESSREFUSED)
}
