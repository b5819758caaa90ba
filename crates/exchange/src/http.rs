//! What shoppers' portals, merchants and operators see: one module for each thing.

pub(crate) mod exchange_orders;
pub(crate) mod variants;
