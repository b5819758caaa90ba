//! Handlers: parse, call, respond.

pub(crate) mod drop_shipments;
pub(crate) mod inbound;
pub(crate) mod outbound;
pub(crate) mod receipts;

use std::sync::Arc;

use domain::access::Scope;
use domain::merchant::Merchant;
use platform::Problem;
use platform::identity::Caller;

use crate::App;

/// The merchant a warehouse's request is about.
fn warehouse(app: &App, caller: &Caller) -> Result<Arc<Merchant>, Problem> {
    caller.require(Scope::Warehouse)?;
    Ok(app.merchants.merchant_for(caller)?)
}

/// The merchant of a request that the merchant itself may make, too.
fn warehouse_or_merchant(app: &App, caller: &Caller) -> Result<Arc<Merchant>, Problem> {
    caller.require(Scope::Warehouse).or_else(|_refused| caller.require(Scope::Orders))?;
    Ok(app.merchants.merchant_for(caller)?)
}
