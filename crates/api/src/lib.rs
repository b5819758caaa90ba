//! The bodies of responses, one module for each service that writes them. Console and portal read the same types.
//!
//! Pages read the responses of older services, too. A field that is added to a body therefore gets
//! `#[serde(default)]`, and `#[schema(required)]` if every response of the new service has it.

pub mod delivery;
pub mod exchange;
pub mod mails;
pub mod orders;
pub mod returns;
pub mod warehouse;
