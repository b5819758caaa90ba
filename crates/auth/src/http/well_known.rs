//! What anyone may know.

use actix_web::{HttpResponse, get, http::header, web};
use domain::access::Scope;
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use crate::App;

/// For so long a copy of the keys is good; new keys are published longer ahead than that.
const KEYS_CACHE: &str = "public, max-age=300";

/// Public keys (RFC 7517).
#[derive(ToSchema)]
#[expect(dead_code, reason = "the shape of an answer, for the API document")]
pub(crate) struct KeySet {
    keys: Vec<Value>,
}

/// How to use this authorization server (RFC 8414).
#[derive(Serialize, ToSchema)]
pub(crate) struct Metadata {
    issuer: String,
    token_endpoint: String,
    revocation_endpoint: String,
    introspection_endpoint: String,
    jwks_uri: String,
    grant_types_supported: [&'static str; 1],
    response_types_supported: [&'static str; 0],
    token_endpoint_auth_methods_supported: [&'static str; 2],
    revocation_endpoint_auth_methods_supported: [&'static str; 2],
    introspection_endpoint_auth_methods_supported: [&'static str; 2],
    scopes_supported: Vec<&'static str>,
}

/// The keys that tokens are signed with
#[utoipa::path(tag = "tokens", security(()), responses((status = 200, body = KeySet)))]
#[get("/.well-known/jwks.json")]
pub(crate) async fn jwks(app: web::Data<App>) -> HttpResponse {
    HttpResponse::Ok()
        .insert_header((header::CACHE_CONTROL, KEYS_CACHE))
        .json(app.keyring.published())
}

/// Where everything is
#[utoipa::path(tag = "tokens", security(()), responses((status = 200, body = Metadata)))]
#[get("/.well-known/oauth-authorization-server")]
pub(crate) async fn metadata(app: web::Data<App>) -> HttpResponse {
    const METHODS: [&str; 2] = ["client_secret_basic", "client_secret_post"];
    let issuer = app.settings.tokens.issuer.clone();
    let at = |path: &str| format!("{}{path}", issuer.trim_end_matches('/'));
    HttpResponse::Ok().insert_header((header::CACHE_CONTROL, KEYS_CACHE)).json(Metadata {
        token_endpoint: at("/oauth/token"),
        revocation_endpoint: at("/oauth/revoke"),
        introspection_endpoint: at("/oauth/introspect"),
        jwks_uri: at("/.well-known/jwks.json"),
        issuer,
        grant_types_supported: ["client_credentials"],
        response_types_supported: [],
        token_endpoint_auth_methods_supported: METHODS,
        revocation_endpoint_auth_methods_supported: METHODS,
        introspection_endpoint_auth_methods_supported: METHODS,
        scopes_supported: Scope::ALL.into_iter().map(Scope::as_str).collect(),
    })
}
