//! The ledger: which messages there are, which are under way, and what came of each.
//!
//! The invariant: a message that was appended is either in `deliveries` or has an attempt that
//! settled it, and it moves from one to the other in one transaction. The functions below take a
//! connection and open no transaction; whoever calls them does.

mod append;
mod log;
mod pick;
mod replay;
mod search;
mod settle;
#[cfg(test)]
mod tests;
mod windows;

use platform::{Timestamp, database::DatabaseError};
use uuid::Uuid;

pub use append::NewMessage;
pub(crate) use append::append;
pub(crate) use log::{Log, is_forgotten, oldest_id};
pub(crate) use pick::{
    Content, Due, Look, Picked, Queued, Walked, expire_leases, pick, release_claim, still_queued,
    unblock_heads,
};
pub(crate) use replay::{
    Replay, Superseded, advance, find_replay, keep_replay, next_replay, revive, withdraw,
};
pub(crate) use search::{Filter, Found, State, attempts, body, count, find, newest_first};
pub(crate) use settle::{Settlement, Tried, Verdict, settle};
pub(crate) use windows::Windows;

/// The id of a message: a UUID of version 7, so that ids sort by time and a day is a range of
/// them.
pub(crate) fn new_id(now: Timestamp) -> Uuid {
    let seconds = u64::try_from(now.timestamp()).unwrap_or_default();
    let context = uuid::NoContext;
    Uuid::new_v7(uuid::Timestamp::from_unix(context, seconds, now.timestamp_subsec_nanos()))
}

/// A stored value that this version of the program cannot read.
pub(crate) fn unreadable(what: impl std::error::Error + Send + Sync + 'static) -> DatabaseError {
    diesel::result::Error::DeserializationError(Box::new(what)).into()
}
