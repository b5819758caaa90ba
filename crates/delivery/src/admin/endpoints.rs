//! Lists endpoints with their state, backlog and health.

#![expect(unused_qualifications, reason = "the route macros repeat the types of queries")]

use std::collections::HashMap;

use actix_web::{HttpResponse, get, web};
use diesel_async::AsyncPgConnection;
use domain::access::MerchantId;
use domain::merchant::{Interface, Merchant};
use domain::message_kind::MessageKind;
use platform::http::{BadCursor, ErrorBody, PageLimit};
use platform::identity::Caller;
use platform::{Problem, Timestamp, database::DatabaseError};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::access::readable_merchant;
use super::endpoint_view::{EndpointState, EndpointView};
use super::parse_merchant;
use crate::Deliveries;
use crate::engine::Engine;
use crate::store::{self, DisabledEndpoint};
use crate::window::Window;

/// Waiting messages of an endpoint are counted up to this number.
const MAX_COUNTED: i64 = 10_000;

/// Filter and page of a list of endpoints.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
pub(crate) struct EndpointQuery {
    merchant: Option<String>,
    /// `ok`, `failing`, `paused` or `disabled`.
    state: Option<EndpointState>,
    /// Maximum number of entries
    #[serde(default)]
    #[param(inline)]
    limit: PageLimit,
    /// The `next` of the previous page.
    after: Option<String>,
}

/// A page of endpoints, by merchant and kind.
#[derive(Serialize, ToSchema)]
pub(crate) struct EndpointPage {
    endpoints: Vec<EndpointView>,
    /// Delays between the attempts of a message. Each differs by up to 10 %.
    retry_delays_seconds: Vec<u64>,
    /// Pass as `after` to get the next page. Absent on the last page.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

/// List endpoints
///
/// With their state, waiting messages, window and last results. A 410 response disables an endpoint.
#[utoipa::path(
    tag = "deliveries",
    security(("bearer" = ["read"]), ("bearer" = ["orders"]), ("bearer" = ["returns"])),
    params(EndpointQuery),
    responses(
        (status = 200, body = EndpointPage), (status = 400, body = ErrorBody),
        (status = 401, body = ErrorBody), (status = 403, body = ErrorBody),
    )
)]
#[get("/v1/endpoints")]
pub(crate) async fn list_endpoints(
    deliveries: web::Data<Deliveries>,
    caller: Caller,
    query: web::Query<EndpointQuery>,
) -> Result<HttpResponse, Problem> {
    let engine = &deliveries.0;
    let merchant = readable_merchant(&caller, parse_merchant(query.merchant.as_deref())?)?;
    let mut conn = engine.pool.get().await?;
    let states = EndpointStates::load(&mut conn).await?;
    let mut endpoints = endpoints(engine, merchant.as_ref(), &states);
    endpoints.retain(|endpoint| query.state.is_none_or(|state| endpoint.state == state));
    if let Some(after) = &query.after {
        let after = after.split_once('/').ok_or(BadCursor)?;
        endpoints.retain(|endpoint| (endpoint.merchant.as_str(), endpoint.kind.name()) > after);
    }
    let next = query.limit.next(&mut endpoints, |last| format!("{}/{}", last.merchant, last.kind));
    add_details(engine, &mut conn, &mut endpoints).await?;
    let retry_delays_seconds = engine.schedule.delays().map(|delay| delay.as_secs()).collect();
    Ok(HttpResponse::Ok().json(EndpointPage { endpoints, retry_delays_seconds, next }))
}

/// The endpoints that are disabled or fail.
struct EndpointStates {
    disabled: HashMap<(String, String), DisabledEndpoint>,
    failing_since: HashMap<(String, String), Timestamp>,
}

impl EndpointStates {
    async fn load(conn: &mut AsyncPgConnection) -> Result<Self, DatabaseError> {
        let disabled = store::disabled_endpoints(conn).await?.into_iter();
        let disabled = disabled.map(|it| ((it.merchant.clone(), it.kind.clone()), it)).collect();
        let failing = store::failing_endpoints(conn).await?.into_iter();
        let failing_since = failing.map(|it| ((it.merchant, it.kind), it.failing_since)).collect();
        Ok(Self { disabled, failing_since })
    }

    /// Returns the state of an endpoint, and the time since which it has that state.
    fn get(
        &self,
        merchant: &Merchant,
        kind: MessageKind,
        is_paused: bool,
    ) -> (EndpointState, Option<Timestamp>) {
        let key = (merchant.identifier.to_string(), kind.to_string());
        // The dispatcher enables an endpoint within a second after its merchant changed.
        let disabled = self.disabled.get(&key).filter(|it| merchant.version <= it.version);
        match (disabled, self.failing_since.get(&key)) {
            (Some(disabled), _) => (EndpointState::Disabled, Some(disabled.disabled_at)),
            _ if is_paused => (EndpointState::Paused, None),
            (None, Some(since)) => (EndpointState::Failing, Some(*since)),
            (None, None) => (EndpointState::Ok, None),
        }
    }
}

/// Returns the endpoints of one merchant or of all, sorted by merchant and kind.
fn endpoints(
    engine: &Engine,
    only: Option<&MerchantId>,
    states: &EndpointStates,
) -> Vec<EndpointView> {
    let merchants = engine.merchants.all();
    let mut endpoints = Vec::new();
    for merchant in merchants.values() {
        let id = &merchant.identifier;
        if only.is_some_and(|only| only != id) {
            continue;
        }
        for kind in &engine.kinds {
            if let Some(endpoint) = merchant.endpoints.get(&Interface::Message(*kind)) {
                let (state, since) = states.get(merchant, *kind, endpoint.paused);
                endpoints.push(EndpointView::new(id, *kind, state, since));
            }
        }
    }
    endpoints.sort_by(|a, b| (&a.merchant, a.kind.name()).cmp(&(&b.merchant, b.kind.name())));
    endpoints
}

/// Adds the backlog and health of a page of endpoints.
async fn add_details(
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
            endpoint.add_details(details, windows);
        }
        endpoint.add_recent(&recent);
    }
    Ok(())
}
