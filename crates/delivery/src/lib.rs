//! The webhook engine: a message that a service committed reaches the merchant's endpoint, in
//! order, signed and retried, or ends where an operator sees it. It is never lost.
//!
//! PostgreSQL is the schedule and the record, RabbitMQ the transport and the operators' window.
//! [`Deliveries::append`] writes a message in the service's own transaction; the dispatcher queues
//! what is due; senders on every replica make the attempts and settle them.
//!
//! The parts of an attempt, from the outside in: [`guard`] says which addresses may be dialled,
//! [`client`] dials them, [`signing`] signs, [`tokens`] holds the tokens that merchants issue to
//! us, [`endpoints`] opens the merchants' settings, [`attempt`] makes one attempt, [`outcome`]
//! says what follows from it, [`window`] keeps a sick endpoint from taking everyone's place.

pub mod attempt;
pub mod client;
pub mod endpoint;
pub mod endpoints;
pub mod guard;
pub mod observer;
pub mod outcome;
pub mod signing;
pub mod tokens;
pub mod window;

mod ack_tracker;
mod admin;
mod backlog;
mod dead_letters;
mod deliveries;
mod dispatcher;
mod engine;
mod in_flight;
mod job;
mod ledger;
mod metrics;
mod replayer;
mod sender;
mod settings;
mod settler;

#[cfg(test)]
mod fixture;

use diesel_migrations::{EmbeddedMigrations, embed_migrations};

pub use admin::routes;
pub use deliveries::Deliveries;
pub use ledger::NewMessage;
pub use settings::Settings;

/// The tables this crate keeps in the database of a service that delivers.
pub const MIGRATIONS: EmbeddedMigrations = embed_migrations!("../../migrations/delivery");

/// Defaults of `[delivery]`.
pub const DEFAULTS: &str = include_str!("../default.toml");
