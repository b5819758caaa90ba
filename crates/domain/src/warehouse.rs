//! What happens in a warehouse, and what the merchant is told of it.

mod received;

pub use received::UnitReceived;
