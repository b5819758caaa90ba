//! The whole engine against real servers and a sandbox merchant.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test that cannot go on should panic"
)]

mod cluster;
mod deadlines;
mod desk;
mod faults;
mod leaving;
mod log;
mod operators;
mod ordering_keys;
mod outcomes;
mod picking;
mod replays;
mod stage;
