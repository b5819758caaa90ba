//! The webhook engine: delivers messages to merchants' endpoints, signed, retried and in order.
//!
//! PostgreSQL is the schedule and the record, RabbitMQ the transport. [`Deliveries::append`] stores a
//! message in the service's transaction. The dispatcher queues due messages, and senders on every
//! replica send and settle them. A message is delivered, or becomes a dead letter; it is never lost.

pub mod attempt;
pub mod client;
pub mod endpoint;
pub mod endpoints;
pub mod guard;
pub mod outcome;
mod sigv4;
pub mod tokens;
pub mod window;

mod ack_tracker;
mod admin;
mod backlog;
mod dead_letters;
mod deliveries;
mod dispatcher;
mod engine;
mod latency;
mod metrics;
mod observer;
mod queue_message;
mod recent_dead_letters;
mod replayer;
mod sender;
mod settings;
mod settled_ids;
mod settlement;
mod settler;
mod store;
#[cfg(test)]
mod test_merchant;
mod waiting_messages;
mod webhooks;

use diesel_migrations::{EmbeddedMigrations, embed_migrations};

pub use admin::routes;
pub use deliveries::Deliveries;
pub use observer::SettlementObserver;
pub use outcome::Decision;
pub use settings::Settings;
pub use settlement::Settlement;
pub use store::{ErasedMessages, NewDelivery, NewMessage, lock_free_counter};
pub use webhooks::webhook;

/// Tables of the engine, in the database of each service that delivers.
pub const MIGRATIONS: EmbeddedMigrations = embed_migrations!("../../migrations/delivery");

/// The tag of [`routes`] in API documents, with its description.
pub const TAG: (&str, &str) = ("deliveries", "Messages to merchants, their attempts and replays");

/// Defaults of section `[delivery]`.
pub const DEFAULTS: &str = include_str!("../default.toml");
