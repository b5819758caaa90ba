//! What was sent and what came of it.

#![expect(unused_qualifications, reason = "the route macros repeat the types of queries")]

use actix_web::{HttpRequest, HttpResponse, get, web};
use chrono::{DateTime, Utc};
use domain::access::MerchantId;
use platform::Problem;
use platform::http::{ErrorBody, PageLimit, reserve_for_response};
use platform::identity::Caller;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

use super::{Refused, check_filter, readable};
use crate::Deliveries;
use crate::ledger::{Filter, Found, State, attempts, body, find, newest_first};

/// Which deliveries; all that is given must fit.
#[derive(Clone, Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
pub(crate) struct DeliveryQuery {
    merchant: Option<String>,
    /// For example `rma`.
    kind: Option<String>,
    /// `pending`, `delivered` or `dead`.
    state: Option<State>,
    /// The status code of the last answer.
    status: Option<u16>,
    ordering_key: Option<String>,
    /// Created at this time or later.
    from: Option<DateTime<Utc>>,
    /// Created before this time.
    to: Option<DateTime<Utc>>,
    /// Maximum number of entries
    #[serde(default)]
    #[param(inline)]
    limit: PageLimit,
    /// The `next` of the previous page
    after: Option<Uuid>,
}

/// A message and where it stands.
#[derive(Serialize, ToSchema)]
pub(crate) struct DeliveryView {
    /// What the merchant sees as `webhook-id`.
    id: Uuid,
    merchant: String,
    kind: String,
    event: String,
    ordering_key: Option<String>,
    sequence: i64,
    state: State,
    created_at: DateTime<Utc>,
    /// When it is tried next at the earliest. Null while it is being tried or waits for one before it.
    due_at: Option<DateTime<Utc>>,
    /// Counted attempts since it was created or last replayed, while it waits.
    attempts: Option<i32>,
    last_outcome: Option<String>,
    last_status: Option<i32>,
    last_error: Option<String>,
    last_attempt_at: Option<DateTime<Utc>>,
}

impl From<Found> for DeliveryView {
    fn from(found: Found) -> Self {
        Self {
            state: found.state(),
            id: found.id,
            merchant: found.merchant,
            kind: found.kind,
            event: found.event,
            ordering_key: found.ordering_key,
            sequence: found.sequence,
            created_at: found.created_at,
            due_at: found.due_at,
            attempts: found.attempts,
            last_outcome: found.outcome,
            last_status: found.status,
            last_error: found.detail,
            last_attempt_at: found.started_at,
        }
    }
}

/// Some deliveries, the newest first.
#[derive(Serialize, ToSchema)]
pub(crate) struct DeliveryPage {
    deliveries: Vec<DeliveryView>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

/// One request to the merchant, or a try that did not get as far.
#[derive(Serialize, ToSchema)]
pub(crate) struct AttemptView {
    /// 0 when it was first sent, then counts the replays.
    round: i32,
    number: i32,
    started_at: DateTime<Utc>,
    latency_ms: i32,
    outcome: String,
    status: Option<i32>,
    detail: String,
    /// The start of what the merchant answered.
    answer: String,
}

/// A message with its body and every try.
#[derive(Serialize, ToSchema)]
pub(crate) struct DeliveryDetails {
    #[serde(flatten)]
    delivery: DeliveryView,
    /// The message as it is sent.
    body: String,
    requests: Vec<AttemptView>,
}

/// List deliveries
///
/// The newest first.
#[utoipa::path(
    tag = "deliveries", security(("bearer" = [])), params(DeliveryQuery),
    responses(
        (status = 200, body = DeliveryPage), (status = 400, body = ErrorBody),
        (status = 401, body = ErrorBody), (status = 403, body = ErrorBody),
    )
)]
#[get("/v1/deliveries")]
pub(crate) async fn list_deliveries(
    deliveries: web::Data<Deliveries>,
    caller: Caller,
    query: web::Query<DeliveryQuery>,
) -> Result<HttpResponse, Problem> {
    let query = query.into_inner();
    let merchant = readable(&caller, merchant_id(query.merchant.as_deref())?)?;
    let filter = Filter {
        delivery: None,
        merchant: merchant.map(String::from),
        kind: query.kind,
        state: query.state,
        status: query.status,
        ordering_key: query.ordering_key,
        from: query.from,
        to: query.to,
    };
    check_filter(&filter)?;
    let mut conn = deliveries.0.pool.get().await?;
    let mut found = newest_first(&mut conn, &filter, query.after, query.limit.rows()).await?;
    let next = query.limit.next(&mut found, |last| last.id.to_string());
    let deliveries = found.into_iter().map(DeliveryView::from).collect();
    Ok(HttpResponse::Ok().json(DeliveryPage { deliveries, next }))
}

/// Show a delivery
///
/// With its body and every try.
#[utoipa::path(
    tag = "deliveries", security(("bearer" = [])), params(("id" = Uuid, Path)),
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
    let (id, merchant) = (id.into_inner(), readable(&caller, None)?);
    let mut conn = deliveries.0.pool.get().await?;
    let found = find(&mut conn, id).await?.ok_or(Refused::NoDelivery(id))?;
    if merchant.is_some_and(|merchant| merchant.as_str() != found.merchant) {
        return Err(Refused::NoDelivery(id).into());
    }
    let body = body(&mut conn, id).await?;
    reserve_for_response(&request, body.len())?;
    let requests = attempts(&mut conn, id).await?.into_iter().map(|logged| AttemptView {
        round: logged.round,
        number: logged.number,
        started_at: logged.started_at,
        latency_ms: logged.latency_ms,
        outcome: logged.outcome,
        status: logged.status,
        detail: logged.detail,
        answer: logged.answer,
    });
    Ok(HttpResponse::Ok().json(DeliveryDetails {
        requests: requests.collect(),
        delivery: found.into(),
        body: String::from_utf8_lossy(&body).into_owned(),
    }))
}

pub(super) fn merchant_id(text: Option<&str>) -> Result<Option<MerchantId>, Refused> {
    let read =
        |text: &str| text.parse().map_err(|error| Refused::Malformed(format!("merchant {error}")));
    text.map(read).transpose()
}
