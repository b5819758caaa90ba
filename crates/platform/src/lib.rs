//! The parts of a process that all services share: settings, logs and traces, an HTTP server with TLS,
//! the check of bearer tokens, health, a database pool, background tasks and error responses.
//!
//! A service is a type that implements [`Service`]; its `main` is [`run`]. Code that two services need
//! and that depends neither on the domain's rules nor on RabbitMQ belongs here.

pub mod batching;
pub mod config;
pub mod database;
pub mod health;
pub mod http;
pub mod idempotency;
pub mod identity;
pub mod limits;
pub mod rejections;
pub mod retry;
pub mod sealing;
pub mod settings;
pub mod shares;
pub mod shopper_proof;
pub mod signing;
pub mod telemetry;
pub mod url_path;

mod cli;
mod client;
mod client_identity;
mod clock;
mod definition;
mod failure;
mod memory;
mod migration_check;
mod openapi;
mod request_id;
mod running;
mod service;
mod slots;
mod tasks;
mod version;

pub use cli::run;
pub use client::{client_tls, http_client};
pub use client_identity::{ClientIdentity, IdentityError};
pub use clock::{Clock, Timestamp};
pub use failure::{
    DEFAULT_RETRY_AFTER, ErrorKind, Failure, Problem, chain, whole_seconds, with_retry,
};
pub use memory::{MAX_BATCH_BYTES, MemoryBudget, MemoryPermit, Overloaded};
pub use openapi::openapi;
pub use running::Running;
pub use service::{Process, Service};
pub use tasks::Tasks;
pub use version::{COMMIT, VERSION, version_text};
