//! `/v1/returns`: quoting, starting, showing and canceling returns.

use std::sync::Arc;

use actix_web::http::StatusCode;
use actix_web::{HttpRequest, HttpResponse, get, post, web};
use domain::access::Scope;
use domain::json::{Digest, Document, Object, array, object, parsed, read_fields, text};
use domain::merchant::{Merchant, ReturnPolicy};
use domain::returns::{MAX_UNITS, ReturnRequest, UnitId};
use platform::Problem;
use platform::http::{ErrorBody, Json, Sequential, json_response, request_id};
use platform::idempotency::{self, KeyHeader, OwnedKey};
use platform::shopper_proof::{ProofError, ProvenOrders, Requester};
use serde::Serialize;
use utoipa::ToSchema;

use super::{
    READERS, budgeted_response, idempotency_key, json_for, merchant_or_shopper, reject_portal,
};
use crate::App;
use crate::error::Error;
use crate::quotes::Quote;
use crate::quotes::conflict::ReturnConflict;
use crate::quotes::terms::QuoteTerms;
use crate::returns::new_return_batches;
use crate::returns::{self, Cancellation, NewReturn};
use crate::shoppers::labels::ReturnLabels;
use crate::shoppers::request::{self, is_by_giftee};
use crate::shoppers::view::ReturnView;

/// A request for a new return.
#[derive(Serialize, ToSchema)]
pub(crate) struct NewReturnBody {
    #[serde(flatten)]
    request: ReturnRequest,
    /// The `quote` token of a quote. The return is rejected if the terms have changed since.
    #[schema(min_length = 1, max_length = 1_000_000)]
    quote: Option<String>,
}

/// Units to cancel; the whole return without `units`.
#[derive(ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Cancellation)]
pub(crate) struct CancellationBody {
    #[schema(min_items = 1, max_items = 1000)]
    units: Option<Vec<UnitId>>,
    #[schema(max_length = 1000)]
    reason: Option<String>,
}

/// Quote a return
///
/// Shows the refund of each unit and whether it can be returned, and changes nothing. The `quote` token of
/// the response makes sure that a return has the quoted terms.
#[utoipa::path(
    tag = "returns", security(("bearer" = ["returns"]), ("bearer" = ["shopper"])),
    request_body(content = ReturnRequest, example = json!({ "return_method": "mail-back", "units": [{ "order_identifier": "A-1001", "order_line_item_identifier": "1", "unit": 1, "return_reason": "too_small", "resolution": "refund" }] })),
    params(
        ("X-Service-Id" = Option<String>, Header),
        ("X-Shopper-Proof" = Option<String>, Header),
    ),
    responses(
        (status = 200, description = "The quote; without amounts for a giftee", body = Quote),
    ),
)]
#[post("/v1/returns/quote")]
pub(crate) async fn quote_return(
    app: web::Data<App>,
    Sequential(requester, body): Sequential<Requester, Json>,
) -> Result<HttpResponse, Problem> {
    let (merchant, shopper) = merchant_or_shopper(&app, &requester, &[Scope::Returns])?;
    let proven = shopper.cloned();
    let owner = Arc::clone(&merchant);
    let read = move |document: &Document| {
        check_proofs(document, proven.as_ref())?;
        Ok::<_, Problem>(ReturnRequest::read(document, &owner.settings.return_options())?)
    };
    let request = body.read_with(read).await??;
    check_request(&request, &requester, shopper)?;
    let quote = returns::quote(&app, &merchant, &request, shopper).await?;
    Ok(HttpResponse::Ok().json(json_for(&quote, is_by_giftee(&request, shopper))?))
}

fn check_proofs(document: &Document, shopper: Option<&ProvenOrders>) -> Result<(), ProofError> {
    shopper.map_or(Ok(()), |shopper| request::check_proofs(document, shopper))
}

fn check_request(
    request: &ReturnRequest,
    requester: &Requester,
    shopper: Option<&ProvenOrders>,
) -> Result<(), Problem> {
    if request.staff_override.is_some() {
        reject_portal(&requester.caller)?;
    }
    shopper.map_or(Ok(()), |shopper| Ok(request::check(request, shopper)?))
}

/// Start a return
///
/// The merchant receives the return as a message. If a rule of the merchant asks for a review, the return has the status
/// `REQUESTED` and its message is sent after an approval. A unit can be in one return at a time. A shopper needs a
/// proof for the order of each unit. A giftee sends `gift_refund_only` and `giftee_email`, and can choose an
/// exchange or a gift card.
#[utoipa::path(
    tag = "returns", security(("bearer" = ["returns"]), ("bearer" = ["shopper"])),
    request_body(content = NewReturnBody, example = json!({ "return_method": "mail-back", "units": [{ "order_identifier": "A-1001", "order_line_item_identifier": "1", "unit": 1, "return_reason": "too_small", "resolution": "refund" }] })),
    params(
        ("X-Service-Id" = Option<String>, Header),
        ("X-Shopper-Proof" = Option<String>, Header),
        ("Idempotency-Key" = Option<String>, Header),
    ),
    responses(
        (status = 201, description = "The return", body = ReturnView),
        (status = 409, description = "Some units cannot be returned, or the quote is out of date", body = ReturnConflict),
    ),
)]
#[post("/v1/returns")]
pub(crate) async fn create_return(
    app: web::Data<App>,
    head: HttpRequest,
    header: KeyHeader,
    Sequential(requester, body): Sequential<Requester, Json>,
) -> Result<HttpResponse, Problem> {
    let (merchant, shopper) = merchant_or_shopper(&app, &requester, &[Scope::Returns])?;
    let proven = shopper.cloned();
    let owner = Arc::clone(&merchant);
    let read = move |document: &Document| {
        check_proofs(document, proven.as_ref())?;
        let options = owner.settings.return_options();
        let read = document.read(object(|body| read_new(body, &options)));
        Ok::<_, ProofError>((Digest::of(document.value()), read))
    };
    let (digest, read) = body.read_with(read).await??;
    // Shoppers and staff get different responses, so their keys are different keys.
    let operation = if shopper.is_some() { "shopper_returns" } else { "returns" };
    let key = idempotency_key(&header, head.path(), &merchant, operation, digest);
    if let Some(key) = &key
        && let Some(response) = idempotency::find::<Error>(&mut *app.pool.get().await?, key).await?
    {
        return Ok(json_response(StatusCode::CREATED, response));
    }
    let (request, quoted) = read?;
    check_request(&request, &requester, shopper)?;
    let is_by_giftee = is_by_giftee(&request, shopper);
    let key = key.map(OwnedKey::from);
    let actor = requester.actor(shopper);
    let new = NewReturn { request, quoted, shopper: shopper.cloned() };
    match new_return_batches::create(&app, merchant.clone(), actor, key, new).await {
        Ok(response) => Ok(json_response(StatusCode::CREATED, response)),
        Err(Error::Conflict(mut conflict)) => {
            conflict.request_id = request_id();
            Ok(HttpResponse::Conflict().json(json_for(&conflict, is_by_giftee)?))
        }
        Err(error) => Err(error.into()),
    }
}

/// Reads a [`NewReturnBody`].
pub(crate) fn read_new(
    body: &Object<'_>,
    policy: &ReturnPolicy,
) -> Option<(ReturnRequest, Option<QuoteTerms>)> {
    body.reject_unknown(&[&ReturnRequest::FIELDS[..], &["quote"]].concat());
    let request = ReturnRequest::read_object(body, policy);
    let quoted = body.optional("quote", parsed(1..=1_000_000, QuoteTerms::parse));
    Some((request?, quoted?))
}

/// Show a return
///
/// Shows the return with the state of each unit. A shopper gets the shopper's view of a return with a unit
/// of a proven order.
#[utoipa::path(
    tag = "returns", security(("bearer" = ["returns"]), ("bearer" = ["read"]), ("bearer" = ["shopper"])),
    params(
        ("rma_identifier" = String, Path),
        ("X-Service-Id" = Option<String>, Header),
        ("X-Shopper-Proof" = Option<String>, Header),
    ),
    responses((status = 200, description = "The return", body = ReturnView)),
)]
#[get("/v1/returns/{rma_identifier}")]
pub(crate) async fn show_return(
    app: web::Data<App>,
    requester: Requester,
    rma_identifier: web::Path<String>,
    head: HttpRequest,
) -> Result<HttpResponse, Problem> {
    let (merchant, shopper) = merchant_or_shopper(&app, &requester, &READERS)?;
    let view = view(&app, &merchant, &rma_identifier, shopper).await?;
    budgeted_response(&head, &view)
}

/// The return as the caller may see it, with its labels.
pub(super) async fn view(
    app: &App,
    merchant: &Merchant,
    rma_identifier: &str,
    shopper: Option<&ProvenOrders>,
) -> Result<ReturnView, Error> {
    let mut conn = app.pool.get().await?;
    let rma = returns::find(&mut conn, merchant, rma_identifier, shopper).await?;
    let labels = match shopper {
        Some(_) => ReturnLabels::load(&mut conn, &app.sealer, &rma).await?,
        None => ReturnLabels::default(),
    };
    Ok(ReturnView::new(rma, Some(merchant), shopper).with_labels(labels))
}

/// Cancel a return or some of its units
///
/// Possible until the carrier has a parcel or the warehouse has a unit, also while the return waits for review. Canceled
/// units can be returned again. The timeline records the person or client.
#[utoipa::path(
    tag = "returns", security(("bearer" = ["returns"]), ("bearer" = ["shopper"])),
    params(
        ("rma_identifier" = String, Path),
        ("X-Service-Id" = Option<String>, Header),
        ("X-Shopper-Proof" = Option<String>, Header),
    ),
    request_body(content = CancellationBody, example = json!({ "units": [{ "order_identifier": "A-1001", "order_line_item_identifier": "1", "unit": 1 }], "reason": "The shopper keeps it" })),
    responses(
        (status = 200, description = "The return; canceling it again changes nothing", body = ReturnView),
        (status = 409, description = "The return can no longer be canceled", body = ErrorBody),
    ),
)]
#[post("/v1/returns/{rma_identifier}/cancel")]
pub(crate) async fn cancel_return(
    app: web::Data<App>,
    rma_identifier: web::Path<String>,
    Sequential(requester, body): Sequential<Requester, Json>,
) -> Result<web::Json<ReturnView>, Problem> {
    let (merchant, shopper) = merchant_or_shopper(&app, &requester, &[Scope::Returns])?;
    let CancellationBody { units, reason } = body.read(object(read_cancellation)).await?;
    let actor = requester.actor(shopper);
    let request = Cancellation { units: units.as_deref(), reason: reason.as_deref(), shopper };
    let canceled = returns::cancel(&app, &merchant, actor, &rma_identifier, request).await?;
    Ok(web::Json(ReturnView::new(canceled, Some(&merchant), shopper)))
}

pub(crate) fn read_cancellation(body: &Object<'_>) -> Option<CancellationBody> {
    read_fields!(body => CancellationBody {
        units: body.optional("units", array(1..=MAX_UNITS, object(UnitId::read))),
        reason: body.optional("reason", text(0..=1_000)),
    })
}
