//! API clients, for operators and for the merchants that own them.

#![expect(unused_qualifications, reason = "the route macros repeat the types of queries")]

use actix_web::{HttpRequest, HttpResponse, get, post, web};
use domain::json::Object;
use platform::{
    Problem,
    http::{ErrorBody, Json, PageLimit, Query, Sequential},
    idempotency::KeyHeader,
    identity::Caller,
};
use serde::Deserialize;
use utoipa::IntoParams;

use super::{
    RotateSecretRequest, check_merchant, idempotency_key, listed_merchant, read_rotation,
    read_with_digest, require_manage, require_read,
};
use crate::{
    App,
    clients::{self, ClientPage, ClientView, NewClient},
    error::Error,
    store,
};

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
pub(crate) struct ClientQuery {
    /// Only clients of this merchant
    merchant: Option<String>,
    /// Maximum number of entries
    #[serde(default)]
    #[param(inline)]
    limit: PageLimit,
    /// The `next` of the previous page
    after: Option<String>,
}

/// Create a client
///
/// Only this response contains the client secret.
#[utoipa::path(
    tag = "clients", security(("bearer" = ["manage"]), ("bearer" = ["operator"])),
    params(("Idempotency-Key" = Option<String>, Header, description = "Makes it safe to repeat the request. Optional; 1 to 255 visible ASCII characters, for example a UUID. A repeated request of the same caller with the same key and body takes effect once and gets the first response with the same secret. The same key with another body gets 422. A request that failed does not use up its key. Keys are kept for an hour, unless the setting `idempotency.retention` says otherwise.")),
    request_body(content = NewClient, example = json!({ "merchant": "acme", "name": "Acme shop", "scopes": ["orders", "returns"] })),
    responses(
        (status = 201, body = ClientView),
        (status = 404, description = "The merchant does not exist", body = ErrorBody),
    )
)]
#[post("/v1/clients")]
pub(crate) async fn create_client(
    app: web::Data<App>,
    head: HttpRequest,
    header: KeyHeader,
    Sequential(caller, body): Sequential<Caller, Json>,
) -> Result<HttpResponse, Problem> {
    let actor = require_manage(&caller)?;
    let own = caller.claims.merchant.clone();
    let read = move |body: &Object<'_>| NewClient::read(body, own.as_ref());
    let (digest, new) = read_with_digest(body, read).await?;
    if let Some(merchant) = &new.merchant {
        check_merchant(&caller, merchant.as_str())?;
    }
    let key = idempotency_key(&header, &caller, "clients", head.path(), digest);
    let client = clients::create(&app, actor, key.as_ref(), new).await?;
    Ok(HttpResponse::Created().json(client))
}

/// List clients
///
/// Sorted by client id, without secrets. A token of a merchant gets the clients of this merchant.
#[utoipa::path(
    tag = "clients", security(("bearer" = ["read"]), ("bearer" = ["manage"]), ("bearer" = ["operator"])), params(ClientQuery),
    responses(
        (status = 200, body = ClientPage),
        (status = 404, description = "The token is for another merchant", body = ErrorBody),
    )
)]
#[get("/v1/clients")]
pub(crate) async fn list_clients(
    app: web::Data<App>,
    caller: Caller,
    query: Query<ClientQuery>,
) -> Result<HttpResponse, Problem> {
    require_read(&caller)?;
    let after = query.after.as_deref().unwrap_or("");
    let merchant = listed_merchant(&caller, query.merchant.as_deref())?;
    let mut conn = app.pool.reader(merchant).await?;
    let mut found = store::clients::page(&mut conn, merchant, after, query.limit.rows()).await?;
    let next = query.limit.next(&mut found, |client| client.id.clone());
    let clients = found.into_iter().map(|client| ClientView::new(client, None)).collect();
    Ok(HttpResponse::Ok().json(ClientPage { clients, next }))
}

/// Show a client
///
/// Without secrets. A token of a merchant gets the clients of this merchant only.
#[utoipa::path(
    tag = "clients", security(("bearer" = ["read"]), ("bearer" = ["manage"]), ("bearer" = ["operator"])), params(("client" = String, Path)),
    responses((status = 200, body = ClientView))
)]
#[get("/v1/clients/{client}")]
pub(crate) async fn show_client(
    app: web::Data<App>,
    caller: Caller,
    client: web::Path<String>,
) -> Result<HttpResponse, Problem> {
    require_read(&caller)?;
    let found = store::clients::find(&mut *app.pool.get().await?, &client).await?;
    let own = caller.merchant_scope();
    let found = found.filter(|client| own.is_none() || client.merchant.as_ref() == own);
    let found = found.ok_or_else(|| Error::ClientNotFound(client.into_inner()))?;
    Ok(HttpResponse::Ok().json(ClientView::new(found, None)))
}

/// Rotate a client secret
///
/// The previous secret stays valid for the overlap. Older secrets expire at once. The request is rejected if
/// a secret would expire at once that got a token in the last 26 hours, unless `force` is true.
#[utoipa::path(
    tag = "clients", security(("bearer" = ["manage"]), ("bearer" = ["operator"])),
    params(
        ("client" = String, Path),
        ("Idempotency-Key" = Option<String>, Header, description = "Makes it safe to repeat the request. Optional; 1 to 255 visible ASCII characters, for example a UUID. A repeated request of the same caller with the same key and body takes effect once and gets the first response with the same secret. The same key with another body gets 422. A request that failed does not use up its key. Keys are kept for an hour, unless the setting `idempotency.retention` says otherwise."),
    ),
    request_body(content = RotateSecretRequest, example = json!({ "overlap_seconds": 86_400 })),
    responses(
        (status = 200, body = ClientView),
        (status = 409, description = "The client was revoked, its secret is a setting, or a secret that would expire at once is in use", body = ErrorBody),
    )
)]
#[post("/v1/clients/{client}/rotate")]
pub(crate) async fn rotate_client_secret(
    app: web::Data<App>,
    head: HttpRequest,
    header: KeyHeader,
    Sequential(caller, body): Sequential<Caller, Json>,
    client: web::Path<String>,
) -> Result<HttpResponse, Problem> {
    let actor = require_manage(&caller)?;
    let own = caller.claims.merchant.as_ref();
    let overlap = app.settings.secrets.overlap;
    let read = move |body: &Object<'_>| read_rotation(body, overlap);
    let (digest, rotation) = read_with_digest(body, read).await?;
    let key = idempotency_key(&header, &caller, "client_secrets", head.path(), digest);
    let request = (key.as_ref(), &rotation);
    let client = clients::rotate_secret(&app, actor, own, &client, request).await?;
    Ok(HttpResponse::Ok().json(client))
}

/// Revoke a client
///
/// The client gets no new tokens, and all services reject its tokens within seconds.
#[utoipa::path(
    tag = "clients", security(("bearer" = ["manage"]), ("bearer" = ["operator"])), params(("client" = String, Path)),
    responses((status = 200, body = ClientView))
)]
#[post("/v1/clients/{client}/revoke")]
pub(crate) async fn revoke_client(
    app: web::Data<App>,
    caller: Caller,
    client: web::Path<String>,
) -> Result<HttpResponse, Problem> {
    let actor = require_manage(&caller)?;
    let own = caller.claims.merchant.as_ref();
    let client = clients::revoke(&app, actor, own, &client).await?;
    Ok(HttpResponse::Ok().json(client))
}
