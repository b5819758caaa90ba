//! Where a merchant's messages go, for operators.

use std::collections::BTreeMap;

use actix_web::{HttpResponse, delete, get, post, put, web};
use domain::{
    json::object,
    merchant::{Authentication, Endpoint, EndpointChange, Interface},
};
use platform::{
    Problem,
    http::{ErrorBody, Json},
    identity::Caller,
};
use serde::Serialize;
use utoipa::ToSchema;

use super::{
    Overlap,
    merchants::{Hidden, MerchantView, hide},
    operator, read_overlap,
};
use crate::{
    App,
    error::Error,
    merchants::{self, Flow},
    store::{self, merchants::Stored},
};

/// How an endpoint is to be. Leave out `url` to use the merchant's base URL with `path`, or with
/// the usual path of the interface.
#[derive(ToSchema)]
#[expect(dead_code, reason = "the shape of a request, for the API document")]
pub(crate) struct NewEndpoint {
    url: Option<String>,
    path: Option<String>,
    headers: Option<BTreeMap<String, String>>,
    authentication: Option<Authentication<String>>,
    #[schema(minimum = 100, maximum = 120_000)]
    timeout_ms: Option<u32>,
}

/// An endpoint, and its signing secret when that was just made.
#[derive(Serialize, ToSchema)]
pub(crate) struct EndpointView {
    interface: String,
    endpoint: Endpoint<Hidden>,
    /// Shown this once: what messages are signed with (Standard Webhooks).
    #[serde(skip_serializing_if = "Option::is_none")]
    signing_secret: Option<String>,
}

/// A merchant's endpoints by interface.
#[derive(Serialize, ToSchema)]
pub(crate) struct Endpoints {
    endpoints: BTreeMap<String, Endpoint<Hidden>>,
}

fn view(
    stored: &Stored,
    interface: Interface,
    signing_secret: Option<String>,
) -> Result<EndpointView, Error> {
    let endpoint = stored.merchant.endpoints.get(&interface);
    let endpoint =
        endpoint.ok_or_else(|| Error::NoEndpoint(stored.merchant.identifier.clone(), interface))?;
    Ok(EndpointView { interface: interface.to_string(), endpoint: hide(endpoint), signing_secret })
}

fn interface(name: &str) -> Result<Interface, Error> {
    Ok(name.parse::<Interface>()?)
}

/// List a merchant's endpoints
#[utoipa::path(
    tag = "endpoints", security(("bearer" = [])), params(("merchant" = String, Path)),
    responses(
        (status = 200, body = Endpoints), (status = 401, body = ErrorBody), (status = 403, body = ErrorBody),
        (status = 404, body = ErrorBody),
    )
)]
#[get("/v1/merchants/{merchant}/endpoints")]
pub(crate) async fn list_endpoints(
    app: web::Data<App>,
    caller: Caller,
    merchant: web::Path<String>,
) -> Result<HttpResponse, Problem> {
    operator(&caller)?;
    let stored = store::merchants::find(&mut *app.pool.get().await?, &merchant).await?;
    let hidden = stored
        .merchant
        .endpoints
        .iter()
        .map(|(interface, endpoint)| (interface.to_string(), hide(endpoint)));
    Ok(HttpResponse::Ok().json(Endpoints { endpoints: hidden.collect() }))
}

/// Set an endpoint
///
/// The first time, the answer holds the signing secret; it is not shown again. The question for
/// variants is not signed and has none.
#[utoipa::path(
    tag = "endpoints", security(("bearer" = [])),
    params(("merchant" = String, Path), ("interface" = String, Path, example = "rma")), request_body = NewEndpoint,
    responses(
        (status = 200, body = EndpointView), (status = 401, body = ErrorBody), (status = 403, body = ErrorBody),
        (status = 404, body = ErrorBody), (status = 409, description = "No base URL to go by", body = ErrorBody),
        (status = 422, body = ErrorBody),
    )
)]
#[put("/v1/merchants/{merchant}/endpoints/{interface}")]
pub(crate) async fn set_endpoint(
    app: web::Data<App>,
    caller: Caller,
    place: web::Path<(String, String)>,
    Json(document): Json,
) -> Result<HttpResponse, Problem> {
    let actor = operator(&caller)?;
    let interface = interface(&place.1)?;
    let change = document.read(object(|it| EndpointChange::read(it, interface)))?;
    let (stored, secret) =
        merchants::set_endpoint(&app, actor, &place.0, interface, change).await?;
    Ok(HttpResponse::Ok().json(view(&stored, interface, secret)?))
}

/// Remove an endpoint
#[utoipa::path(
    tag = "endpoints", security(("bearer" = [])),
    params(("merchant" = String, Path), ("interface" = String, Path)),
    responses(
        (status = 204), (status = 401, body = ErrorBody), (status = 403, body = ErrorBody),
        (status = 404, body = ErrorBody),
    )
)]
#[delete("/v1/merchants/{merchant}/endpoints/{interface}")]
pub(crate) async fn remove_endpoint(
    app: web::Data<App>,
    caller: Caller,
    place: web::Path<(String, String)>,
) -> Result<HttpResponse, Problem> {
    merchants::remove_endpoint(&app, operator(&caller)?, &place.0, interface(&place.1)?).await?;
    Ok(HttpResponse::NoContent().finish())
}

/// Make a new signing secret
///
/// For a while both sign, so that the merchant can change over without missing a message.
#[utoipa::path(
    tag = "endpoints", security(("bearer" = [])),
    params(("merchant" = String, Path), ("interface" = String, Path)), request_body = Overlap,
    responses(
        (status = 200, body = EndpointView), (status = 401, body = ErrorBody), (status = 403, body = ErrorBody),
        (status = 404, body = ErrorBody), (status = 422, body = ErrorBody),
    )
)]
#[post("/v1/merchants/{merchant}/endpoints/{interface}/rotate_secret")]
pub(crate) async fn rotate_endpoint_secret(
    app: web::Data<App>,
    caller: Caller,
    place: web::Path<(String, String)>,
    Json(document): Json,
) -> Result<HttpResponse, Problem> {
    let actor = operator(&caller)?;
    let interface = interface(&place.1)?;
    let overlap = document.read(object(read_overlap))?.unwrap_or(app.settings.secrets.overlap);
    let (stored, secret) =
        merchants::rotate_secret(&app, actor, &place.0, interface, overlap).await?;
    Ok(HttpResponse::Ok().json(view(&stored, interface, Some(secret))?))
}

/// Let messages wait
#[utoipa::path(
    tag = "endpoints", security(("bearer" = [])),
    params(("merchant" = String, Path), ("interface" = String, Path)),
    responses(
        (status = 200, body = MerchantView), (status = 401, body = ErrorBody), (status = 403, body = ErrorBody),
        (status = 404, body = ErrorBody),
    )
)]
#[post("/v1/merchants/{merchant}/endpoints/{interface}/pause")]
pub(crate) async fn pause_endpoint(
    app: web::Data<App>,
    caller: Caller,
    place: web::Path<(String, String)>,
) -> Result<HttpResponse, Problem> {
    set_flow(&app, &caller, &place, Flow::Paused).await
}

/// Send what waited
#[utoipa::path(
    tag = "endpoints", security(("bearer" = [])),
    params(("merchant" = String, Path), ("interface" = String, Path)),
    responses(
        (status = 200, body = MerchantView), (status = 401, body = ErrorBody), (status = 403, body = ErrorBody),
        (status = 404, body = ErrorBody),
    )
)]
#[post("/v1/merchants/{merchant}/endpoints/{interface}/resume")]
pub(crate) async fn resume_endpoint(
    app: web::Data<App>,
    caller: Caller,
    place: web::Path<(String, String)>,
) -> Result<HttpResponse, Problem> {
    set_flow(&app, &caller, &place, Flow::Running).await
}

async fn set_flow(
    app: &App,
    caller: &Caller,
    (merchant, name): &(String, String),
    flow: Flow,
) -> Result<HttpResponse, Problem> {
    let stored =
        merchants::set_flow(app, operator(caller)?, merchant, interface(name)?, flow).await?;
    Ok(HttpResponse::Ok().json(MerchantView::from(stored)))
}
