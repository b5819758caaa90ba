//! Replays, and messages that are sent again.

pub(super) mod advance;
pub(super) mod make_ready;
pub(super) mod recovery;
pub(super) mod replay;
