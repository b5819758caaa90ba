//! The handlers, and what they share.

pub(crate) mod carrier_events;
pub(crate) mod discrepancies;
pub(crate) mod listing;
pub(crate) mod receipts;
pub(crate) mod returnable;
pub(crate) mod returns;

use std::sync::Arc;

use actix_web::{HttpRequest, HttpResponse, http::StatusCode};
use domain::access::Scope;
use domain::json::{Digest, Document};
use domain::merchant::Merchant;
use platform::Problem;
use platform::http::{json_response, reserve_for_response};
use platform::idempotency::{IdempotencyKey, KeyHeader};
use platform::identity::Caller;
use serde::Serialize;
use serde_json::json;

use crate::App;
use crate::error::Error;

/// The merchant a caller with this scope acts for.
fn merchant_of(app: &App, caller: &Caller, scope: Scope) -> Result<Arc<Merchant>, Problem> {
    caller.require(scope)?;
    Ok(app.merchants.merchant_for(caller)?)
}

/// The idempotency key of a request, if it has one. The path is part of the request: it names the return.
fn idempotency_key<'a>(
    header: &'a KeyHeader,
    path: &str,
    merchant: &'a Merchant,
    operation: &'static str,
    document: &Document,
) -> Option<IdempotencyKey<'a>> {
    // Digests are small; as values, a body may be a hundred times as large as it was.
    let body = Digest::of(document.value());
    let request = Digest::of_value(&json!([path, body.as_bytes()]));
    header.of(&merchant.identifier, operation, request)
}

/// An answer that may be large, with room for it until it is sent. Written by who still has a
/// connection to the database: so many at most are here without room.
fn with_room<T: Serialize>(request: &HttpRequest, answer: &T) -> Result<HttpResponse, Problem> {
    let answer = serde_json::to_string(answer).map_err(Error::from)?;
    reserve_for_response(request, answer.len())?;
    Ok(json_response(StatusCode::OK, answer))
}

/// PostgreSQL cannot hold it, so nothing is found by it.
fn without_nul(text: &str) -> Result<(), Error> {
    if text.contains('\0') {
        Err(Error::Malformed("a NUL character finds nothing"))
    } else {
        Ok(())
    }
}
