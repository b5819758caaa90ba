//! `/v1/label_requests`: lists and shows label requests, takes labels from providers, and sends requests again.

#![expect(unused_qualifications, reason = "the route macros repeat the types of queries")]

use actix_web::http::StatusCode;
use actix_web::{HttpRequest, HttpResponse, get, post, web};
use domain::access::{MerchantId, Scope};
use domain::json::{Digest, Document, Object, object, read_fields, text};
use domain::labels::{BoughtLabel, LabelRefusal, LabelState};
use platform::Problem;
use platform::http::{ErrorBody, Json, ListOrder, PageLimit, Query, Sequential, json_response};
use platform::idempotency::KeyHeader;
use platform::identity::Caller;
use platform::shopper_proof::Requester;
use serde::Deserialize;
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

use super::{
    budgeted_response, idempotency_key, merchant_of, merchant_or_shopper, reject_portal, returns,
};
use crate::App;
use crate::labels::requests::{self, LabelRequestDetails, LabelRequests};
use crate::labels::responses::Response;
use crate::labels::retries::{self, Asked, MAX_REQUESTS_OF_SHOPPER};
use crate::shoppers::view::ReturnView;
use crate::store::label_request_search::LabelRequestSearch;

/// Scopes that read label requests.
const READERS: [Scope; 3] = [Scope::Labels, Scope::Returns, Scope::Read];

/// A reason for the record.
#[derive(ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = LabelRequestNote)]
pub(crate) struct NoteBody {
    #[schema(min_length = 1, max_length = 1000)]
    note: Option<String>,
}

/// Filters for label requests; all given filters must match.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
pub(crate) struct LabelRequestQuery {
    /// Label requests of this merchant.
    #[param(value_type = Option<String>)]
    merchant: Option<MerchantId>,
    rma_identifier: Option<String>,
    state: Option<LabelState>,
    /// `newest` or `oldest` first
    #[serde(default)]
    #[param(inline)]
    order: ListOrder,
    /// Maximum number of entries
    #[serde(default)]
    #[param(inline)]
    limit: PageLimit,
    /// The `next` of the previous page
    after: Option<Uuid>,
}

/// The merchant whose label requests a caller may see: that of the request, else the one that a filter names, else
/// `None` for all merchants.
fn readable_merchant(
    app: &App,
    caller: &Caller,
    named: Option<&MerchantId>,
) -> Result<Option<MerchantId>, Problem> {
    caller.require_any(&READERS)?;
    let is_of_all = caller.merchant_scope().is_none() && named.is_none();
    if is_of_all && caller.require(Scope::Labels).is_ok() {
        return Ok(None);
    }
    Ok(app.merchants.listed_for(caller, named)?)
}

/// List label requests
///
/// Newest first unless `order` is `oldest`. A label provider that makes labels later polls those with the state
/// `accepted`, the oldest first. A token of a merchant lists the merchant's requests. A token without a merchant and with
/// the scope `labels` or `read` lists those of every merchant, or of the one in `merchant` or `X-Service-Id`.
#[utoipa::path(
    tag = "labels",
    security(("bearer" = ["labels"]), ("bearer" = ["returns"]), ("bearer" = ["read"])),
    params(
        LabelRequestQuery,
        ("X-Service-Id" = Option<String>, Header),
    ),
    responses((status = 200, body = LabelRequests)),
)]
#[get("/v1/label_requests")]
pub(crate) async fn list_label_requests(
    app: web::Data<App>,
    caller: Caller,
    query: Query<LabelRequestQuery>,
    head: HttpRequest,
) -> Result<HttpResponse, Problem> {
    let query = query.into_inner();
    let wanted = LabelRequestSearch {
        merchant: readable_merchant(&app, &caller, query.merchant.as_ref())?,
        rma_identifier: query.rma_identifier,
        state: query.state,
        order: query.order,
        after: query.after,
    };
    let mut conn = app.pool.reader(wanted.merchant.as_ref().map(MerchantId::as_str)).await?;
    budgeted_response(&head, &requests::list(&mut conn, &wanted, query.limit).await?)
}

/// Show a label request
///
/// With the message to the label provider.
#[utoipa::path(
    tag = "labels",
    security(("bearer" = ["labels"]), ("bearer" = ["returns"]), ("bearer" = ["read"])),
    params(
        ("id" = Uuid, Path),
        ("X-Service-Id" = Option<String>, Header),
    ),
    responses(
        (status = 200, description = "The label request", body = LabelRequestDetails),
        (status = 404, description = "No such label request of this merchant", body = ErrorBody),
    ),
)]
#[get("/v1/label_requests/{id}")]
pub(crate) async fn show_label_request(
    app: web::Data<App>,
    caller: Caller,
    id: web::Path<Uuid>,
    head: HttpRequest,
) -> Result<HttpResponse, Problem> {
    let merchant = readable_merchant(&app, &caller, None)?;
    let mut conn = app.pool.get().await?;
    let id = id.into_inner();
    let shown = requests::show(&mut conn, &app.sealer, merchant.as_ref(), id).await?;
    budgeted_response(&head, &shown)
}

/// The merchant of a label that a provider reports; `None` for a provider of all merchants that names none.
fn reported_merchant(app: &App, caller: &Caller) -> Result<Option<MerchantId>, Problem> {
    caller.require(Scope::Labels)?;
    if caller.merchant_scope().is_none() {
        return Ok(None);
    }
    Ok(Some(app.merchants.merchant_for(caller)?.identifier.clone()))
}

/// Report a label
///
/// The label of a parcel, from a provider that responded with 202. The units of the parcel get the tracking number and the
/// merchant a message. The same label again changes nothing. If the request has ended or has another label, the response
/// says so in its state and tracking number, and the message `label.canceled` follows for the label that is not used.
#[utoipa::path(
    tag = "labels", security(("bearer" = ["labels"])),
    params(
        ("id" = Uuid, Path),
        ("X-Service-Id" = Option<String>, Header),
    ),
    request_body(content = BoughtLabel, example = json!({ "tracking_number": "1Z999AA10123456784", "label": "https://labels.acme.example/1.pdf", "qr_code": "1Z999AA10123456784", "carrier": "UPS", "service": "Ground", "cost_cents": 499, "currency": "USD", "expires_at": "2026-12-24T00:00:00Z" })),
    responses(
        (status = 200, description = "The label request", body = LabelRequestDetails),
        (status = 404, description = "No such label request of this merchant", body = ErrorBody),
    ),
)]
#[post("/v1/label_requests/{id}/label")]
pub(crate) async fn report_label(
    app: web::Data<App>,
    id: web::Path<Uuid>,
    Sequential(caller, body): Sequential<Caller, Json>,
) -> Result<web::Json<LabelRequestDetails>, Problem> {
    let merchant = reported_merchant(&app, &caller)?;
    let label = Response::Bought(body.read(object(BoughtLabel::read)).await?);
    let id = id.into_inner();
    let shown = requests::report(&app, merchant.as_ref(), caller.actor(), id, &label).await?;
    Ok(web::Json(shown))
}

/// Report that no label is possible
///
/// From a provider that responded with 202. The shopper reads a sentence about the reason, and staff the detail.
#[utoipa::path(
    tag = "labels", security(("bearer" = ["labels"])),
    params(
        ("id" = Uuid, Path),
        ("X-Service-Id" = Option<String>, Header),
    ),
    request_body(content = LabelRefusal, example = json!({ "reason": "too_heavy", "detail": "over 30 kg" })),
    responses(
        (status = 200, description = "The label request; one that has a label or has ended is not changed", body = LabelRequestDetails),
        (status = 404, description = "No such label request of this merchant", body = ErrorBody),
    ),
)]
#[post("/v1/label_requests/{id}/refuse")]
pub(crate) async fn refuse_label(
    app: web::Data<App>,
    id: web::Path<Uuid>,
    Sequential(caller, body): Sequential<Caller, Json>,
) -> Result<web::Json<LabelRequestDetails>, Problem> {
    let merchant = reported_merchant(&app, &caller)?;
    let refusal = Response::Refused(body.read(object(LabelRefusal::read)).await?);
    let id = id.into_inner();
    let shown = requests::report(&app, merchant.as_ref(), caller.actor(), id, &refusal).await?;
    Ok(web::Json(shown))
}

/// Request a label again
///
/// Makes a new label request for the parcel of one that was refused, canceled or expired, or whose message is dead, with the
/// present address of the order. A dead one is canceled first. Possible for the merchant and for operators, not for
/// portals, until a carrier or the warehouse has a unit of the parcel. The timeline records the person or client.
#[utoipa::path(
    tag = "labels", security(("bearer" = ["returns"])),
    params(
        ("id" = Uuid, Path),
        ("X-Service-Id" = Option<String>, Header),
        ("Idempotency-Key" = Option<String>, Header),
    ),
    request_body(content = NoteBody, example = json!({ "note": "The shopper corrected the address" })),
    responses(
        (status = 200, description = "The new label request", body = LabelRequestDetails),
        (status = 409, description = "The parcel has a label, waits for one, or needs none; or the merchant has no endpoint for label requests", body = ErrorBody),
    ),
)]
#[post("/v1/label_requests/{id}/retry")]
pub(crate) async fn retry_label_request(
    app: web::Data<App>,
    head: HttpRequest,
    header: KeyHeader,
    id: web::Path<Uuid>,
    Sequential(caller, body): Sequential<Caller, Json>,
) -> Result<HttpResponse, Problem> {
    let merchant = merchant_of(&app, &caller, Scope::Returns)?;
    reject_portal(&caller)?;
    let read =
        |document: &Document| (Digest::of(document.value()), document.read(object(read_note)));
    let (digest, read) = body.read_with(read).await?;
    let key = idempotency_key(&header, head.path(), &merchant, "label_requests", digest);
    let NoteBody { note } = read?;
    let asked = Asked { by: caller.actor(), note: note.as_deref() };
    let response = retries::retry(&app, &merchant, id.into_inner(), asked, key.as_ref()).await?;
    Ok(json_response(StatusCode::OK, response))
}

/// Request expired labels again
///
/// Makes a new label request for each parcel of a return whose label expired before the parcel was handed over. A shopper
/// can do so until a parcel has had three requests. Without an expired label nothing changes.
#[utoipa::path(
    tag = "labels", security(("bearer" = ["returns"]), ("bearer" = ["shopper"])),
    params(
        ("rma_identifier" = String, Path),
        ("X-Service-Id" = Option<String>, Header),
        ("X-Shopper-Proof" = Option<String>, Header),
    ),
    responses(
        (status = 200, description = "The return", body = ReturnView),
        (status = 409, description = "The merchant has no endpoint for label requests any more", body = ErrorBody),
    ),
)]
#[post("/v1/returns/{rma_identifier}/labels")]
pub(crate) async fn renew_labels(
    app: web::Data<App>,
    requester: Requester,
    rma_identifier: web::Path<String>,
) -> Result<web::Json<ReturnView>, Problem> {
    let (merchant, shopper) = merchant_or_shopper(&app, &requester, &[Scope::Returns])?;
    let most = match shopper {
        Some(_) => MAX_REQUESTS_OF_SHOPPER,
        None => {
            reject_portal(&requester.caller)?;
            usize::MAX
        }
    };
    // Returns of others do not exist for a shopper.
    returns::view(&app, &merchant, &rma_identifier, shopper).await?;
    let actor = requester.actor(shopper);
    retries::renew(&app, &merchant, &rma_identifier, actor, most).await?;
    Ok(web::Json(returns::view(&app, &merchant, &rma_identifier, shopper).await?))
}

/// Cancel a label request
///
/// Cancels the label at the provider, or the request for it. The return and its tracking number stay as they are; the label
/// can be requested again. Possible for the merchant and for operators, not for portals. The timeline records the person
/// or client.
#[utoipa::path(
    tag = "labels", security(("bearer" = ["returns"])),
    params(
        ("id" = Uuid, Path),
        ("X-Service-Id" = Option<String>, Header),
    ),
    request_body(content = NoteBody, example = json!({ "note": "The carrier lost the pick-up" })),
    responses(
        (status = 200, description = "The label request; canceling it again changes nothing", body = LabelRequestDetails),
        (status = 409, description = "The label was refused or has expired", body = ErrorBody),
    ),
)]
#[post("/v1/label_requests/{id}/cancel")]
pub(crate) async fn cancel_label_request(
    app: web::Data<App>,
    id: web::Path<Uuid>,
    Sequential(caller, body): Sequential<Caller, Json>,
) -> Result<web::Json<LabelRequestDetails>, Problem> {
    let merchant = merchant_of(&app, &caller, Scope::Returns)?;
    reject_portal(&caller)?;
    let NoteBody { note } = body.read(object(read_note)).await?;
    let asked = Asked { by: caller.actor(), note: note.as_deref() };
    let shown = retries::cancel_request(&app, &merchant, id.into_inner(), asked).await?;
    Ok(web::Json(shown))
}

pub(crate) fn read_note(body: &Object<'_>) -> Option<NoteBody> {
    read_fields!(body => NoteBody { note: body.optional("note", text(1..=1_000)) })
}
