//! Replays, and messages that are sent again.

pub(super) mod advance;
pub(super) mod replay;
pub(super) mod requeue;
