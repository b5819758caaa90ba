//! The handlers, and what they share.

pub(crate) mod returnable;

use std::sync::Arc;

use domain::access::Scope;
use domain::merchant::Merchant;
use platform::Problem;
use platform::identity::Caller;

use crate::App;

/// The merchant a caller with this scope acts for.
fn merchant_of(app: &App, caller: &Caller, scope: Scope) -> Result<Arc<Merchant>, Problem> {
    caller.require(scope)?;
    Ok(app.directory.of(caller)?)
}
