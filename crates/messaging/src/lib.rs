//! Events between services over RabbitMQ: topology, outbox, inbox and consumers.
//!
//! The way of an event: [`Outbox::append`] inserts it in the transaction that causes it and wakes the relay
//! after the commit (`outbox.rs`). The relay of the service publishes it (`outbox/relay.rs`,
//! `read_outbox_batch.sql`) and moves it to the published events when the broker has confirmed it
//! (`outbox/published.rs`, `move_published_events.sql`). The topic exchange puts it into the queue of each
//! consumer (`topology.rs`). [`consume`] passes batches of events to a [`Handler`] in the transaction that also
//! inserts their ids into the inbox. An event is published at least once and handled exactly once. Published
//! events are kept for some days and can be published again. No other crate uses the RabbitMQ client library.

mod backlog;
mod broker;
mod connection;
mod consumer;
mod dead_events;
mod dead_letters;
mod envelope;
mod handler;
mod inbox;
mod outbox;
mod publisher;
mod republish_requests;
mod republish_view;
mod republishes;
mod restore_check;
mod routes;
mod schema;
mod settings;
mod subscription;
mod topology;

use diesel_migrations::{EmbeddedMigrations, embed_migrations};

pub use backlog::{Backlog, BrokerState, QueueBacklog, ServiceBacklog};
pub use broker::Broker;
pub use connection::{BrokerConnection, BrokerError};
pub use consumer::consume;
pub use dead_events::{ErasedEvents, remove_erased_events};
pub use dead_letters::{OutdatedLetters, PurgeError, purge_dead_letters};
pub use envelope::Envelope;
pub use handler::{HandleError, Handler};
pub use outbox::{Outbox, SerializedEvent, erase_events};
pub use publisher::{Message, NotQueued, Publisher};
pub use restore_check::SEQUENCE_FLOOR;
pub use routes::routes;
pub use settings::Settings;
pub use subscription::{Incoming, Subscription};
pub use topology::{Exchange, Queue, Topology};

/// Migrations of the outbox, the published events and the inbox, for every service's database.
pub const MIGRATIONS: EmbeddedMigrations = embed_migrations!("../../migrations/messaging");

/// The tag of [`routes`] in API documents, with its description.
pub const TAG: (&str, &str) = (
    "events",
    "Events and messages that wait, and events that can be published again, for operators",
);

/// Defaults of `[broker]`.
pub const DEFAULTS: &str = include_str!("../default.toml");
