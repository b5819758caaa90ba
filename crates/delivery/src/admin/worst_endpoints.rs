//! The endpoints that need attention, for an overview of all merchants.

#![expect(unused_qualifications, reason = "the route macros repeat the types of queries")]

use actix_web::{HttpResponse, get, web};
use api::delivery::{OldestDueView, WorstEndpoints};
use chrono::TimeDelta;
use domain::access::MerchantId;
use domain::endpoint_state::EndpointState;
use platform::Problem;
use platform::http::{PageLimit, Query};
use platform::identity::Caller;
use serde::Deserialize;
use utoipa::IntoParams;

use super::access::readable_merchant;
use super::endpoint_states::views;
use super::endpoints::add_details;
use super::parse_merchant;
use crate::Deliveries;
use crate::store::{self, OldestDue};

/// Attempts of this time count as recent.
const RECENT: TimeDelta = TimeDelta::hours(2);
/// Number of endpoints of each state that are read. Some of them may be paused or no longer set.
const MAX_READ: i64 = 200;

/// Filter of the endpoints that need attention.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
pub(crate) struct WorstQuery {
    merchant: Option<String>,
    /// Maximum number of endpoints
    #[serde(default)]
    #[param(inline)]
    limit: PageLimit,
}

/// List the endpoints that need attention
///
/// The worst first, without paused ones, and the oldest due delivery of all endpoints. The work does not
/// depend on the number of endpoints that are well.
#[utoipa::path(
    tag = "deliveries",
    security(("bearer" = ["read"]), ("bearer" = ["orders"]), ("bearer" = ["returns"])),
    params(WorstQuery),
    responses((status = 200, body = WorstEndpoints))
)]
#[get("/v1/endpoints/worst")]
pub(crate) async fn list_worst_endpoints(
    deliveries: web::Data<Deliveries>,
    caller: Caller,
    query: Query<WorstQuery>,
) -> Result<HttpResponse, Problem> {
    let engine = &deliveries.0;
    let merchant = readable_merchant(&caller, parse_merchant(query.merchant.as_deref())?)?;
    let merchant = merchant.as_ref().map(MerchantId::as_str);
    let now = engine.clock.now();
    let mut conn = engine.pool.reader(merchant).await?;
    let keys = store::worst_endpoints(&mut conn, merchant, now - RECENT, MAX_READ).await?;
    let mut endpoints = views(engine, &mut conn, &keys).await?;
    endpoints.retain(|endpoint| endpoint.state != EndpointState::Paused);
    endpoints.truncate(usize::try_from(query.limit.rows() - 1).unwrap_or_default());
    add_details(engine, &mut conn, &mut endpoints).await?;
    let (merchants, kinds) = engine.paused();
    let oldest = store::oldest_due(&mut conn, now, merchant, (&merchants, &kinds)).await?;
    let oldest_due =
        oldest.map(|OldestDue { merchant, kind, due_at }| OldestDueView { merchant, kind, due_at });
    Ok(HttpResponse::Ok().json(WorstEndpoints { endpoints, oldest_due }))
}
