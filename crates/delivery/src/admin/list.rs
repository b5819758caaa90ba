//! Lists deliveries.

#![expect(unused_qualifications, reason = "the route macros repeat the types of queries")]

use actix_web::{HttpResponse, get, web};
use api::delivery::{DeliveryPage, DeliveryView, Filter, State, Waiting};
use chrono::{DateTime, Utc};
use platform::Problem;
use platform::http::{ErrorBody, ListOrder, PageLimit, Query};
use platform::identity::Caller;
use serde::Deserialize;
use utoipa::IntoParams;
use uuid::Uuid;

use super::access::readable_merchant;
use super::waiting::waiting;
use super::{check_filter, check_outcome, parse_merchant};
use crate::Deliveries;
use crate::store::{self, DeliveryRow, IdOrder, Scan};

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
    /// Id of a delivery, an ordering key, or the identifier in one: of a return, order or ASN. The
    /// whole identifier must match.
    text: Option<String>,
    /// For example `rma.created`.
    event: Option<String>,
    /// Created at this time or later.
    from: Option<DateTime<Utc>>,
    /// Created before this time.
    to: Option<DateTime<Utc>>,
    /// `newest` or `oldest` first.
    #[serde(default)]
    #[param(inline)]
    order: ListOrder,
    /// Maximum number of entries
    #[serde(default)]
    #[param(inline)]
    limit: PageLimit,
    /// The `next` of the previous page.
    after: Option<Uuid>,
}

pub(super) fn show(row: DeliveryRow, waiting: Option<Waiting>) -> DeliveryView {
    DeliveryView {
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
        attempt_count: row.attempts.or(row.last_number),
        last_outcome: row.outcome,
        last_status: row.status,
        last_error: row.detail,
        last_attempt_at: row.started_at,
    }
}

/// List deliveries
///
/// Newest first unless `order` is `oldest`. Each page reads up to 2,000 messages, or failed attempts for a
/// filter by a failure. A page of a filter that few of them match can have few deliveries or none, and still a
/// `next`.
#[utoipa::path(
    tag = "deliveries", security(("bearer" = ["read"]), ("bearer" = ["orders"]), ("bearer" = ["returns"])), params(DeliveryQuery),
    responses((status = 200, body = DeliveryPage), (status = 422, body = ErrorBody))
)]
#[get("/v1/deliveries")]
pub(crate) async fn list_deliveries(
    deliveries: web::Data<Deliveries>,
    caller: Caller,
    query: Query<DeliveryQuery>,
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
        text: query.text,
        event: query.event,
        from: query.from,
        to: query.to,
    };
    check_filter(&filter)?;
    check_outcome(filter.outcome.as_deref())?;
    let engine = &deliveries.0;
    // A kind of another service would be searched in the whole history.
    let is_foreign = |kind: &str| engine.kinds.iter().all(|own| own.name() != kind);
    if filter.kind.as_deref().is_some_and(is_foreign) {
        return Ok(HttpResponse::Ok().json(DeliveryPage { deliveries: Vec::new(), next: None }));
    }
    let mut conn = engine.pool.reader(filter.merchant.as_deref()).await?;
    let order = match query.order {
        ListOrder::Newest => IdOrder::NewestFirst,
        ListOrder::Oldest => IdOrder::OldestFirst,
    };
    let Scan { mut rows, scanned_to } =
        store::list(&mut conn, &filter, order, query.after, query.limit.rows()).await?;
    let next = query.limit.next(&mut rows, |last| last.id.to_string());
    let next = next.or(scanned_to.map(|id| id.to_string()));
    let mut waiting = waiting(engine, &mut conn, &rows).await?;
    let view = |row: DeliveryRow| {
        let waiting = waiting.remove(&row.id);
        show(row, waiting)
    };
    let deliveries = rows.into_iter().map(view).collect();
    Ok(HttpResponse::Ok().json(DeliveryPage { deliveries, next }))
}
