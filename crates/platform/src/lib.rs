//! A process before it means anything: settings, logs and traces, an HTTP server with TLS, the
//! check of bearer tokens, health, a database pool, owned tasks, and the way an error becomes an
//! answer.
//!
//! A service is a type that implements [`Service`]; its `main` is [`run`]. Whatever two services
//! would otherwise both hold, and that knows nothing of returns or RabbitMQ, lives here.

pub mod config;
pub mod database;
pub mod health;
pub mod http;
pub mod idempotency;
pub mod identity;
pub mod limits;
pub mod retry;
pub mod sealing;
pub mod telemetry;

mod client;
mod clock;
mod failure;
mod memory;
mod openapi;
mod process;
mod tasks;

pub use client::{client_tls, http_client};
pub use clock::{Clock, Timestamp};
pub use failure::{ErrorKind, Failure, Problem, chain};
pub use memory::{MemoryBudget, MemoryPermit, Overloaded};
pub use openapi::openapi;
pub use process::{Process, Running, Service, run};
pub use tasks::Tasks;
