//! Handlers: parse, call, respond.
//!
//! See docs/decisions/warehouse-interfaces.md.

pub(crate) mod drop_shipments;
pub(crate) mod inbound;
pub(crate) mod outbound;
pub(crate) mod receipts;
pub(crate) mod records;

use std::sync::Arc;

use domain::access::{MerchantId, Scope};
use domain::merchant::Merchant;
use platform::Problem;
use platform::http::PageLimit;
use platform::identity::{Access, Caller};
use serde::Deserialize;

use crate::App;

/// Returns the merchant of a request that only warehouses may make.
fn warehouse(app: &App, caller: &Caller) -> Result<Arc<Merchant>, Problem> {
    caller.require(Scope::Warehouse)?;
    Ok(app.merchants.merchant_for(caller)?)
}

/// A page of a list, of one merchant or of all.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
pub(crate) struct ListQuery {
    /// Only entries of this merchant
    #[param(value_type = Option<String>)]
    merchant: Option<MerchantId>,
    /// Maximum number of entries
    #[serde(default)]
    #[param(inline)]
    limit: PageLimit,
    /// The `next` of the previous page
    after: Option<String>,
}

fn require_reader(caller: &Caller) -> Result<(), Access> {
    caller.require_any(&[Scope::Warehouse, Scope::Orders, Scope::Read])
}

/// Returns the merchant of a request that reads one record.
fn reader(app: &App, caller: &Caller) -> Result<Arc<Merchant>, Problem> {
    require_reader(caller)?;
    Ok(app.merchants.merchant_for(caller)?)
}

/// Returns the merchant whose records a list shows, or `None` for all merchants.
fn listed(
    app: &App,
    caller: &Caller,
    named: Option<&MerchantId>,
) -> Result<Option<MerchantId>, Problem> {
    require_reader(caller)?;
    Ok(app.merchants.listed_for(caller, named)?)
}

/// Returns the merchant of a request that warehouses and the merchant may make.
fn warehouse_or_merchant(app: &App, caller: &Caller) -> Result<Arc<Merchant>, Problem> {
    caller.require(Scope::Warehouse).or_else(|_denied| caller.require(Scope::Orders))?;
    Ok(app.merchants.merchant_for(caller)?)
}
