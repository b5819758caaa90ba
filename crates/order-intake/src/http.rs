//! HTTP handlers.

pub(crate) mod orders;
pub(crate) mod publish;
