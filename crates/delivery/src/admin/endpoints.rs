//! Lists endpoints with their state, backlog and health.

#![expect(unused_qualifications, reason = "the route macros repeat the types of queries")]

use actix_web::{HttpResponse, get, web};
use api::delivery::{EndpointPage, EndpointView};
use diesel_async::AsyncPgConnection;
use domain::access::MerchantId;
use domain::endpoint_state::EndpointState;
use platform::http::{BadCursor, PageLimit, Query};
use platform::identity::Caller;
use platform::{Problem, database::DatabaseError};
use serde::Deserialize;
use utoipa::IntoParams;

use super::access::readable_merchant;
use super::endpoint_states::Selection;
use super::endpoint_view::{add_recent, complete};
use super::parse_merchant;
use crate::Deliveries;
use crate::engine::Engine;
use crate::store::{self, EndpointKey};
use crate::window::Window;

/// Waiting messages of an endpoint are counted up to this number.
const MAX_COUNTED: i64 = 10_000;

/// Filter and page of a list of endpoints.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
pub(crate) struct EndpointQuery {
    merchant: Option<String>,
    /// `ok`, `not_tried`, `failing` or `paused`.
    state: Option<EndpointState>,
    /// Maximum number of entries
    #[serde(default)]
    #[param(inline)]
    limit: PageLimit,
    /// The `next` of the previous page.
    after: Option<String>,
}

/// List endpoints
///
/// With their state, waiting messages, window and last results. An endpoint is failing if its last attempt
/// failed for a reason that concerns all messages, if a message was given up since its last success, or if no
/// attempt has succeeded. A page of one state reads up to 2,000 endpoints;
/// it can have few or none, and still a `next`.
#[utoipa::path(
    tag = "deliveries",
    security(("bearer" = ["read"]), ("bearer" = ["orders"]), ("bearer" = ["returns"])),
    params(EndpointQuery),
    responses((status = 200, body = EndpointPage))
)]
#[get("/v1/endpoints")]
pub(crate) async fn list_endpoints(
    deliveries: web::Data<Deliveries>,
    caller: Caller,
    query: Query<EndpointQuery>,
) -> Result<HttpResponse, Problem> {
    let engine = &deliveries.0;
    let merchant = readable_merchant(&caller, parse_merchant(query.merchant.as_deref())?)?;
    let after = query.after.as_deref().map(read_cursor).transpose()?;
    let mut conn = engine.pool.reader(merchant.as_ref().map(MerchantId::as_str)).await?;
    let selection = Selection { engine, merchant: merchant.as_ref(), state: query.state };
    let rows = usize::try_from(query.limit.rows()).unwrap_or_default();
    let (mut endpoints, scanned_to) = selection.page(&mut conn, after, rows).await?;
    let next = query.limit.next(&mut endpoints, |last| format!("{}/{}", last.merchant, last.kind));
    let next = next.or(scanned_to.map(|(merchant, kind)| format!("{merchant}/{kind}")));
    add_details(engine, &mut conn, &mut endpoints).await?;
    let retry_delays_seconds = engine.schedule.delays().map(|delay| delay.as_secs()).collect();
    Ok(HttpResponse::Ok().json(EndpointPage { endpoints, retry_delays_seconds, next }))
}

/// The endpoint in a cursor.
fn read_cursor(after: &str) -> Result<EndpointKey, BadCursor> {
    let (merchant, kind) =
        after.split_once('/').filter(|_| !after.contains('\0')).ok_or(BadCursor)?;
    Ok((merchant.to_owned(), kind.to_owned()))
}

/// Adds the backlog and health of a page of endpoints.
pub(super) async fn add_details(
    engine: &Engine,
    conn: &mut AsyncPgConnection,
    endpoints: &mut [EndpointView],
) -> Result<(), DatabaseError> {
    let (merchants, kinds): (Vec<_>, Vec<_>) =
        endpoints.iter().map(|it| (it.merchant.clone(), it.kind.name())).unzip();
    let merchants: Vec<_> = merchants.iter().map(String::as_str).collect();
    let page = (merchants.as_slice(), kinds.as_slice());
    let now = engine.clock.now();
    let details = store::endpoint_details(conn, page, MAX_COUNTED, now).await?;
    let recent = store::recent_latencies(conn, page).await?;
    let size = |size: u32| i32::try_from(size).unwrap_or(i32::MAX);
    let limits = engine.settings.windows();
    let windows = (size(Window::new(limits).size()), size(limits.max.get()));
    for endpoint in endpoints {
        let own = details
            .iter()
            .find(|it| it.merchant == endpoint.merchant && it.kind == endpoint.kind.name());
        if let Some(details) = own {
            complete(endpoint, details, windows);
        }
        add_recent(endpoint, &recent);
    }
    Ok(())
}
