//! Endpoints of merchants, for operators and for the merchants themselves.

#![expect(unused_qualifications, reason = "the route macros repeat the types of queries")]

use std::collections::BTreeMap;

use actix_web::{HttpRequest, HttpResponse, delete, get, post, put, web};
use domain::{
    json::{Digest, Object, object},
    merchant::{Authentication, Endpoint, Interface},
};
use platform::{
    Problem,
    http::{ErrorBody, Json, Query, Sequential},
    idempotency::KeyHeader,
    identity::Caller,
};
use serde::Deserialize;
use serde_json::json;
use utoipa::{IntoParams, ToSchema};

use super::{
    RotateSecretRequest, check_merchant, condition, expected_version, idempotency_key,
    read_rotation, read_with_digest, require_manage, require_read,
};
use crate::{
    App,
    endpoints::{self, EndpointList, EndpointView, SetOptions},
    error::Error,
    merchants::MerchantView,
};

/// The merchant and the interface in the URL.
type EndpointPath = web::Path<(String, String)>;

/// An endpoint. Without `url`, requests go to the merchant's base URL followed by `path`; `path`
/// defaults to the standard path of the interface.
#[derive(ToSchema)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "only describes the request in the OpenAPI document")]
pub(crate) struct SetEndpointRequest {
    /// An https URL of a public address. Not together with `path`.
    #[schema(min_length = 1, max_length = 2000)]
    url: Option<String>,
    /// A path without `.` and `..` segments.
    #[schema(min_length = 1, max_length = 1000)]
    path: Option<String>,
    /// At most 50 headers, with names of up to 100 and values of up to 1000 characters. Headers that
    /// HTTP or the service sets are rejected.
    headers: Option<BTreeMap<String, String>>,
    authentication: Option<Authentication<String>>,
    #[schema(minimum = 100, maximum = 120_000)]
    timeout_ms: Option<u32>,
    /// The version of the messages, one that the interface supports. Defaults to the version of the
    /// contract. Messages that wait already keep their version.
    #[schema(maximum = 65_535)]
    version: Option<u16>,
    /// When the endpoint works again after a failure of some minutes, its dead messages of this many days are
    /// sent again, slowly and in order. Without it, they wait for a replay. Not for variants.
    #[schema(minimum = 1, maximum = 30)]
    recovery_replay_days: Option<u16>,
}

/// How an endpoint is replaced.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
pub(crate) struct SetEndpointQuery {
    /// Whether a `url` or `token_url` without a query keeps the query that is stored for it.
    #[serde(default)]
    keep_queries: bool,
}

/// The actor and the interface of a request that manages an endpoint.
fn require_endpoint<'a>(
    caller: &'a Caller,
    path: &EndpointPath,
) -> Result<(&'a str, Interface), Problem> {
    let actor = require_manage(caller)?;
    check_merchant(caller, &path.0)?;
    Ok((actor, path.1.parse::<Interface>().map_err(Error::from)?))
}

/// List the endpoints of a merchant
///
/// Secrets and credentials are not shown.
#[utoipa::path(
    tag = "endpoints", security(("bearer" = ["read"]), ("bearer" = ["manage"]), ("bearer" = ["operator"])), params(("merchant" = String, Path)),
    responses((status = 200, body = EndpointList))
)]
#[get("/v1/merchants/{merchant}/endpoints")]
pub(crate) async fn list_endpoints(
    app: web::Data<App>,
    caller: Caller,
    merchant: web::Path<String>,
) -> Result<HttpResponse, Problem> {
    require_read(&caller)?;
    check_merchant(&caller, &merchant)?;
    Ok(HttpResponse::Ok().json(endpoints::list(&app, &merchant).await?))
}

/// Create or replace an endpoint
///
/// The response to the first request contains the signing secret; later responses do not. Requests
/// for variants are not signed, so that endpoint has no signing secret. The values of `headers` and
/// the queries of `url` and `token_url` are secrets: they are encrypted, and responses contain
/// `********` instead. A request with `********` in one of these places is rejected. With
/// `keep_queries`, a `url` or `token_url` without a query keeps the query that is stored for it.
#[utoipa::path(
    tag = "endpoints", security(("bearer" = ["manage"]), ("bearer" = ["operator"])),
    params(("merchant" = String, Path), ("interface" = String, Path, example = "rma"), ("If-Match" = Option<String>, Header, description = "The `version` of the merchant that the caller has read"), ("If-None-Match" = Option<String>, Header, description = "`*` creates only: an endpoint that exists is not replaced"), ("Idempotency-Key" = Option<String>, Header, description = "Makes it safe to repeat the request. Optional; 1 to 255 visible ASCII characters, for example a UUID. A repeated request of the same caller with the same key and body takes effect once and gets the first response with the same secret. The same key with another body gets 422. A request that failed does not use up its key. Keys are kept for an hour, unless the setting `idempotency.retention` says otherwise."), SetEndpointQuery),
    request_body(content = SetEndpointRequest, example = json!({ "url": "https://acme.example/hooks/rmas", "authentication": { "kind": "bearer", "token": "a-secret-token" }, "timeout_ms": 10_000 })),
    responses(
        (status = 200, body = EndpointView),
        (status = 409, description = "The endpoint has no url and the merchant no base_url", body = ErrorBody),
        (status = 412, description = "The merchant has another version than `If-Match`, or the endpoint exists and `If-None-Match` is `*`", body = ErrorBody),
    )
)]
#[put("/v1/merchants/{merchant}/endpoints/{interface}")]
pub(crate) async fn set_endpoint(
    app: web::Data<App>,
    request: HttpRequest,
    header: KeyHeader,
    Sequential(caller, body): Sequential<Caller, Json>,
    path: EndpointPath,
    query: Query<SetEndpointQuery>,
) -> Result<HttpResponse, Problem> {
    let (actor, interface) = require_endpoint(&caller, &path)?;
    let guard = app.guard.clone();
    let new = body.read(object(move |body| Endpoint::read(body, interface, &guard))).await?;
    // The body has secrets, and the digest is not encrypted.
    let digest = Digest::of_value(&json!(query.keep_queries));
    let options = SetOptions {
        key: idempotency_key(&header, &caller, "endpoints", request.path(), digest),
        condition: condition(&request),
        keep_queries: query.keep_queries,
    };
    let endpoint = endpoints::set(&app, actor, &path.0, interface, new, options).await?;
    Ok(HttpResponse::Ok().json(endpoint))
}

/// Delete an endpoint
///
/// The merchant receives no more messages of this kind.
#[utoipa::path(
    tag = "endpoints", security(("bearer" = ["manage"]), ("bearer" = ["operator"])),
    params(("merchant" = String, Path), ("interface" = String, Path), ("If-Match" = Option<String>, Header, description = "The `version` of the merchant that the caller has read")),
    responses(
        (status = 204),
        (status = 412, description = "The merchant has another version than `If-Match`", body = ErrorBody),
    )
)]
#[delete("/v1/merchants/{merchant}/endpoints/{interface}")]
pub(crate) async fn delete_endpoint(
    app: web::Data<App>,
    request: HttpRequest,
    caller: Caller,
    path: EndpointPath,
) -> Result<HttpResponse, Problem> {
    let (actor, interface) = require_endpoint(&caller, &path)?;
    let expected = expected_version(&request);
    endpoints::delete(&app, actor, &path.0, interface, expected).await?;
    Ok(HttpResponse::NoContent().finish())
}

/// Rotate an endpoint's signing secret
///
/// Messages carry signatures of both secrets during the overlap, so that the merchant can switch
/// without rejecting a message. At most two secrets sign, so the request is rejected while an older
/// secret is still in its overlap, unless `force` is true: then the older secret ends at once.
#[utoipa::path(
    tag = "endpoints", security(("bearer" = ["manage"]), ("bearer" = ["operator"])),
    params(
        ("merchant" = String, Path),
        ("interface" = String, Path),
        ("Idempotency-Key" = Option<String>, Header, description = "Makes it safe to repeat the request. Optional; 1 to 255 visible ASCII characters, for example a UUID. A repeated request of the same caller with the same key and body takes effect once and gets the first response with the same secret. The same key with another body gets 422. A request that failed does not use up its key. Keys are kept for an hour, unless the setting `idempotency.retention` says otherwise."),
    ),
    request_body(content = RotateSecretRequest, example = json!({ "overlap_seconds": 86_400 })),
    responses(
        (status = 200, body = EndpointView),
        (status = 409, description = "An older secret still signs and would end at once", body = ErrorBody),
    )
)]
#[post("/v1/merchants/{merchant}/endpoints/{interface}/rotate_secret")]
pub(crate) async fn rotate_endpoint_secret(
    app: web::Data<App>,
    head: HttpRequest,
    header: KeyHeader,
    Sequential(caller, body): Sequential<Caller, Json>,
    path: EndpointPath,
) -> Result<HttpResponse, Problem> {
    let (actor, interface) = require_endpoint(&caller, &path)?;
    let overlap = app.settings.secrets.overlap;
    let read = move |body: &Object<'_>| read_rotation(body, overlap);
    let (digest, rotation) = read_with_digest(body, read).await?;
    let key = idempotency_key(&header, &caller, "signing_secrets", head.path(), digest);
    let request = (key.as_ref(), &rotation);
    let endpoint = endpoints::rotate_secret(&app, actor, &path.0, interface, request).await?;
    Ok(HttpResponse::Ok().json(endpoint))
}

/// Pause an endpoint
///
/// Messages to a paused endpoint wait until it is resumed.
#[utoipa::path(
    tag = "endpoints", security(("bearer" = ["manage"]), ("bearer" = ["operator"])),
    params(("merchant" = String, Path), ("interface" = String, Path)),
    responses((status = 200, body = MerchantView))
)]
#[post("/v1/merchants/{merchant}/endpoints/{interface}/pause")]
pub(crate) async fn pause_endpoint(
    app: web::Data<App>,
    caller: Caller,
    path: EndpointPath,
) -> Result<HttpResponse, Problem> {
    let (actor, interface) = require_endpoint(&caller, &path)?;
    let merchant = endpoints::set_paused(&app, actor, &path.0, interface, true).await?;
    Ok(HttpResponse::Ok().json(merchant))
}

/// Resume an endpoint
///
/// Messages that waited while the endpoint was paused are sent in order.
#[utoipa::path(
    tag = "endpoints", security(("bearer" = ["manage"]), ("bearer" = ["operator"])),
    params(("merchant" = String, Path), ("interface" = String, Path)),
    responses((status = 200, body = MerchantView))
)]
#[post("/v1/merchants/{merchant}/endpoints/{interface}/resume")]
pub(crate) async fn resume_endpoint(
    app: web::Data<App>,
    caller: Caller,
    path: EndpointPath,
) -> Result<HttpResponse, Problem> {
    let (actor, interface) = require_endpoint(&caller, &path)?;
    let merchant = endpoints::set_paused(&app, actor, &path.0, interface, false).await?;
    Ok(HttpResponse::Ok().json(merchant))
}
