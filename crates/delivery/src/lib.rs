//! The webhook engine: a message that a service committed reaches the merchant's endpoint, in
//! order, signed and retried, or ends where an operator sees it. It is never lost.

pub mod client;
pub mod guard;
pub mod outcome;
pub mod signing;
pub mod window;

#[cfg(test)]
mod fixture;
