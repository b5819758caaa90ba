//! What merchants see: one module for each thing they can do.

pub(crate) mod orders;
pub(crate) mod publish;
