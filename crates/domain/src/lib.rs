//! What Backhaul knows of returns, exchanges and fulfilment, as pure rules: the wire messages,
//! the checks a document must pass, money, identifiers and states.
//!
//! Nothing here does I/O or reads a clock; time comes in as an argument. Every other crate may
//! depend on this one, and this one depends on none of them.

pub mod access;
pub mod delivery;
pub mod event;
pub mod exchange;
pub mod json;
pub mod merchant;
pub mod message_kind;
pub mod order;
pub mod returns;
pub mod schema;
pub mod warehouse;
