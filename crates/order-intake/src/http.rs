//! HTTP handlers.

pub(crate) mod erasures;
pub(crate) mod orders;
pub(crate) mod publish;
pub(crate) mod reset;
pub(crate) mod summary;

use domain::access::Scope;
use platform::identity::{Access, Caller};

/// Rejects callers that may not read orders.
fn require_reader(caller: &Caller) -> Result<(), Access> {
    caller.require_any(&[Scope::Orders, Scope::Read])
}
