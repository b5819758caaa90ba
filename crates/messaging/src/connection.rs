//! A connection to the broker that heals itself.
//!
//! The client library's own recovery can hang, so it is off. Here any error, any silence and any
//! doubt means the same: let the connection go, dial again with growing pauses, declare the
//! topology again. Whoever uses the link waits for the next connection and starts over; what was
//! not confirmed or acknowledged comes again. Only a broker that says it has no room for messages
//! is waited for.

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

use crate::Topology;

/// No word from the broker for so long is as good as no connection.
const TIMEOUT: Duration = Duration::from_secs(5);

/// How often, in seconds, either side says that it is there, unless the address says otherwise. After
/// twice as long a broker that is lost with its machine is let go; left to itself it takes two minutes.
const HEARTBEAT: u16 = 10;

/// Why the broker did not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum BrokerError {
    #[error("not connected to the broker")]
    Down,
    #[error("the broker's address: {0}")]
    Address(&'static str),
    /// It is short of memory or disk.
    #[error("the broker takes no messages at the moment")]
    Blocked,
    #[error("no answer from the broker within {} s", TIMEOUT.as_secs())]
    Timeout,
    #[error("broker")]
    Broker(#[from] lapin::Error),
}

/// An address that can be dialled. What is wrong with it is not said: a password is in it.
pub(crate) fn address<'de, D: Deserializer<'de>>(from: D) -> Result<SecretString, D::Error> {
    let url = SecretString::deserialize(from)?;
    parse(&url).map_err(D::Error::custom)?;
    Ok(url)
}

fn parse(url: &SecretString) -> Result<AMQPUri, &'static str> {
    let parsed = url.expose_secret().parse::<AMQPUri>();
    let mut uri = parsed.map_err(|_reason| "it is not like amqp://user:password@host:5672/%2f")?;
    uri.query.heartbeat.get_or_insert(HEARTBEAT);
    Ok(uri)
}

/// Waits for the broker, but not for ever.
pub(crate) async fn bounded<T>(
    asked: impl Future<Output = lapin::Result<T>>,
) -> Result<T, BrokerError> {
    match tokio::time::timeout(TIMEOUT, asked).await {
        Ok(answer) => Ok(answer?),
        Err(_elapsed) => Err(BrokerError::Timeout),
    }
}

/// One connection, from the handshake to the first doubt.
pub(crate) struct Session {
    connection: Connection,
    doubted: CancellationToken,
}

impl Session {
    pub(crate) async fn channel(&self) -> Result<lapin::Channel, BrokerError> {
        bounded(self.connection.create_channel()).await
    }

    /// Whether the broker takes messages over it. One that is short of memory or disk reads nothing
    /// from whoever publishes until it has room again, not even a farewell.
    pub(crate) fn takes_messages(&self) -> Result<(), BrokerError> {
        if self.connection.status().blocked() { Err(BrokerError::Blocked) } else { Ok(()) }
    }

    /// Gives the connection up, unless the broker has said why it is silent: another connection
    /// would fare no better, and this one could not be closed.
    pub(crate) fn invalidate_after(&self, error: BrokerError) -> BrokerError {
        match self.takes_messages() {
            Ok(()) => {
                self.invalidate();
                error
            }
            Err(blocked) => blocked,
        }
    }

    /// Something went wrong: no one should use this connection any more.
    pub(crate) fn invalidate(&self) {
        self.doubted.cancel();
    }

    /// Resolves when the connection is given up.
    pub(crate) fn ended(&self) -> impl Future<Output = ()> + Send + 'static {
        self.doubted.clone().cancelled_owned()
    }
}

/// A handle on the connection, whichever it is at the moment.
#[derive(Clone)]
pub struct BrokerConnection(watch::Receiver<Option<Arc<Session>>>);

impl BrokerConnection {
    /// Starts to connect, and keeps at it until the process ends: what was begun over it is
    /// finished first.
    pub fn start(url: &SecretString, topology: &Topology, name: &str, tasks: &Tasks) -> Self {
        let (sender, receiver) = watch::channel(None);
        let dialler =
            Dialler { url: url.clone(), topology: topology.clone(), name: name.to_owned(), sender };
        tasks.spawn_infrastructure("link", |stop| dialler.run(stop));
        Self(receiver)
    }

    /// Whether it is up now.
    pub fn state(&self) -> Result<(), BrokerError> {
        if self.0.borrow().is_some() { Ok(()) } else { Err(BrokerError::Down) }
    }

    /// The connection; waits for one if there is none, but not for ever.
    pub(crate) async fn session_with_timeout(&mut self) -> Result<Arc<Session>, BrokerError> {
        tokio::time::timeout(TIMEOUT, self.session()).await.unwrap_or(Err(BrokerError::Down))
    }

    /// The connection; waits for one if there is none.
    pub(crate) async fn session(&mut self) -> Result<Arc<Session>, BrokerError> {
        let up =
            self.0.wait_for(Option::is_some).await.map_err(|_process_ends| BrokerError::Down)?;
        up.clone().ok_or(BrokerError::Down)
    }
}

struct Dialler {
    url: SecretString,
    topology: Topology,
    name: String,
    sender: watch::Sender<Option<Arc<Session>>>,
}

impl Dialler {
    async fn run(self, stop: CancellationToken) {
        let mut backoff = Backoff::new(Duration::from_millis(100), Duration::from_secs(3));
        loop {
            let dialled = tokio::select! {
                () = stop.cancelled() => return,
                dialled = self.dial() => dialled,
            };
            match dialled {
                Ok(session) => {
                    tracing::info!(link = self.name, "connected to the broker");
                    backoff.reset();
                    self.hold(Arc::new(session), &stop).await;
                }
                Err(error) => {
                    tracing::warn!(
                        link = self.name,
                        error = chain(&error),
                        "the broker cannot be reached"
                    );
                }
            }
            tokio::select! {
                () = stop.cancelled() => return,
                () = tokio::time::sleep(backoff.pause()) => {}
            }
        }
    }

    async fn dial(&self) -> Result<Session, BrokerError> {
        let properties =
            ConnectionProperties::default().with_connection_name(self.name.as_str().into());
        let uri = parse(&self.url).map_err(BrokerError::Address)?;
        let connection = bounded(Connection::connect_uri(uri, properties)).await?;
        let session = Session { connection, doubted: CancellationToken::new() };
        let mut channel = session.channel().await?;
        match bounded(self.topology.declare(&channel)).await {
            // Whoever runs the broker declared it all and keeps the right to: see that it is there.
            Err(BrokerError::Broker(error)) if refused(&error) => {
                channel = session.channel().await?;
                bounded(self.topology.verify(&channel)).await?;
            }
            declared => declared?,
        }
        bounded(channel.close(200, "declared".into())).await?;
        Ok(session)
    }

    /// Lends the connection out until someone doubts it or the process ends.
    async fn hold(&self, session: Arc<Session>, stop: &CancellationToken) {
        let mut events = Box::pin(session.connection.events_listener());
        self.sender.send_replace(Some(session.clone()));
        loop {
            tokio::select! {
                () = stop.cancelled() => break,
                () = session.doubted.cancelled() => break,
                event = events.next() => match event {
                    Some(Event::Error(error)) => {
                        tracing::warn!(link = self.name, error = chain(&error), "the broker connection broke");
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
        if let Err(error) = bounded(session.connection.close(200, "bye".into())).await {
            tracing::debug!(
                link = self.name,
                error = chain(&error),
                "the connection was gone already"
            );
        }
    }
}

/// Whether the user lacks a right. The channel is gone then, the connection is not.
fn refused(error: &lapin::Error) -> bool {
    let ErrorKind::ProtocolError(error) = error.kind() else { return false };
    *error.kind() == AMQPErrorKind::Soft(AMQPSoftError::ACCESSREFUSED)
}
