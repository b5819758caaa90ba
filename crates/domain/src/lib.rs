//! The rules of returns, exchanges and fulfilment, and the messages on the wire.
//!
//! The crate does no I/O and reads no clock; time is an argument. It depends on no other crate of
//! the workspace.

pub mod access;
pub mod csv;
pub mod delivery;
pub mod email;
pub mod endpoint_state;
pub mod erasure;
pub mod event;
pub mod exchange;
pub mod json;
pub mod mail;
pub mod merchant;
pub mod message_kind;
pub mod notice;
pub mod order;
pub mod policy;
pub mod printable;
pub mod returns;
pub mod samples;
pub mod schema;
pub mod warehouse;

mod variant_identifier;
mod words;
