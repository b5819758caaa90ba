//! The whole engine against real servers and a sandbox merchant.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test that cannot go on should panic"
)]

mod admin;
mod cluster;
mod dead_letters;
mod deadlines;
mod desk;
mod dispatching;
mod faults;
mod ordering_keys;
mod outcomes;
mod partitions;
mod replays;
mod shutdown;
mod stage;
