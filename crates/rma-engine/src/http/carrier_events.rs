//! `POST /v1/carrier_events`: carrier reports about parcels.

use actix_web::http::StatusCode;
use actix_web::{HttpResponse, post, web};
use chrono::{DateTime, Utc};
use domain::access::Scope;
use domain::json::{
    Digest, Document, Object, ValidationError, array, object, one_of, parsed, text, timestamp,
    variant,
};
use domain::returns::{Label, LabelKind, MAX_UNITS, TrackingEvent, UnitId};
use platform::Problem;
use platform::http::{ErrorBody, Json, Sequential, json_response};
use platform::identity::Caller;
use utoipa::ToSchema;

use super::merchant_of;
use crate::App;
use crate::parcels::{Reported, Tracked};
use crate::report_batches;

const FIELDS: [&str; 9] = [
    "event_identifier",
    "event",
    "rma_identifier",
    "tracking_number",
    "units",
    "label_url",
    "label_kind",
    "occurred_at",
    "detail",
];

/// A carrier report. It names the return, the tracking number or both. Without `units` it applies
/// to all units with the tracking number, or to the whole return.
#[derive(ToSchema)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "the shape of a request, for the API document")]
pub(crate) struct CarrierEvent {
    /// Chosen by the carrier. A repeated report gets the first response.
    #[schema(min_length = 1, max_length = 255)]
    event_identifier: String,
    event: TrackingEvent,
    #[schema(min_length = 1, max_length = 255)]
    rma_identifier: Option<String>,
    #[schema(min_length = 1, max_length = 255)]
    tracking_number: Option<String>,
    #[schema(min_items = 1, max_items = 1000)]
    units: Option<Vec<UnitId>>,
    /// With `label`: an http or https URL at which the shopper gets the label.
    #[schema(min_length = 1, max_length = 2048)]
    label_url: Option<String>,
    /// Defaults to `qr_code` for express returns and to `printable` for others.
    label_kind: Option<LabelKind>,
    /// Orders labels: the newest unused label replaces older ones.
    occurred_at: Option<DateTime<Utc>>,
    #[schema(max_length = 1000)]
    detail: Option<String>,
}

/// Report a carrier event
///
/// A late event is recorded and does not move a parcel's status backwards. A repeated
/// `event_identifier` gets the first response.
#[utoipa::path(
    tag = "parcels", security(("bearer" = ["carrier"])),
    request_body(content = CarrierEvent, example = json!({ "event_identifier": "ups-77", "event": "in_transit", "tracking_number": "1Z999", "occurred_at": "2026-03-02T16:00:00Z" })),
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
    Sequential(caller, Json(document)): Sequential<Caller, Json>,
) -> Result<HttpResponse, Problem> {
    let merchant = merchant_of(&app, &caller, Scope::Carrier)?;
    let reported = read(&document)?;
    let response = report_batches::track(&app, merchant, caller.actor(), reported).await?;
    Ok(json_response(StatusCode::OK, response))
}

pub(crate) fn read(document: &Document) -> Result<Reported, ValidationError> {
    let digest = Digest::of(document.value());
    document.read(object(|body| read_body(body, digest)))
}

fn read_body(body: &Object<'_>, digest: Digest) -> Option<Reported> {
    body.reject_unknown(&FIELDS);
    let words: Vec<_> = TrackingEvent::ALL.iter().map(|event| (event.as_str(), *event)).collect();
    let event_identifier = body.required("event_identifier", text(1..=255));
    let event = body.required("event", one_of(&words));
    let rma_identifier = body.optional("rma_identifier", text(1..=255));
    let tracking_number = body.optional("tracking_number", text(1..=255));
    let units = body.optional("units", array(1..=MAX_UNITS, object(UnitId::read)));
    let label_url = body.optional("label_url", parsed(1..=2_048, Label::parse_url));
    let label_kind = body.optional("label_kind", variant);
    let occurred_at = body.optional("occurred_at", timestamp);
    let detail = body.optional("detail", text(0..=1_000));
    if !body.has("rma_identifier") && !body.has("tracking_number") {
        body.missing("rma_identifier");
    }
    Some(Reported {
        event_identifier: event_identifier?,
        event: event?,
        rma_identifier: rma_identifier?,
        tracking_number: tracking_number?,
        units: units?,
        label_url: label_url?,
        label_kind: label_kind?,
        occurred_at: occurred_at?,
        detail: detail?,
        digest,
    })
}
