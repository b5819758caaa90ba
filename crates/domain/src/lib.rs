//! What Backhaul knows of returns, exchanges and fulfilment, as pure rules: the wire messages,
//! the checks a document must pass, money, identifiers and states.
//!
//! Nothing here does I/O or reads a clock; time comes in as an argument. Every other crate may
//! depend on this one, and this one depends on none of them.

pub mod access;
pub mod delivery;
pub mod document;
pub mod event;
pub mod exchange;
pub mod kind;
pub mod merchant;
pub mod order;
pub mod returns;
pub mod schema;
pub mod warehouse;
