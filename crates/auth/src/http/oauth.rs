//! The OAuth 2.0 endpoints; their errors have OAuth's own shape.

use actix_web::{
    HttpRequest, HttpResponse,
    http::{StatusCode, header},
    post, web,
};
use platform::{
    Problem,
    http::{Body, ClientIp},
};
use serde::Serialize;
use utoipa::ToSchema;

use crate::{
    App, credentials,
    tokens::{self, Granted, OauthError},
};

/// A request for a token, as JSON or as a form; the credentials may come as HTTP Basic instead.
#[derive(ToSchema)]
#[expect(dead_code, reason = "the shape of a request, for the API document")]
pub(crate) struct TokenRequest {
    #[schema(example = "client_credentials")]
    grant_type: String,
    client_id: String,
    client_secret: String,
    /// Fewer scopes than the client was granted.
    scope: Option<String>,
}

/// A token.
#[derive(Serialize, ToSchema)]
pub(crate) struct TokenResponse {
    access_token: String,
    #[schema(example = "Bearer")]
    token_type: &'static str,
    /// Seconds.
    #[schema(example = 90_000)]
    expires_in: i64,
    #[schema(example = "orders returns")]
    scope: String,
    /// Unix time.
    created_at: i64,
}

/// What went wrong (RFC 6749).
#[derive(Serialize, ToSchema)]
pub(crate) struct OauthErrorBody {
    #[schema(example = "invalid_client")]
    error: &'static str,
    error_description: String,
}

/// A token to be revoked or explained.
#[derive(ToSchema)]
#[expect(dead_code, reason = "the shape of a request, for the API document")]
pub(crate) struct TokenParameter {
    token: String,
    client_id: String,
    client_secret: String,
}

/// What is known of a token (RFC 7662).
#[derive(Default, Serialize, ToSchema)]
pub(crate) struct Introspection {
    active: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    scope: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    client_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    merchant: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    token_type: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    exp: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    iat: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sub: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    aud: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    iss: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    jti: Option<String>,
}

/// Get a token
///
/// The client credentials grant. A token is good for 25 hours: use it until it expires.
#[utoipa::path(
    tag = "tokens",
    security(()),
    request_body(content((TokenRequest = "application/json"), (TokenRequest = "application/x-www-form-urlencoded"))),
    responses(
        (status = 200, body = TokenResponse),
        (status = 400, description = "invalid_request, unsupported_grant_type or invalid_scope", body = OauthErrorBody),
        (status = 401, description = "invalid_client", body = OauthErrorBody),
        (status = 429, description = "Too many failures from this address", body = OauthErrorBody),
        (status = 503, description = "Try again", body = OauthErrorBody),
    )
)]
#[post("/oauth/token")]
pub(crate) async fn token(
    app: web::Data<App>,
    request: HttpRequest,
    peer: ClientIp,
    body: Result<Body, Problem>,
) -> HttpResponse {
    let granted = async {
        let (parameters, credentials) = read(&request, body)?;
        tokens::grant(&app, parameters, credentials, peer).await
    };
    respond(granted.await.map(|Granted { access_token, claims }| TokenResponse {
        access_token,
        token_type: "Bearer",
        expires_in: claims.exp - claims.iat,
        scope: claims.scope.to_string(),
        created_at: claims.iat,
    }))
}

/// Revoke a token
///
/// RFC 7009. Every service refuses the token within seconds. An unknown token is no error.
#[utoipa::path(
    tag = "tokens",
    security(()),
    request_body(content = TokenParameter, content_type = "application/x-www-form-urlencoded"),
    responses(
        (status = 200, description = "The token is no good any more"),
        (status = 400, body = OauthErrorBody),
        (status = 401, body = OauthErrorBody),
        (status = 503, body = OauthErrorBody),
    )
)]
#[post("/oauth/revoke")]
pub(crate) async fn revoke(
    app: web::Data<App>,
    request: HttpRequest,
    peer: ClientIp,
    body: Result<Body, Problem>,
) -> HttpResponse {
    let revoked = async {
        let (mut parameters, credentials) = read(&request, body)?;
        let client = tokens::authenticate(&app, credentials, peer).await?;
        let presented = parameters.take("token").ok_or_else(no_token)?;
        tokens::revoke(&app, &client, &presented).await
    };
    respond(revoked.await.map(|()| serde_json::json!({})))
}

/// Explain a token
///
/// RFC 7662. A client may ask about its own tokens, an operator about any.
#[utoipa::path(
    tag = "tokens",
    security(()),
    request_body(content = TokenParameter, content_type = "application/x-www-form-urlencoded"),
    responses(
        (status = 200, body = Introspection),
        (status = 400, body = OauthErrorBody),
        (status = 401, body = OauthErrorBody),
        (status = 503, body = OauthErrorBody),
    )
)]
#[post("/oauth/introspect")]
pub(crate) async fn introspect(
    app: web::Data<App>,
    request: HttpRequest,
    peer: ClientIp,
    body: Result<Body, Problem>,
) -> HttpResponse {
    let explained = async {
        let (mut parameters, credentials) = read(&request, body)?;
        let client = tokens::authenticate(&app, credentials, peer).await?;
        let presented = parameters.take("token").ok_or_else(no_token)?;
        let claims = tokens::introspect(&app, &client, &presented).await?;
        Ok(claims.map_or_else(Introspection::default, |claims| Introspection {
            active: true,
            scope: Some(claims.scope.to_string()),
            client_id: Some(claims.client_id.clone()),
            merchant: claims.merchant.as_ref().map(ToString::to_string),
            token_type: Some("Bearer"),
            exp: Some(claims.exp),
            iat: Some(claims.iat),
            sub: Some(claims.sub.clone()),
            aud: Some(claims.aud.clone()),
            iss: Some(claims.iss.clone()),
            jti: Some(claims.jti.clone()),
        }))
    };
    respond(explained.await)
}

fn no_token() -> OauthError {
    OauthError::InvalidRequest("token is missing".to_owned())
}

fn read(
    request: &HttpRequest,
    body: Result<Body, Problem>,
) -> Result<(credentials::Parameters, Option<credentials::Credentials>), OauthError> {
    let Body(bytes) = body.map_err(|problem| OauthError::InvalidRequest(problem.to_string()))?;
    credentials::read(request, &bytes).map_err(OauthError::InvalidRequest)
}

fn respond<T: Serialize>(outcome: Result<T, OauthError>) -> HttpResponse {
    let mut answer = match &outcome {
        Ok(_) => HttpResponse::Ok(),
        Err(error) => HttpResponse::build(status(error)),
    };
    answer.insert_header((header::CACHE_CONTROL, "no-store"));
    match outcome {
        Ok(value) => answer.json(value),
        Err(error) => {
            match &error {
                OauthError::InvalidClient { basic: true } => {
                    answer.insert_header((header::WWW_AUTHENTICATE, "Basic realm=\"backhaul\""));
                }
                OauthError::TooOften(wait) => {
                    answer.insert_header((header::RETRY_AFTER, (wait.as_secs() + 1).to_string()));
                }
                OauthError::Unavailable => {
                    answer.insert_header((header::RETRY_AFTER, "1"));
                }
                _ => {}
            }
            answer
                .json(OauthErrorBody { error: code(&error), error_description: error.to_string() })
        }
    }
}

fn status(error: &OauthError) -> StatusCode {
    match error {
        OauthError::InvalidRequest(_)
        | OauthError::UnsupportedGrantType
        | OauthError::InvalidScope => StatusCode::BAD_REQUEST,
        OauthError::InvalidClient { .. } => StatusCode::UNAUTHORIZED,
        OauthError::TooOften(_) => StatusCode::TOO_MANY_REQUESTS,
        OauthError::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
        OauthError::Internal => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

fn code(error: &OauthError) -> &'static str {
    match error {
        OauthError::InvalidRequest(_) => "invalid_request",
        OauthError::InvalidClient { .. } => "invalid_client",
        OauthError::UnsupportedGrantType => "unsupported_grant_type",
        OauthError::InvalidScope => "invalid_scope",
        OauthError::TooOften(_) | OauthError::Unavailable => "temporarily_unavailable",
        OauthError::Internal => "server_error",
    }
}
