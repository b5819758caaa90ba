//! Lists endpoints with their state and backlog.

#![expect(unused_qualifications, reason = "the route macros repeat the types of queries")]

use std::collections::HashMap;

use actix_web::{HttpResponse, get, web};
use chrono::{DateTime, Utc};
use domain::access::MerchantId;
use domain::merchant::Interface;
use domain::message_kind::MessageKind;
use platform::Problem;
use platform::http::{BadCursor, ErrorBody, PageLimit};
use platform::identity::Caller;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::{parse_merchant, readable_merchant};
use crate::Deliveries;
use crate::engine::Engine;
use crate::store::{self, DisabledEndpoint, EndpointBacklog};

/// Waiting messages of an endpoint are counted up to this number.
const MAX_COUNTED: i64 = 10_000;

/// State of an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum EndpointState {
    Active,
    /// Paused by an operator; messages wait.
    Paused,
    /// Disabled by a 410 response; messages wait.
    Disabled,
}

/// Filter and page of a list of endpoints.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
pub(crate) struct EndpointQuery {
    merchant: Option<String>,
    /// `active`, `paused` or `disabled`.
    state: Option<EndpointState>,
    /// Maximum number of entries
    #[serde(default)]
    #[param(inline)]
    limit: PageLimit,
    /// The `next` of the previous page.
    after: Option<String>,
}

/// An endpoint that this service delivers to.
#[derive(Serialize, ToSchema)]
pub(crate) struct EndpointView {
    merchant: String,
    kind: MessageKind,
    state: EndpointState,
    /// Time of the 410 response that disabled the endpoint.
    disabled_at: Option<DateTime<Utc>>,
    /// How to send the waiting messages; only for an endpoint that is paused or disabled.
    remedy: Option<String>,
    /// Messages that wait, counted up to 10,000.
    waiting: i64,
    /// Messages that are being sent.
    in_flight: i64,
}

/// A page of endpoints, by merchant and kind.
#[derive(Serialize, ToSchema)]
pub(crate) struct EndpointPage {
    endpoints: Vec<EndpointView>,
    /// Pass as `after` to get the next page. Absent on the last page.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

/// List endpoints
///
/// With their state and the number of waiting messages. A 410 response disables an endpoint.
#[utoipa::path(
    tag = "deliveries",
    security(("bearer" = ["orders"]), ("bearer" = ["returns"]), ("bearer" = ["operator"])),
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
    let disabled = store::disabled_endpoints(&mut conn).await?;
    let mut endpoints = endpoints(engine, merchant.as_ref(), &disabled);
    endpoints.retain(|endpoint| query.state.is_none_or(|state| endpoint.state == state));
    if let Some(after) = &query.after {
        let after = after.split_once('/').ok_or(BadCursor)?;
        endpoints.retain(|endpoint| (endpoint.merchant.as_str(), endpoint.kind.name()) > after);
    }
    let next = query.limit.next(&mut endpoints, |last| format!("{}/{}", last.merchant, last.kind));
    let page = endpoints.iter().map(|it| (it.merchant.as_str(), it.kind.name())).unzip();
    let backlogs = store::endpoint_backlogs(&mut conn, page, MAX_COUNTED).await?;
    count(&mut endpoints, &backlogs);
    Ok(HttpResponse::Ok().json(EndpointPage { endpoints, next }))
}

/// Returns the endpoints of one merchant or of all, sorted by merchant and kind.
fn endpoints(
    engine: &Engine,
    only: Option<&MerchantId>,
    disabled: &[DisabledEndpoint],
) -> Vec<EndpointView> {
    let disabled: HashMap<_, _> =
        disabled.iter().map(|it| ((it.merchant.as_str(), it.kind.as_str()), it)).collect();
    let merchants = engine.merchants.all();
    let mut endpoints = Vec::new();
    for merchant in merchants.values() {
        let id = &merchant.identifier;
        if only.is_some_and(|only| only != id) {
            continue;
        }
        for kind in &engine.kinds {
            let Some(endpoint) = merchant.endpoints.get(&Interface::Message(*kind)) else {
                continue;
            };
            let disabled_at = disabled
                .get(&(id.as_str(), kind.name()))
                // The dispatcher enables an endpoint within a second after its merchant changed.
                .filter(|disabled| merchant.version <= disabled.version)
                .map(|disabled| disabled.disabled_at);
            endpoints.push(EndpointView::new(id, *kind, endpoint.paused, disabled_at));
        }
    }
    endpoints.sort_by(|a, b| (&a.merchant, a.kind.name()).cmp(&(&b.merchant, b.kind.name())));
    endpoints
}

impl EndpointView {
    fn new(
        merchant: &MerchantId,
        kind: MessageKind,
        is_paused: bool,
        disabled_at: Option<DateTime<Utc>>,
    ) -> Self {
        let resume = format!("`backhaul endpoint resume {merchant} {kind}`");
        let (state, remedy) = match disabled_at {
            Some(_) => {
                let remedy =
                    format!("the endpoint responded with 410: set its new URL, or {resume}");
                (EndpointState::Disabled, Some(remedy))
            }
            None if is_paused => (EndpointState::Paused, Some(resume)),
            None => (EndpointState::Active, None),
        };
        let merchant = merchant.to_string();
        Self { merchant, kind, state, disabled_at, remedy, waiting: 0, in_flight: 0 }
    }
}

fn count(endpoints: &mut [EndpointView], backlogs: &[EndpointBacklog]) {
    for endpoint in endpoints {
        let is_same = |backlog: &&EndpointBacklog| {
            backlog.merchant == endpoint.merchant && backlog.kind == endpoint.kind.name()
        };
        if let Some(backlog) = backlogs.iter().find(is_same) {
            (endpoint.waiting, endpoint.in_flight) = (backlog.waiting, backlog.in_flight);
        }
    }
}
