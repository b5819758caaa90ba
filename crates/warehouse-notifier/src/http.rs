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

/// Returns the merchant of a request that only warehouses may make.
fn warehouse(app: &App, caller: &Caller) -> Result<Arc<Merchant>, Problem> {
    caller.require(Scope::Warehouse)?;
    Ok(app.merchants.merchant_for(caller)?)
}

/// Returns the merchant of a request that warehouses and the merchant may make.
fn warehouse_or_merchant(app: &App, caller: &Caller) -> Result<Arc<Merchant>, Problem> {
    caller.require(Scope::Warehouse).or_else(|_denied| caller.require(Scope::Orders))?;
    Ok(app.merchants.merchant_for(caller)?)
}
