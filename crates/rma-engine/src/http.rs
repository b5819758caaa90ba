//! HTTP handlers and the code that they share.

pub(crate) mod carrier_events;
pub(crate) mod counts;
pub(crate) mod deep_links;
pub(crate) mod discrepancies;
pub(crate) mod guarantees;
pub(crate) mod listing;
pub(crate) mod lookups;
pub(crate) mod orders;
pub(crate) mod policies;
pub(crate) mod portals;
pub(crate) mod receipts;
pub(crate) mod returnable;
pub(crate) mod returns;
pub(crate) mod reviews;

use std::sync::Arc;

use actix_web::{HttpRequest, HttpResponse, http::StatusCode};
use domain::access::{MerchantId, Scope};
use domain::json::Digest;
use domain::merchant::Merchant;
use platform::Problem;
use platform::http::{json_response, reserve_for_response};
use platform::idempotency::{IdempotencyKey, KeyHeader};
use platform::identity::Caller;
use platform::shopper_proof::{ProvenOrders, Requester, remove_amounts};
use serde::Serialize;
use serde_json::{Value, json};

use crate::App;
use crate::error::Error;

/// Scopes that read returns.
const READERS: [Scope; 2] = [Scope::Returns, Scope::Read];

/// The merchant that a caller with this scope acts for.
fn merchant_of(app: &App, caller: &Caller, scope: Scope) -> Result<Arc<Merchant>, Problem> {
    caller.require(scope)?;
    Ok(app.merchants.merchant_for(caller)?)
}

/// The merchant whose records a caller reads.
fn readable_merchant(app: &App, caller: &Caller) -> Result<Arc<Merchant>, Problem> {
    caller.require_any(&READERS)?;
    Ok(app.merchants.merchant_for(caller)?)
}

/// The merchant of a request that shoppers can send too and, if the caller is a shopper, the orders that
/// the shopper has proven to know.
fn merchant_or_shopper<'a>(
    app: &App,
    requester: &'a Requester,
    scopes: &[Scope],
) -> Result<(Arc<Merchant>, Option<&'a ProvenOrders>), Problem> {
    let shopper = requester.authorize(scopes)?;
    Ok((app.merchants.merchant_for(&requester.caller)?, shopper))
}

/// JSON without amounts for a giftee.
fn json_for<T: Serialize>(value: &T, is_giftee: bool) -> Result<Value, Error> {
    let mut json = serde_json::to_value(value)?;
    if is_giftee {
        remove_amounts(&mut json);
    }
    Ok(json)
}

/// The merchant whose records a list shows; `None` for all merchants.
fn listed_merchant(
    app: &App,
    caller: &Caller,
    named: Option<&MerchantId>,
) -> Result<Option<MerchantId>, Problem> {
    caller.require_any(&READERS)?;
    Ok(app.merchants.listed_for(caller, named)?)
}

/// The idempotency key of a request, if it has one. The path is part of the request, because it
/// names the return.
fn idempotency_key<'a>(
    header: &'a KeyHeader,
    path: &str,
    merchant: &'a Merchant,
    operation: &'static str,
    body: Digest,
) -> Option<IdempotencyKey<'a>> {
    let request = Digest::of_value(&json!([path, body.as_bytes()]));
    header.key_for(&merchant.identifier, operation, request)
}

/// A response that may be large, with memory reserved until it is sent. Callers still hold a
/// database connection, so the pool size limits how many responses exist before their memory is
/// reserved.
fn budgeted_response<T: Serialize>(
    request: &HttpRequest,
    value: &T,
) -> Result<HttpResponse, Problem> {
    let body = serde_json::to_string(value).map_err(Error::from)?;
    reserve_for_response(request, body.len())?;
    Ok(json_response(StatusCode::OK, body))
}

/// Rejects portals, which act for shoppers.
fn reject_portal(caller: &Caller) -> Result<(), Error> {
    let is_staff = caller.is_operator() || caller.claims.merchant.is_some();
    if is_staff { Ok(()) } else { Err(Error::PortalRefused) }
}
