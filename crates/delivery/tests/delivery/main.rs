//! Integration tests: the engine with PostgreSQL, RabbitMQ and a sandbox merchant.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a failed step of a test should panic"
)]

mod access;
mod admin;
mod cluster;
mod dead_letters;
mod direct_claims;
mod dispatching;
mod faults;
mod health;
mod listening;
mod locks;
mod memory;
mod ordering_keys;
mod outcomes;
mod partitions;
mod replay_control;
mod replays;
mod restoring;
mod scheduling;
mod shutdown;
mod test_app;
mod timeouts;
mod waiting;
