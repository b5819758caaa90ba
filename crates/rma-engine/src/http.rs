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
use platform::http::MemoryPermit;
use platform::idempotency::{BadKey, HEADER, IdempotencyKey, key_of};
use platform::identity::Caller;
use serde::Serialize;
use serde_json::json;

use crate::App;
use crate::error::Error;

const DEFAULT_LIMIT: u16 = 50;
const MAX_LIMIT: u16 = 200;

/// The merchant a caller with this scope acts for.
fn merchant_of(app: &App, caller: &Caller, scope: Scope) -> Result<Arc<Merchant>, Problem> {
    caller.require(scope)?;
    Ok(app.merchants.merchant_for(caller)?)
}

/// The key that a request carries, if it carries one. What is asked is the body, of what the path
/// names.
fn keyed<'a>(
    request: &'a HttpRequest,
    merchant: &'a Merchant,
    operation: &'static str,
    document: &Document,
) -> Result<Option<IdempotencyKey<'a>>, BadKey> {
    let Some(key) = key_of(request)? else { return Ok(None) };
    Ok(Some(IdempotencyKey {
        merchant: &merchant.identifier,
        operation,
        key,
        name: HEADER,
        // Digests are small; as values, a body may be a hundred times as large as it was.
        request: Digest::of_value(&json!([
            request.path(),
            Digest::of(document.value()).as_bytes()
        ])),
    }))
}

/// An answer that is JSON already.
fn written(status: StatusCode, answer: String) -> HttpResponse {
    HttpResponse::build(status).content_type("application/json").body(answer)
}

/// An answer that may be large, with room for it until it is sent. Written by who still has a
/// connection to the database: so many at most are here without room.
fn with_room<T: Serialize>(request: &HttpRequest, answer: &T) -> Result<HttpResponse, Problem> {
    let answer = serde_json::to_string(answer).map_err(Error::from)?;
    MemoryPermit::reserve_for_response(request, answer.len())?;
    Ok(written(StatusCode::OK, answer))
}

/// How many to show, and one more to know whether that is all.
fn page_size(limit: Option<u16>) -> Result<(usize, i64), Error> {
    let limit = limit.unwrap_or(DEFAULT_LIMIT);
    if (1..=MAX_LIMIT).contains(&limit) {
        Ok((limit.into(), i64::from(limit) + 1))
    } else {
        Err(Error::Malformed("limit must be between 1 and 200"))
    }
}

/// Cuts a page to its size; the last element shown is where the next page begins, if there is one.
fn cut<T, C>(page: &mut Vec<T>, size: usize, cursor: impl Fn(&T) -> C) -> Option<C> {
    if page.len() <= size {
        return None;
    }
    page.truncate(size);
    page.last().map(cursor)
}

/// PostgreSQL cannot hold it, so nothing is found by it.
fn without_nul(text: &str) -> Result<(), Error> {
    if text.contains('\0') {
        Err(Error::Malformed("a NUL character finds nothing"))
    } else {
        Ok(())
    }
}
