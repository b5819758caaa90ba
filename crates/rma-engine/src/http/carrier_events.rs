//! `POST /v1/carrier_events`: carrier reports about parcels.

use actix_web::http::StatusCode;
use actix_web::{HttpResponse, post, web};
use domain::access::Scope;
use domain::json::{
    Digest, Document, Object, ValidationError, array, object, one_of, parsed, read_fields, text,
    timestamp, variant,
};
use domain::returns::{Label, MAX_UNITS, TrackingEvent, UnitId};
use platform::Problem;
use platform::http::{ErrorBody, Json, Sequential, json_response};
use platform::identity::Caller;

use super::merchant_of;
use crate::App;
use crate::returns::parcels::{Reported, Tracked};
use crate::returns::report_batches;

/// Report a carrier event
///
/// A late event is recorded and does not move a parcel's status backwards. A repeated
/// `event_identifier` gets the first response.
#[utoipa::path(
    tag = "parcels", security(("bearer" = ["carrier"])),
    request_body(content = Reported, example = json!({ "event_identifier": "ups-77", "event": "in_transit", "tracking_number": "1Z999", "occurred_at": "2026-03-02T16:00:00Z" })),
    params(("X-Service-Id" = Option<String>, Header)),
    responses(
        (status = 200, description = "Result for each return", body = Tracked),
        (status = 404, description = "No such return or parcel of this merchant", body = ErrorBody),
        (status = 409, description = "The state of the return does not allow this event", body = ErrorBody),
    ),
)]
#[post("/v1/carrier_events")]
pub(crate) async fn report_carrier_event(
    app: web::Data<App>,
    Sequential(caller, body): Sequential<Caller, Json>,
) -> Result<HttpResponse, Problem> {
    let merchant = merchant_of(&app, &caller, Scope::Carrier)?;
    let reported = body.read_with(read).await??;
    let response = report_batches::track(&app, merchant, caller.actor(), reported).await?;
    Ok(json_response(StatusCode::OK, response))
}

pub(crate) fn read(document: &Document) -> Result<Reported, ValidationError> {
    let digest = Digest::of(document.value());
    document.read(object(|body| read_body(body, digest)))
}

fn read_body(body: &Object<'_>, digest: Digest) -> Option<Reported> {
    let words: Vec<_> = TrackingEvent::ALL.iter().map(|event| (event.as_str(), *event)).collect();
    if !body.has("rma_identifier") && !body.has("tracking_number") {
        body.missing("rma_identifier");
    }
    read_fields!(body => Reported {
        event_identifier: body.required("event_identifier", text(1..=255)),
        event: body.required("event", one_of(&words)),
        rma_identifier: body.optional("rma_identifier", text(1..=255)),
        tracking_number: body.optional("tracking_number", text(1..=255)),
        units: body.optional("units", array(1..=MAX_UNITS, object(UnitId::read))),
        label_url: body.optional("label_url", parsed(1..=2_048, Label::parse_url)),
        label_kind: body.optional("label_kind", variant),
        occurred_at: body.optional("occurred_at", timestamp),
        detail: body.optional("detail", text(0..=1_000));
        digest: digest,
    })
}
