//! API clients, for operators.

#![expect(unused_qualifications, reason = "the route macros repeat the types of queries")]

use actix_web::{HttpResponse, get, post, web};
use chrono::{DateTime, Utc};
use domain::{access::MerchantId, json::object};
use platform::{
    Problem,
    http::{ErrorBody, Json, next, page_limit},
    identity::Caller,
};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::{Overlap, operator, read_overlap};
use crate::{
    App,
    clients::{self, NewClient as Wanted},
    store::{self, clients::Client},
};

/// A client to be added. Without a merchant it works for the platform: a warehouse, a carrier, an
/// operator.
#[derive(ToSchema)]
#[expect(dead_code, reason = "the shape of a request, for the API document")]
pub(crate) struct NewClient {
    merchant: Option<String>,
    name: String,
    #[schema(example = json!(["orders", "returns"]))]
    scopes: Vec<domain::access::Scope>,
}

/// A client as it is shown.
#[derive(Serialize, ToSchema)]
pub(crate) struct ClientView {
    client_id: String,
    merchant: Option<String>,
    name: String,
    #[schema(example = "orders returns")]
    scope: String,
    created_at: DateTime<Utc>,
    revoked_at: Option<DateTime<Utc>>,
    /// Shown this once.
    #[serde(skip_serializing_if = "Option::is_none")]
    client_secret: Option<String>,
}

impl ClientView {
    fn new(client: Client, client_secret: Option<String>) -> Self {
        Self {
            client_id: client.id,
            merchant: client.merchant.as_ref().map(MerchantId::to_string),
            name: client.name,
            scope: client.scopes.to_string(),
            created_at: client.created_at,
            revoked_at: client.revoked_at,
            client_secret,
        }
    }
}

/// Some clients.
#[derive(Serialize, ToSchema)]
pub(crate) struct ClientPage {
    clients: Vec<ClientView>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

/// Which clients.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
pub(crate) struct ClientQuery {
    /// Only this merchant's.
    merchant: Option<String>,
    /// How many at the most, 50 unless said; 500 is the limit.
    #[param(minimum = 1, maximum = 500)]
    limit: Option<i64>,
    /// Where the page before ended: its `next`.
    after: Option<String>,
}

/// Add a client
///
/// The answer holds the secret; it is not shown again.
#[utoipa::path(
    tag = "clients", security(("bearer" = [])), request_body = NewClient,
    responses(
        (status = 201, body = ClientView), (status = 401, body = ErrorBody), (status = 403, body = ErrorBody),
        (status = 404, description = "No such merchant", body = ErrorBody), (status = 422, body = ErrorBody),
    )
)]
#[post("/v1/clients")]
pub(crate) async fn add_client(
    app: web::Data<App>,
    caller: Caller,
    Json(document): Json,
) -> Result<HttpResponse, Problem> {
    let actor = operator(&caller)?;
    let wanted = document.read(object(Wanted::read))?;
    let (client, secret) = clients::add(&app, actor, wanted).await?;
    Ok(HttpResponse::Created().json(ClientView::new(client, Some(secret))))
}

/// List clients
#[utoipa::path(
    tag = "clients", security(("bearer" = [])), params(ClientQuery),
    responses(
        (status = 200, body = ClientPage), (status = 400, body = ErrorBody), (status = 401, body = ErrorBody), (status = 403, body = ErrorBody),
    )
)]
#[get("/v1/clients")]
pub(crate) async fn list_clients(
    app: web::Data<App>,
    caller: Caller,
    query: web::Query<ClientQuery>,
) -> Result<HttpResponse, Problem> {
    operator(&caller)?;
    let limit = page_limit(query.limit)?;
    let after = query.after.as_deref().unwrap_or("");
    let mut conn = app.pool.get().await?;
    let merchant = query.merchant.as_deref();
    let mut found = store::clients::page(&mut conn, merchant, after, limit + 1).await?;
    let next = next(&mut found, limit, |client| client.id.clone());
    let clients = found.into_iter().map(|client| ClientView::new(client, None)).collect();
    Ok(HttpResponse::Ok().json(ClientPage { clients, next }))
}

/// Make a new secret
///
/// The one before works beside it for a while; older ones stop at once.
#[utoipa::path(
    tag = "clients", security(("bearer" = [])), params(("client" = String, Path)), request_body = Overlap,
    responses(
        (status = 200, body = ClientView), (status = 401, body = ErrorBody), (status = 403, body = ErrorBody),
        (status = 404, body = ErrorBody), (status = 409, description = "The client was revoked, or its secret is a setting", body = ErrorBody),
        (status = 422, body = ErrorBody),
    )
)]
#[post("/v1/clients/{client}/rotate")]
pub(crate) async fn rotate_client_secret(
    app: web::Data<App>,
    caller: Caller,
    client: web::Path<String>,
    Json(document): Json,
) -> Result<HttpResponse, Problem> {
    let actor = operator(&caller)?;
    let overlap = document.read(object(read_overlap))?.unwrap_or(app.settings.secrets.overlap);
    let (client, secret) = clients::rotate(&app, actor, &client, overlap).await?;
    Ok(HttpResponse::Ok().json(ClientView::new(client, Some(secret))))
}

/// Shut a client out
///
/// No new tokens, and within seconds no service takes the old ones.
#[utoipa::path(
    tag = "clients", security(("bearer" = [])), params(("client" = String, Path)),
    responses(
        (status = 200, body = ClientView), (status = 401, body = ErrorBody), (status = 403, body = ErrorBody),
        (status = 404, body = ErrorBody),
    )
)]
#[post("/v1/clients/{client}/revoke")]
pub(crate) async fn revoke_client(
    app: web::Data<App>,
    caller: Caller,
    client: web::Path<String>,
) -> Result<HttpResponse, Problem> {
    let client = clients::revoke(&app, operator(&caller)?, &client).await?;
    Ok(HttpResponse::Ok().json(ClientView::new(client, None)))
}
