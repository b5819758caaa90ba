//! HTTP handlers, one module for each resource.

pub(crate) mod exchange_orders;
pub(crate) mod variants;

use domain::access::Scope;

/// Scopes that read exchange orders and variants.
const READERS: [Scope; 2] = [Scope::Returns, Scope::Read];
