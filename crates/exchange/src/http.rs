//! HTTP handlers, one module for each resource.

pub(crate) mod exchange_orders;
pub(crate) mod variants;
