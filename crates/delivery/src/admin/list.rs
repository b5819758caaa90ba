//! Lists and shows deliveries.

#![expect(unused_qualifications, reason = "the route macros repeat the types of queries")]

use actix_web::{HttpRequest, HttpResponse, get, web};
use chrono::{DateTime, Utc};
use platform::Problem;
use platform::http::{ErrorBody, PageLimit, reserve_for_response};
use platform::identity::Caller;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

use super::waiting::{Waiting, waiting};
use super::{Error, check_filter, check_outcome, parse_merchant, readable_merchant};
use crate::Deliveries;
use crate::store::{self, DeliveryRow, Filter, State};

/// Filter and page of a list of deliveries. All given fields must match.
#[derive(Clone, Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
pub(crate) struct DeliveryQuery {
    merchant: Option<String>,
    /// For example `rma`.
    kind: Option<String>,
    /// `pending`, `delivered` or `dead`.
    state: Option<State>,
    /// HTTP status code of the last response.
    status: Option<u16>,
    /// Outcome of the last attempt, for example `timed_out`. Attempts without a response have no
    /// status code.
    outcome: Option<String>,
    ordering_key: Option<String>,
    /// Created at this time or later.
    from: Option<DateTime<Utc>>,
    /// Created before this time.
    to: Option<DateTime<Utc>>,
    /// Maximum number of entries
    #[serde(default)]
    #[param(inline)]
    limit: PageLimit,
    /// The `next` of the previous page.
    after: Option<Uuid>,
}

/// A delivery.
#[derive(Serialize, ToSchema)]
pub(crate) struct DeliveryView {
    /// The merchant sees this as `webhook-id`.
    id: Uuid,
    merchant: String,
    kind: String,
    event: String,
    ordering_key: Option<String>,
    sequence: i64,
    state: State,
    created_at: DateTime<Utc>,
    /// Earliest time of the next attempt. Null while the delivery is being sent, waits behind another
    /// of its ordering key, or is settled.
    next_attempt_at: Option<DateTime<Utc>>,
    /// Reason why the delivery waits; null once it is settled.
    waiting: Option<Waiting>,
    /// Attempts since creation or the last replay. Null once the delivery is settled.
    attempt_count: Option<i32>,
    last_outcome: Option<String>,
    last_status: Option<i32>,
    last_error: Option<String>,
    last_attempt_at: Option<DateTime<Utc>>,
}

impl DeliveryView {
    fn new(row: DeliveryRow, waiting: Option<Waiting>) -> Self {
        Self {
            state: row.state(),
            id: row.id,
            merchant: row.merchant,
            kind: row.kind,
            event: row.event,
            ordering_key: row.ordering_key,
            sequence: row.sequence,
            created_at: row.created_at,
            next_attempt_at: row.next_attempt_at,
            waiting,
            attempt_count: row.attempts,
            last_outcome: row.outcome,
            last_status: row.status,
            last_error: row.detail,
            last_attempt_at: row.started_at,
        }
    }
}

/// A page of deliveries, newest first.
#[derive(Serialize, ToSchema)]
pub(crate) struct DeliveryPage {
    deliveries: Vec<DeliveryView>,
    /// Pass as `after` to get the next page. Absent on the last page.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

/// A request to the merchant, or an attempt that failed before the request.
#[derive(Serialize, ToSchema)]
pub(crate) struct AttemptView {
    /// 0 for the first delivery, 1 for the first replay, and so on.
    replay_number: i32,
    number: i32,
    started_at: DateTime<Utc>,
    latency_ms: i32,
    outcome: String,
    /// HTTP status code of the response.
    status: Option<i32>,
    detail: String,
    /// First bytes of the response body.
    response_body: String,
}

/// A delivery with its message body and all attempts.
#[derive(Serialize, ToSchema)]
pub(crate) struct DeliveryDetails {
    #[serde(flatten)]
    delivery: DeliveryView,
    /// The message body as sent to the merchant.
    body: String,
    attempts: Vec<AttemptView>,
}

/// List deliveries
///
/// Newest first.
#[utoipa::path(
    tag = "deliveries", security(("bearer" = ["orders"]), ("bearer" = ["returns"]), ("bearer" = ["operator"])), params(DeliveryQuery),
    responses(
        (status = 200, body = DeliveryPage), (status = 400, body = ErrorBody),
        (status = 401, body = ErrorBody), (status = 403, body = ErrorBody), (status = 422, body = ErrorBody),
    )
)]
#[get("/v1/deliveries")]
pub(crate) async fn list_deliveries(
    deliveries: web::Data<Deliveries>,
    caller: Caller,
    query: web::Query<DeliveryQuery>,
) -> Result<HttpResponse, Problem> {
    let query = query.into_inner();
    let merchant = readable_merchant(&caller, parse_merchant(query.merchant.as_deref())?)?;
    let filter = Filter {
        delivery: None,
        merchant: merchant.map(String::from),
        kind: query.kind,
        state: query.state,
        status: query.status,
        outcome: query.outcome,
        ordering_key: query.ordering_key,
        from: query.from,
        to: query.to,
    };
    check_filter(&filter)?;
    check_outcome(filter.outcome.as_deref())?;
    let mut conn = deliveries.0.pool.get().await?;
    let mut rows = store::newest_first(&mut conn, &filter, query.after, query.limit.rows()).await?;
    let next = query.limit.next(&mut rows, |last| last.id.to_string());
    let mut waiting = waiting(&deliveries.0, &mut conn, &rows).await?;
    let view = |row: DeliveryRow| {
        let waiting = waiting.remove(&row.id);
        DeliveryView::new(row, waiting)
    };
    let deliveries = rows.into_iter().map(view).collect();
    Ok(HttpResponse::Ok().json(DeliveryPage { deliveries, next }))
}

/// Show a delivery
///
/// With its message body and all attempts.
#[utoipa::path(
    tag = "deliveries", security(("bearer" = ["orders"]), ("bearer" = ["returns"]), ("bearer" = ["operator"])), params(("id" = Uuid, Path)),
    responses(
        (status = 200, body = DeliveryDetails), (status = 401, body = ErrorBody), (status = 403, body = ErrorBody),
        (status = 404, body = ErrorBody),
    )
)]
#[get("/v1/deliveries/{id}")]
pub(crate) async fn show_delivery(
    deliveries: web::Data<Deliveries>,
    caller: Caller,
    id: web::Path<Uuid>,
    request: HttpRequest,
) -> Result<HttpResponse, Problem> {
    let (id, merchant) = (id.into_inner(), readable_merchant(&caller, None)?);
    let mut conn = deliveries.0.pool.get().await?;
    let delivery = store::find(&mut conn, id).await?.ok_or(Error::NoDelivery(id))?;
    if merchant.is_some_and(|merchant| merchant.as_str() != delivery.merchant) {
        return Err(Error::NoDelivery(id).into());
    }
    let body = store::body(&mut conn, id).await?;
    reserve_for_response(&request, body.len())?;
    let attempts = store::attempts(&mut conn, id).await?.into_iter().map(|attempt| AttemptView {
        replay_number: attempt.replay_number,
        number: attempt.number,
        started_at: attempt.started_at,
        latency_ms: attempt.latency_ms,
        outcome: attempt.outcome,
        status: attempt.status,
        detail: attempt.detail,
        response_body: attempt.response_body,
    });
    let rows = [delivery];
    let waiting = waiting(&deliveries.0, &mut conn, &rows).await?.remove(&id);
    let [delivery] = rows;
    Ok(HttpResponse::Ok().json(DeliveryDetails {
        attempts: attempts.collect(),
        delivery: DeliveryView::new(delivery, waiting),
        body: String::from_utf8_lossy(&body).into_owned(),
    }))
}
