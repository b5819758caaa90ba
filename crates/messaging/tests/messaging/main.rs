//! Events over a real broker and a real database, with injected failures.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test that cannot go on should panic"
)]

mod backlog;
mod batches;
mod dead_letters;
mod definitions;
mod events;
mod failures;
mod large_events;
mod locked_rows;
mod outages;
mod publisher;
mod relay;
mod republishing;
mod restoring;
mod test_app;
