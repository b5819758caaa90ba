//! Endpoints: their send windows, health, results and latencies.

pub(super) mod details;
pub(super) mod health;
pub(super) mod latencies;
pub(super) mod reports;
pub(super) mod rows;
pub(super) mod samples;
pub(super) mod states;
pub(super) mod windows;
