//! Shows a delivery with its attempts.

use actix_web::{HttpRequest, HttpResponse, get, web};
use api::delivery::{AttemptView, DeliveryDetails};
use platform::Problem;
use platform::http::reserve_for_response;
use platform::identity::Caller;
use uuid::Uuid;

use super::Error;
use super::access::{includes, readable_merchant};
use super::headers::{request_headers, response_headers};
use super::list::show;
use super::waiting::waiting;
use crate::Deliveries;
use crate::attempt::{MessageFacts, derived_headers};
use crate::store::{self, AttemptRow};

/// Every replay adds attempts. The newest are shown.
const MAX_SHOWN_ATTEMPTS: i64 = 100;

fn show_attempt(row: AttemptRow, message: &MessageFacts<'_>) -> AttemptView {
    let derived = derived_headers(message, row.started_at);
    AttemptView {
        replay_number: row.replay_number,
        number: row.number,
        started_at: row.started_at,
        latency_ms: row.latency_ms,
        outcome: row.outcome,
        status: row.status,
        detail: row.detail,
        request_headers: request_headers(&row.request_headers, derived),
        response_headers: response_headers(&row.response_headers),
        response_body: row.response_body,
    }
}

/// Show a delivery
///
/// With its message body and its attempts.
#[utoipa::path(
    tag = "deliveries", security(("bearer" = ["read"]), ("bearer" = ["orders"]), ("bearer" = ["returns"])),
    params(("id" = Uuid, Path)),
    responses((status = 200, body = DeliveryDetails))
)]
#[get("/v1/deliveries/{id}")]
pub(crate) async fn show_delivery(
    deliveries: web::Data<Deliveries>,
    caller: Caller,
    id: web::Path<Uuid>,
    request: HttpRequest,
) -> Result<HttpResponse, Problem> {
    let id = id.into_inner();
    let merchant = readable_merchant(&caller, None)?;
    let mut conn = deliveries.0.pool.get().await?;
    let delivery = store::find(&mut conn, id).await?.ok_or(Error::NoDelivery(id))?;
    if !includes(merchant.as_ref(), Some(&delivery.merchant)) {
        return Err(Error::NoDelivery(id).into());
    }
    let body = store::body(&mut conn, id).await?;
    let attempts = store::attempts(&mut conn, id, MAX_SHOWN_ATTEMPTS).await?;
    let bytes: usize = attempts.iter().map(AttemptRow::bytes).sum();
    reserve_for_response(&request, body.len() + bytes)?;
    let message = MessageFacts {
        id: &id.to_string(),
        merchant: &delivery.merchant,
        event: &delivery.event,
        sequence: delivery.sequence,
        body_bytes: body.len(),
    };
    let attempts = attempts.into_iter().map(|row| show_attempt(row, &message)).collect();
    let rows = [delivery];
    let waiting = waiting(&deliveries.0, &mut conn, &rows).await?.remove(&id);
    let [delivery] = rows;
    Ok(HttpResponse::Ok().json(DeliveryDetails {
        attempts,
        max_attempts: deliveries.0.schedule.max_attempts(),
        delivery: show(delivery, waiting),
        body: String::from_utf8_lossy(&body).into_owned(),
    }))
}
