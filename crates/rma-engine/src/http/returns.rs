//! `/v1/returns`: quoting, starting, showing and canceling returns.

use actix_web::http::StatusCode;
use actix_web::{HttpRequest, HttpResponse, get, post, web};
use domain::access::Scope;
use domain::json::{Object, array, object, parsed, text};
use domain::returns::{MAX_UNITS, ReturnRequest, Rma, UnitId};
use platform::Problem;
use platform::http::{ErrorBody, Json, Sequential, json_response, request_id};
use platform::idempotency::{self, KeyHeader};
use platform::identity::Caller;
use serde::Serialize;
use utoipa::ToSchema;

use super::{budgeted_response, check_staff, idempotency_key, merchant_of, readable_merchant};
use crate::App;
use crate::error::Error;
use crate::quote::Quote;
use crate::quote_terms::QuoteTerms;
use crate::return_conflict::ReturnConflict;
use crate::returns::{self, NewReturn};

/// A request for a new return.
#[derive(Serialize, ToSchema)]
pub(crate) struct NewReturnBody {
    #[serde(flatten)]
    request: ReturnRequest,
    /// The `quote` token of a quote. The return is rejected if the terms have changed since.
    quote: Option<String>,
}

/// Units to cancel; the whole return without `units`.
#[derive(ToSchema)]
#[expect(dead_code, reason = "the shape of a request, for the API document")]
pub(crate) struct Cancellation {
    #[schema(min_items = 1)]
    units: Option<Vec<UnitId>>,
    #[schema(max_length = 1000)]
    reason: Option<String>,
}

/// Quote a return
///
/// Shows the refund of each unit and whether it can be returned, and changes nothing. The `quote` token of
/// the response makes sure that a return has the quoted terms.
#[utoipa::path(
    tag = "returns", security(("bearer" = ["returns"])),
    request_body(content = ReturnRequest, example = json!({ "return_method": "mail-back", "units": [{ "order_identifier": "A-1001", "order_line_item_identifier": "1", "unit": 1, "return_reason": "too_small", "resolution": "refund" }] })),
    params(("X-Service-Id" = Option<String>, Header)),
    responses(
        (status = 200, description = "The quote", body = Quote),
        (status = 400, body = ErrorBody), (status = 401, body = ErrorBody), (status = 403, body = ErrorBody),
        (status = 422, body = ErrorBody), (status = 503, body = ErrorBody),
    ),
)]
#[post("/v1/returns/quote")]
pub(crate) async fn quote_return(
    app: web::Data<App>,
    Sequential(caller, Json(document)): Sequential<Caller, Json>,
) -> Result<web::Json<Quote>, Problem> {
    let merchant = merchant_of(&app, &caller, Scope::Returns)?;
    let request = ReturnRequest::read(&document, &merchant.settings.returns)?;
    if request.staff_override.is_some() {
        check_staff(&caller)?;
    }
    Ok(web::Json(returns::quote(&app, &merchant, &request).await?))
}

/// Start a return
///
/// The merchant receives the return as a message. A unit can be in one return at a time.
#[utoipa::path(
    tag = "returns", security(("bearer" = ["returns"])),
    request_body(content = NewReturnBody, example = json!({ "return_method": "mail-back", "units": [{ "order_identifier": "A-1001", "order_line_item_identifier": "1", "unit": 1, "return_reason": "too_small", "resolution": "refund" }] })),
    params(
        ("X-Service-Id" = Option<String>, Header),
        ("Idempotency-Key" = Option<String>, Header),
    ),
    responses(
        (status = 201, description = "The return", body = Rma),
        (status = 400, body = ErrorBody), (status = 401, body = ErrorBody), (status = 403, body = ErrorBody),
        (status = 409, description = "Some units cannot be returned, or the quote is out of date", body = ReturnConflict),
        (status = 422, description = "Some fields are not valid, or the key was used for another request", body = ErrorBody),
        (status = 503, body = ErrorBody),
    ),
)]
#[post("/v1/returns")]
pub(crate) async fn create_return(
    app: web::Data<App>,
    head: HttpRequest,
    header: KeyHeader,
    Sequential(caller, Json(document)): Sequential<Caller, Json>,
) -> Result<HttpResponse, Problem> {
    let merchant = merchant_of(&app, &caller, Scope::Returns)?;
    let key = idempotency_key(&header, head.path(), &merchant, "returns", &document);
    if let Some(key) = &key
        && let Some(response) = idempotency::find::<Error>(&mut *app.pool.get().await?, key).await?
    {
        return Ok(json_response(StatusCode::CREATED, response));
    }
    let (request, quoted) = document.read(object(|body| {
        body.reject_unknown(&[&ReturnRequest::FIELDS[..], &["quote"]].concat());
        let request = ReturnRequest::read_object(body, &merchant.settings.returns);
        let quoted = body.optional("quote", parsed(1..=1_000_000, QuoteTerms::read));
        Some((request?, quoted?))
    }))?;
    if request.staff_override.is_some() {
        check_staff(&caller)?;
    }
    let new = NewReturn { request, quoted, key };
    match returns::create(&app, &merchant, caller.actor(), new).await {
        Ok(response) => Ok(json_response(StatusCode::CREATED, response)),
        Err(Error::Conflict(mut conflict)) => {
            conflict.request_id = request_id();
            Ok(HttpResponse::Conflict().json(conflict))
        }
        Err(error) => Err(error.into()),
    }
}

/// Show a return
///
/// Shows the return with the state of each unit.
#[utoipa::path(
    tag = "returns", security(("bearer" = ["returns"]), ("bearer" = ["read"])),
    params(
        ("rma_identifier" = String, Path),
        ("X-Service-Id" = Option<String>, Header),
    ),
    responses(
        (status = 200, description = "The return", body = Rma),
        (status = 401, body = ErrorBody), (status = 403, body = ErrorBody), (status = 404, body = ErrorBody),
        (status = 503, body = ErrorBody),
    ),
)]
#[get("/v1/returns/{rma_identifier}")]
pub(crate) async fn show_return(
    app: web::Data<App>,
    caller: Caller,
    rma_identifier: web::Path<String>,
    head: HttpRequest,
) -> Result<HttpResponse, Problem> {
    let merchant = readable_merchant(&app, &caller)?;
    let mut conn = app.pool.get().await?;
    budgeted_response(&head, &returns::find(&mut conn, &merchant, &rma_identifier).await?)
}

/// Cancel a return or some of its units
///
/// Possible until the carrier has a parcel or the warehouse has a unit. Canceled units can be
/// returned again. The timeline records the person or client.
#[utoipa::path(
    tag = "returns", security(("bearer" = ["returns"])),
    params(
        ("rma_identifier" = String, Path),
        ("X-Service-Id" = Option<String>, Header),
    ),
    request_body(content = Cancellation, example = json!({ "units": [{ "order_identifier": "A-1001", "order_line_item_identifier": "1", "unit": 1 }], "reason": "The shopper keeps it" })),
    responses(
        (status = 200, description = "The return; canceling it again changes nothing", body = Rma),
        (status = 400, body = ErrorBody), (status = 401, body = ErrorBody), (status = 403, body = ErrorBody),
        (status = 404, body = ErrorBody), (status = 409, description = "The return can no longer be canceled", body = ErrorBody),
        (status = 422, body = ErrorBody), (status = 503, body = ErrorBody),
    ),
)]
#[post("/v1/returns/{rma_identifier}/cancel")]
pub(crate) async fn cancel_return(
    app: web::Data<App>,
    rma_identifier: web::Path<String>,
    Sequential(caller, Json(document)): Sequential<Caller, Json>,
) -> Result<web::Json<Rma>, Problem> {
    let merchant = merchant_of(&app, &caller, Scope::Returns)?;
    let (units, reason) = document.read(object(read_cancellation))?;
    let actor = caller.actor();
    let (units, reason) = (units.as_deref(), reason.as_deref());
    let canceled = returns::cancel(&app, &merchant, actor, &rma_identifier, units, reason);
    Ok(web::Json(canceled.await?))
}

fn read_cancellation(body: &Object<'_>) -> Option<(Option<Vec<UnitId>>, Option<String>)> {
    body.reject_unknown(&["units", "reason"]);
    let units = body.optional("units", array(1..=MAX_UNITS, object(UnitId::read)));
    let reason = body.optional("reason", text(0..=1_000));
    Some((units?, reason?))
}
