//! Events between services over RabbitMQ, and the only crate that names its client library.
//!
//! Out: [`Outbox::append`] writes an event in the transaction that causes it; a relay, one per
//! service however many replicas run, publishes it and deletes the row once the broker confirmed.
//! In: [`consume`] hands batches of events to a [`Handler`] in one transaction together with the
//! memory of their ids, and acknowledges after the commit. So an event is published at least once
//! and takes effect exactly once.
//!
//! Underneath, a [`BrokerConnection`] is a connection that heals itself: any error means dial again, declare
//! again, consume again. Publishing and consuming use separate links.

mod backlog;
mod connection;
mod consumer;
mod envelope;
mod inbox;
mod outbox;
mod publisher;
mod schema;
mod subscription;
mod topology;

use std::{
    num::{NonZeroU16, NonZeroUsize},
    time::Duration,
};

use diesel_migrations::{EmbeddedMigrations, embed_migrations};
use platform::{Process, chain};
use secrecy::SecretString;
use serde::Deserialize;

pub use connection::{BrokerConnection, BrokerError};
pub use consumer::{HandleError, Handler, consume};
pub use envelope::Envelope;
use outbox::Relay;
pub use outbox::{Outbox, RELAY_LOCK, SerializedEvent, Statement};
pub use publisher::{Message, NotQueued, Publisher};
pub use subscription::{Incoming, Subscription};
pub use topology::{Exchange, Queue, Topology};

/// The tables this crate keeps in every service's database.
pub const MIGRATIONS: EmbeddedMigrations = embed_migrations!("../../migrations/messaging");

/// Defaults of `[broker]`.
pub const DEFAULTS: &str = include_str!("../default.toml");

/// `[broker]`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// `amqp://` or `amqps://`, with user, password and virtual host.
    #[serde(deserialize_with = "connection::address")]
    pub url: SecretString,
    pub namespace: String,
    pub prefetch: NonZeroU16,
    pub batch_size: NonZeroUsize,
    pub relay_batch_size: NonZeroUsize,
    #[serde(with = "humantime_serde")]
    pub relay_poll_interval: Duration,
    #[serde(with = "humantime_serde")]
    pub inbox_retention: Duration,
}

/// This process and its broker.
#[derive(Clone)]
pub struct Broker {
    pub publishing: BrokerConnection,
    pub consuming: BrokerConnection,
    pub topology: Topology,
    pub settings: Settings,
}

impl Broker {
    /// Connects in the background and keeps connected; readiness says whether it is.
    pub fn start(
        service: &'static str,
        process: &Process,
        settings: Settings,
        topology: Topology,
    ) -> Self {
        let link = |role| {
            BrokerConnection::start(
                &settings.url,
                &topology,
                &format!("{service} {role}"),
                &process.tasks,
            )
        };
        let (publishing, consuming) = (link("publishing"), link("consuming"));
        for (part, link) in [("broker.publishing", &publishing), ("broker.consuming", &consuming)] {
            let link = link.clone();
            process.health.add(part, move || {
                let state = link.state();
                async move { state.map_err(|error| chain(&error)) }
            });
        }
        Self { publishing, consuming, topology, settings }
    }

    /// Starts the relay of this service's outbox.
    pub fn start_relay(&self, service: &'static str, process: &Process) -> Outbox {
        let outbox = Outbox::new(service);
        let relay = Relay::new(
            &outbox,
            process.pool.clone(),
            Publisher::new(self.publishing.clone()),
            &self.topology,
            &self.settings,
        );
        process.tasks.spawn("relay", |stop| relay.run(stop));
        backlog::watch(process);
        outbox
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use platform::config;

    use super::*;

    #[test]
    fn settings_that_can_never_work_are_refused() {
        let read = |name: &str, value: &str| {
            let mut given = HashMap::from(
                [("DATABASE__URL", "postgres://h"), ("BROKER__URL", "amqp://h")]
                    .map(|(name, value)| (format!("TEST__{name}"), value.to_owned())),
            );
            given.insert(format!("TEST__BROKER__{name}"), value.to_owned());
            config::load::<HashMap<String, Settings>>("test", &[DEFAULTS], None, given)
        };
        assert!(read("RELAY_BATCH_SIZE", "1").is_ok());
        assert!(read("URL", "amqps://user:secret@host:5671/%2f").is_ok());
        for (name, value) in [
            ("RELAY_BATCH_SIZE", "0"),
            ("BATCH_SIZE", "0"),
            ("PREFETCH", "0"),
            ("URL", "rabbitmq:5672"),
            ("URL", "http://user:secret@host"),
        ] {
            let refused = read(name, value).unwrap_err().to_string();
            assert!(refused.contains(&format!("broker.{}", name.to_lowercase())), "{refused}");
            assert!(!refused.contains("secret"), "{refused}");
        }
    }
}
