//! The webhook engine: a message that a service committed reaches the merchant's endpoint, in
//! order, signed and retried, or ends where an operator sees it. It is never lost.
//!
//! The parts, from the outside in: [`guard`] says which addresses may be dialled, [`client`]
//! dials them, [`signing`] signs, [`tokens`] holds the tokens that merchants issue to us,
//! [`attempt`] makes one attempt, [`outcome`] says what follows from it, [`window`] keeps a
//! sick endpoint from taking everyone's place.

pub mod attempt;
pub mod client;
pub mod endpoint;
pub mod guard;
pub mod outcome;
pub mod signing;
pub mod tokens;
pub mod window;

#[cfg(test)]
mod fixture;
