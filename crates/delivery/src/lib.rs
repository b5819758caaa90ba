//! The engine of messages: delivers them to merchants' endpoints, signed, retried and in order, and sends mails.
//!
//! PostgreSQL is the schedule and the record, RabbitMQ the transport. A message is delivered, or becomes a dead
//! letter; it is never lost. Its way:
//!
//! 1. [`Deliveries::append`] stores message and delivery in the service's transaction and wakes the dispatcher
//!    after the commit (`store/append.rs`, `insert_messages.sql`). The delivery is `ready`.
//! 2. The dispatcher, on one replica, finds endpoints with due deliveries (`dispatcher/dispatch_state/sendable.rs`,
//!    `due_endpoints.sql`), claims as many as the endpoints may have (`claim_due.sql`: `ready` becomes
//!    `queued`, with a lease). A task of its own publishes them to the work queue of their kind
//!    (`work_queues.rs`, `queue_publisher.rs`).
//! 3. A sender, on any replica, receives the message when there is memory for it (`sender/queue_source.rs`),
//!    checks a possible duplicate (`sender/claims.rs`) and makes the attempt (`sender/run_attempt.rs`,
//!    `attempt.rs`; for mails `mail.rs`).
//! 4. `outcome::decide` turns the outcome into a decision: delivered, a retry at a time, or dead.
//! 5. The settle queue collects results (`sender/settle_queue.rs`); the settler stores a batch of them in one
//!    transaction (`settler.rs`, `store/settle.rs`): the delivery is deleted or ready again
//!    (`update_deliveries.sql`), the next one of its ordering key becomes ready (`unblock_next.sql`), the
//!    attempt is logged (`log_attempts.sql`), the window changes (`store/endpoints/windows.rs`). A dead letter
//!    is published before (`dead_letters.rs`).
//! 6. The sender acknowledges the message to the broker (`ack_tracker.rs`; slow messages earlier), and the
//!    dispatcher learns that the delivery left the broker (`settled_ids.rs`; from other replicas by
//!    `check_in_flight`).
//!
//! If a step fails, the lease expires and the delivery is ready again.

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
mod awaiting_memory;
mod dead_letters;
mod deliveries;
mod dispatcher;
mod endpoint_reports;
mod engine;
mod histogram;
mod mail;
mod metrics;
mod observer;
mod overdue_metrics;
mod queue_message;
mod queue_publisher;
mod recent_dead_letters;
mod recovery_replays;
mod replayer;
mod sender;
mod settings;
mod settled_ids;
mod settlement;
mod settler;
mod store;
#[cfg(test)]
mod test_merchant;
mod webhooks;
mod work_queues;

use diesel_migrations::{EmbeddedMigrations, embed_migrations};

pub use admin::routes;
pub use deliveries::Deliveries;
pub use mail::{MailSettings, Mailer};
pub use observer::SettlementObserver;
pub use outcome::Decision;
pub use settings::Settings;
pub use settlement::Settlement;
pub use store::{ErasedMessages, NewDelivery, NewMessage, lock_free_counter, state_of};
pub use webhooks::webhook;

/// Tables of the engine, in the database of each service that delivers.
pub const MIGRATIONS: EmbeddedMigrations = embed_migrations!("../../migrations/delivery");

/// The tag of [`routes`] in API documents, with its description.
pub const TAG: (&str, &str) = ("deliveries", "Messages to merchants, their attempts and replays");

/// Defaults of section `[mail]`, for services that send mails.
pub const MAIL_DEFAULTS: &str = include_str!("../mail.toml");

/// Defaults of section `[delivery]`.
pub const DEFAULTS: &str = include_str!("../default.toml");
