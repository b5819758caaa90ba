//! The OAuth 2.0 endpoints. Error responses have the format of RFC 6749.

mod request;

use actix_web::{
    HttpRequest, HttpResponse, ResponseError as _,
    http::{StatusCode, header},
    post, web,
};
use platform::{
    Problem,
    http::{Body, ClientIp},
    rejections::{self, Reason},
    whole_seconds, with_retry,
};
use serde::Serialize;
use utoipa::ToSchema;

use self::request::OauthRequest;
use crate::{
    App,
    tokens::{self, Introspection, OauthError, TokenResponse},
};

/// A token request. The credentials can also come as HTTP Basic authentication.
#[derive(ToSchema)]
#[expect(dead_code, reason = "only describes the request in the OpenAPI document")]
pub(crate) struct TokenRequest {
    #[schema(example = "client_credentials")]
    grant_type: String,
    /// Required without HTTP Basic authentication.
    #[schema(nullable = false)]
    client_id: Option<String>,
    /// Required without HTTP Basic authentication.
    #[schema(nullable = false)]
    client_secret: Option<String>,
    /// A subset of the client's scopes, separated by spaces; all of them by default.
    #[schema(nullable = false, example = "orders returns")]
    scope: Option<String>,
}

/// A token and the credentials of a client.
#[derive(ToSchema)]
#[expect(dead_code, reason = "only describes the request in the OpenAPI document")]
pub(crate) struct TokenParameter {
    token: String,
    /// Required without HTTP Basic authentication.
    #[schema(nullable = false)]
    client_id: Option<String>,
    /// Required without HTTP Basic authentication.
    #[schema(nullable = false)]
    client_secret: Option<String>,
}

/// An error response (RFC 6749).
#[derive(Serialize, ToSchema)]
pub(crate) struct OauthErrorBody {
    #[schema(example = "invalid_client")]
    error: &'static str,
    /// Printable ASCII without quotation marks and backslashes.
    error_description: String,
}

/// Issue a token
///
/// The client credentials grant. A token is valid for 25 hours: use it until it expires. The body can
/// also be form-encoded (`application/x-www-form-urlencoded`), as OAuth libraries send it.
#[utoipa::path(
    tag = "tokens",
    security(("basic" = []), ()),
    request_body(content = TokenRequest, example = json!({ "grant_type": "client_credentials", "client_id": "cl_4f1d", "client_secret": "a-client-secret" })),
    responses(
        (status = 200, body = TokenResponse),
        (status = 400, description = "invalid_request, unsupported_grant_type or invalid_scope", body = OauthErrorBody),
        (status = 401, description = "invalid_client", body = OauthErrorBody),
        (status = 408, description = "The body came too slowly", body = OauthErrorBody),
        (status = 413, description = "The body is too large", body = OauthErrorBody),
        (status = 415, description = "The body has an unsupported format", body = OauthErrorBody),
        (status = 429, description = "Too many failures from this address", body = OauthErrorBody),
        (status = 503, description = "Try again", body = OauthErrorBody),
    )
)]
#[post("/oauth/token")]
pub(crate) async fn issue_token(
    app: web::Data<App>,
    request: HttpRequest,
    ClientIp(address): ClientIp,
    body: Result<Body, Problem>,
) -> HttpResponse {
    let issued = async {
        let OauthRequest { credentials, grant_type, scope, .. } = read(&request, body)?;
        tokens::issue(&app, grant_type, scope, credentials, address).await
    };
    respond(&request, issued.await)
}

/// Revoke a token
///
/// RFC 7009. All services reject the token within seconds. An unknown token is not an error.
#[utoipa::path(
    tag = "tokens",
    security(("basic" = []), ()),
    request_body(content = TokenParameter, content_type = "application/x-www-form-urlencoded", example = json!({ "token": "eyJhbGciOiJFZERTQSJ9.e30.c2ln" })),
    responses(
        (status = 200, description = "The token is not valid any more"),
        (status = 400, body = OauthErrorBody),
        (status = 401, body = OauthErrorBody),
        (status = 408, description = "The body came too slowly", body = OauthErrorBody),
        (status = 413, description = "The body is too large", body = OauthErrorBody),
        (status = 415, description = "The body has an unsupported format", body = OauthErrorBody),
        (status = 429, description = "Too many failures from this address, or the client revokes too many tokens", body = OauthErrorBody),
        (status = 503, body = OauthErrorBody),
    )
)]
#[post("/oauth/revoke")]
pub(crate) async fn revoke_token(
    app: web::Data<App>,
    request: HttpRequest,
    ClientIp(address): ClientIp,
    body: Result<Body, Problem>,
) -> HttpResponse {
    let revoked = async {
        let OauthRequest { credentials, token, .. } = read(&request, body)?;
        let client = tokens::authenticate(&app, credentials, address).await?;
        tokens::revoke(&app, &client, &token.ok_or_else(missing_token)?).await
    };
    respond(&request, revoked.await.map(|()| serde_json::json!({})))
}

/// Introspect a token
///
/// RFC 7662. A client can introspect its own tokens, an operator any token.
#[utoipa::path(
    tag = "tokens",
    security(("basic" = []), ()),
    request_body(content = TokenParameter, content_type = "application/x-www-form-urlencoded", example = json!({ "token": "eyJhbGciOiJFZERTQSJ9.e30.c2ln" })),
    responses(
        (status = 200, body = Introspection),
        (status = 400, body = OauthErrorBody),
        (status = 401, body = OauthErrorBody),
        (status = 408, description = "The body came too slowly", body = OauthErrorBody),
        (status = 413, description = "The body is too large", body = OauthErrorBody),
        (status = 415, description = "The body has an unsupported format", body = OauthErrorBody),
        (status = 503, body = OauthErrorBody),
    )
)]
#[post("/oauth/introspect")]
pub(crate) async fn introspect_token(
    app: web::Data<App>,
    request: HttpRequest,
    ClientIp(address): ClientIp,
    body: Result<Body, Problem>,
) -> HttpResponse {
    let introspected = async {
        let OauthRequest { credentials, token, .. } = read(&request, body)?;
        let client = tokens::authenticate(&app, credentials, address).await?;
        tokens::introspect(&app, &client, &token.ok_or_else(missing_token)?).await
    };
    respond(&request, introspected.await)
}

fn missing_token() -> OauthError {
    OauthError::InvalidRequest("token is missing".to_owned())
}

fn read(request: &HttpRequest, body: Result<Body, Problem>) -> Result<OauthRequest, OauthError> {
    let Body(bytes) = body.map_err(|problem| match problem.status_code() {
        StatusCode::TOO_MANY_REQUESTS => OauthError::Overloaded,
        StatusCode::REQUEST_TIMEOUT
        | StatusCode::PAYLOAD_TOO_LARGE
        | StatusCode::UNSUPPORTED_MEDIA_TYPE => OauthError::UnreadableBody(problem),
        _ => OauthError::InvalidRequest(problem.to_string()),
    })?;
    OauthRequest::read(request, &bytes).map_err(OauthError::InvalidRequest)
}

fn respond<T: Serialize>(request: &HttpRequest, result: Result<T, OauthError>) -> HttpResponse {
    let mut response = match &result {
        Ok(_) => HttpResponse::Ok(),
        Err(error) => HttpResponse::build(status(error)),
    };
    response.insert_header((header::CACHE_CONTROL, "no-store"));
    response.insert_header((header::PRAGMA, "no-cache"));
    let error = match result {
        Ok(body) => return response.json(body),
        Err(error) => error,
    };
    match &error {
        OauthError::InvalidClient { client_id, used_basic_auth } => {
            rejections::record(request, Reason::InvalidClient, client_id.as_deref(), None);
            if *used_basic_auth {
                response.insert_header((header::WWW_AUTHENTICATE, "Basic realm=\"backhaul\""));
            }
        }
        OauthError::LockedOut { client_id, .. } => {
            rejections::record(request, Reason::LockedOut, client_id.as_deref(), None);
        }
        _ => {}
    }
    let mut description = error.to_string();
    if let Some(pause) = error.retry_after() {
        response.insert_header((header::RETRY_AFTER, whole_seconds(pause).to_string()));
        description = with_retry(&description, pause);
    }
    let error_description = allowed_characters(&description);
    response.json(OauthErrorBody { error: code(&error), error_description })
}

/// Replaces the characters that a description must not contain (RFC 6749, 5.2).
fn allowed_characters(text: &str) -> String {
    let replace = |c| match c {
        '"' => '\'',
        ' '..='[' | ']'..='~' => c,
        _ => '?',
    };
    text.chars().map(replace).collect()
}

fn status(error: &OauthError) -> StatusCode {
    match error {
        OauthError::InvalidRequest(_)
        | OauthError::UnsupportedGrantType
        | OauthError::InvalidScope => StatusCode::BAD_REQUEST,
        OauthError::UnreadableBody(problem) => problem.status_code(),
        OauthError::InvalidClient { .. } => StatusCode::UNAUTHORIZED,
        OauthError::LockedOut { .. }
        | OauthError::TooManyRevocations(_)
        | OauthError::Overloaded => StatusCode::TOO_MANY_REQUESTS,
        OauthError::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
        OauthError::Internal => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

fn code(error: &OauthError) -> &'static str {
    match error {
        OauthError::InvalidRequest(_) | OauthError::UnreadableBody(_) => "invalid_request",
        OauthError::InvalidClient { .. } => "invalid_client",
        OauthError::UnsupportedGrantType => "unsupported_grant_type",
        OauthError::InvalidScope => "invalid_scope",
        OauthError::LockedOut { .. }
        | OauthError::TooManyRevocations(_)
        | OauthError::Overloaded
        | OauthError::Unavailable => "temporarily_unavailable",
        OauthError::Internal => "server_error",
    }
}
