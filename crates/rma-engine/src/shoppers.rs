//! Shoppers: the portals in which they return units, the proofs that they know an order, and their view of a
//! return.

pub(crate) mod deep_links;
pub(crate) mod labels;
pub(crate) mod lookups;
pub(crate) mod portals;
pub(crate) mod request;
pub(crate) mod timeline;
pub(crate) mod view;
