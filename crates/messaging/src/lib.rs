//! Events between services over RabbitMQ: topology, outbox, inbox and consumers.
//!
//! [`Outbox::append`] inserts an event in the transaction that causes it; one relay per service
//! publishes it. [`consume`] passes batches of events to a [`Handler`] in the transaction that also
//! inserts their ids into the inbox. An event is published at least once and handled exactly once.
//! No other crate uses the RabbitMQ client library.

mod backlog;
mod broker;
mod connection;
mod consumer;
mod envelope;
mod handler;
mod inbox;
mod outbox;
mod publisher;
mod schema;
mod subscription;
mod topology;

use diesel_migrations::{EmbeddedMigrations, embed_migrations};

pub use backlog::{Backlog, BrokerState, QueueBacklog, ServiceBacklog, routes};
pub use broker::{Broker, Settings};
pub use connection::{BrokerConnection, BrokerError};
pub use consumer::consume;
pub use envelope::Envelope;
pub use handler::{HandleError, Handler};
pub use outbox::{Outbox, RELAY_LOCK, SerializedEvent, SqlStatement};
pub use publisher::{Message, NotQueued, Publisher};
pub use subscription::{Incoming, Subscription};
pub use topology::{Exchange, Queue, Topology};

/// Migrations of the outbox and the inbox, for every service's database.
pub const MIGRATIONS: EmbeddedMigrations = embed_migrations!("../../migrations/messaging");

/// The tag of [`routes`] in API documents, with its description.
pub const TAG: (&str, &str) = ("backlog", "Events and messages that wait, for operators");

/// Defaults of `[broker]`.
pub const DEFAULTS: &str = include_str!("../default.toml");
