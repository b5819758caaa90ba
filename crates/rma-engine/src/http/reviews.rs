//! `/v1/returns/{rma}/approve` and `/decline`: decisions about returns that wait for review.

use actix_web::http::StatusCode;
use actix_web::{HttpRequest, HttpResponse, post, web};
use domain::access::Scope;
use domain::json::{Digest, Document, Object, object, read_fields, text};
use domain::merchant::ReviewDecision;
use platform::Problem;
use platform::http::{ErrorBody, Json, Sequential, json_response};
use platform::idempotency::KeyHeader;
use platform::identity::Caller;
use utoipa::ToSchema;

use super::{idempotency_key, merchant_of, reject_portal};
use crate::App;
use crate::returns::reviews::{self, NewDecision};
use crate::shoppers::view::ReturnView;

/// A decision about a return that waits for review.
#[derive(ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = ReviewNote)]
pub(crate) struct DecisionBody {
    /// The reason, for the timeline. The portal shows that of a declined return to the shopper.
    #[schema(min_length = 1, max_length = 1000)]
    note: Option<String>,
}

/// Approve a return
///
/// Starts a return with the status `REQUESTED`: the merchant receives it as a message, exchange orders are placed, and the
/// time by which the units must be sent counts from now. The timeline records the person or client. Possible for the
/// merchant and for operators, not for portals.
#[utoipa::path(
    tag = "returns", security(("bearer" = ["returns"])),
    params(
        ("rma_identifier" = String, Path),
        ("X-Service-Id" = Option<String>, Header),
        ("Idempotency-Key" = Option<String>, Header),
    ),
    request_body(content = DecisionBody, example = json!({ "note": "A good customer" })),
    responses(
        (status = 200, description = "The return", body = ReturnView),
        (status = 409, description = "The return does not wait for review: it was decided or canceled", body = ErrorBody),
    ),
)]
#[post("/v1/returns/{rma_identifier}/approve")]
pub(crate) async fn approve_return(
    app: web::Data<App>,
    head: HttpRequest,
    header: KeyHeader,
    rma_identifier: web::Path<String>,
    Sequential(caller, body): Sequential<Caller, Json>,
) -> Result<HttpResponse, Problem> {
    decide(&app, (&head, &header), &rma_identifier, (caller, body), ReviewDecision::Approve).await
}

/// Decline a return
///
/// Ends a return with the status `REQUESTED`: its units can be returned again, and the merchant receives no message. The
/// portal shows the note to the shopper, or else the text of the rule that asked for the review. The timeline records the
/// person or client. Possible for the merchant and for operators, not for portals.
#[utoipa::path(
    tag = "returns", security(("bearer" = ["returns"])),
    params(
        ("rma_identifier" = String, Path),
        ("X-Service-Id" = Option<String>, Header),
        ("Idempotency-Key" = Option<String>, Header),
    ),
    request_body(content = DecisionBody, example = json!({ "note": "Worn items cannot be returned." })),
    responses(
        (status = 200, description = "The return", body = ReturnView),
        (status = 409, description = "The return does not wait for review: it was decided or canceled", body = ErrorBody),
    ),
)]
#[post("/v1/returns/{rma_identifier}/decline")]
pub(crate) async fn decline_return(
    app: web::Data<App>,
    head: HttpRequest,
    header: KeyHeader,
    rma_identifier: web::Path<String>,
    Sequential(caller, body): Sequential<Caller, Json>,
) -> Result<HttpResponse, Problem> {
    decide(&app, (&head, &header), &rma_identifier, (caller, body), ReviewDecision::Decline).await
}

async fn decide(
    app: &App,
    (head, header): (&HttpRequest, &KeyHeader),
    rma_identifier: &str,
    (caller, body): (Caller, Json),
    decision: ReviewDecision,
) -> Result<HttpResponse, Problem> {
    let merchant = merchant_of(app, &caller, Scope::Returns)?;
    reject_portal(&caller)?;
    let read =
        |document: &Document| (Digest::of(document.value()), document.read(object(read_decision)));
    let (digest, read) = body.read_with(read).await?;
    let key = idempotency_key(header, head.path(), &merchant, "reviews", digest);
    let DecisionBody { note } = read?;
    let new = NewDecision { decision, note, key };
    let response = reviews::decide(app, &merchant, caller.actor(), rma_identifier, &new).await?;
    Ok(json_response(StatusCode::OK, response))
}

pub(crate) fn read_decision(body: &Object<'_>) -> Option<DecisionBody> {
    read_fields!(body => DecisionBody { note: body.optional("note", text(1..=1_000)) })
}
