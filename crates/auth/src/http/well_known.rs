//! Public metadata of the authorization server.

use actix_web::{HttpResponse, get, http::header, web};
use domain::access::Scope;
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use crate::App;

/// The maximum age must stay below the default of `keys.publish_ahead`.
const CACHE_CONTROL: &str = "public, max-age=300";

/// A JSON Web Key Set (RFC 7517).
#[derive(ToSchema)]
#[expect(dead_code, reason = "only describes the response in the OpenAPI document")]
pub(crate) struct KeySet {
    keys: Vec<Value>,
}

/// Authorization server metadata (RFC 8414).
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

/// Show the public keys that verify tokens
///
/// A JSON Web Key Set (RFC 7517), for everyone. It can be cached for five minutes.
#[utoipa::path(tag = "tokens", security(()), responses((status = 200, body = KeySet)))]
#[get("/.well-known/jwks.json")]
pub(crate) async fn show_jwks(app: web::Data<App>) -> HttpResponse {
    HttpResponse::Ok()
        .insert_header((header::CACHE_CONTROL, CACHE_CONTROL))
        .json(app.signing_keys.public_keys())
}

/// Show the metadata of the authorization server
///
/// RFC 8414, for everyone. It can be cached for five minutes.
#[utoipa::path(tag = "tokens", security(()), responses((status = 200, body = Metadata)))]
#[get("/.well-known/oauth-authorization-server")]
pub(crate) async fn show_metadata(app: web::Data<App>) -> HttpResponse {
    const METHODS: [&str; 2] = ["client_secret_basic", "client_secret_post"];
    let issuer = app.settings.tokens.issuer.clone();
    let url = |path: &str| format!("{}{path}", issuer.trim_end_matches('/'));
    HttpResponse::Ok().insert_header((header::CACHE_CONTROL, CACHE_CONTROL)).json(Metadata {
        token_endpoint: url("/oauth/token"),
        revocation_endpoint: url("/oauth/revoke"),
        introspection_endpoint: url("/oauth/introspect"),
        jwks_uri: url("/.well-known/jwks.json"),
        issuer,
        grant_types_supported: ["client_credentials"],
        response_types_supported: [],
        token_endpoint_auth_methods_supported: METHODS,
        revocation_endpoint_auth_methods_supported: METHODS,
        introspection_endpoint_auth_methods_supported: METHODS,
        scopes_supported: Scope::ALL.into_iter().map(Scope::as_str).collect(),
    })
}
