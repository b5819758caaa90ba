//! Signing in with an OpenID provider. These operations need no token.

use std::net::IpAddr;

use actix_web::{HttpRequest, HttpResponse, get, post, web};
use domain::json::{Object, object, text};
use platform::{
    Problem,
    http::{ClientIp, ErrorBody, Json},
};
use serde::Serialize;
use utoipa::ToSchema;

use super::sessions::record_rejection;
use crate::{
    App,
    browser::Browser,
    oidc::{self, Callback, Oidc, StartedFlow},
    sessions::StartedSession,
};

/// The ways in which people can sign in.
#[derive(Serialize, ToSchema)]
pub(crate) struct SignInMethods {
    /// Whether people can sign in with a password.
    password: bool,
    /// The OpenID provider, if there is one.
    oidc: Option<OidcMethod>,
}

#[derive(Serialize, ToSchema)]
pub(crate) struct OidcMethod {
    #[schema(example = "Example ID")]
    name: String,
}

#[derive(ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct StartOidcRequest {}

/// The parameters with which the browser comes back from the provider, and the `flow` of the start.
#[derive(ToSchema)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "only describes the request in the OpenAPI document")]
pub(crate) struct FinishOidcRequest {
    #[schema(max_length = 8192)]
    flow: String,
    #[schema(min_length = 1, max_length = 4096)]
    code: String,
    #[schema(max_length = 1000)]
    state: String,
    /// The browser, for the list of sessions.
    #[schema(max_length = 10_000)]
    user_agent: Option<String>,
    /// The session that the browser has until now. It ends.
    #[schema(max_length = 1000)]
    previous_session: Option<String>,
}

/// Show the ways to sign in
///
/// With a password, with an OpenID provider, or both.
#[utoipa::path(
    tag = "sessions", security(()),
    responses((status = 200, body = SignInMethods))
)]
#[get("/v1/sign_in_methods")]
pub(crate) async fn show_sign_in_methods(app: web::Data<App>) -> HttpResponse {
    let oidc = app.oidc.as_ref().map(Oidc::name).map(|name| OidcMethod { name: name.to_owned() });
    let password = app.settings.people.passwords;
    HttpResponse::Ok().json(SignInMethods { password, oidc })
}

/// Start signing in with the OpenID provider
///
/// Send the browser to `authorization_url` and keep `flow` for `POST /v1/oidc/finish`.
#[utoipa::path(
    tag = "sessions", security(()),
    request_body(content = StartOidcRequest, example = json!({})),
    responses(
        (status = 200, body = StartedFlow), (status = 404, description = "There is no OpenID provider", body = ErrorBody),
        (status = 503, description = "The provider does not respond", body = ErrorBody),
    )
)]
#[post("/v1/oidc/start")]
pub(crate) async fn start_oidc(app: web::Data<App>, body: Json) -> Result<HttpResponse, Problem> {
    body.read(object(read_start)).await?;
    Ok(HttpResponse::Ok().json(oidc::start(&app).await?))
}

/// Finish signing in with the OpenID provider
///
/// Exchanges the code for an ID token of the provider and starts a session. The person is created, or gets
/// the name, role and merchant that the provider's groups give. A rejection does not reveal its reason.
#[utoipa::path(
    tag = "sessions", security(()),
    request_body(content = FinishOidcRequest, example = json!({ "flow": "k1.c2VhbGVk", "code": "4f1d", "state": "0xk3" })),
    responses(
        (status = 201, body = StartedSession),
        (status = 401, body = ErrorBody),
        (status = 403, description = "No group of the person gives a role; a person who signed in before is disabled", body = ErrorBody),
        (status = 404, description = "There is no OpenID provider", body = ErrorBody),
        (status = 409, description = "The person is the last operator and would get another role", body = ErrorBody),
        (status = 429, description = "Too many failures from this address", body = ErrorBody),
        (status = 503, description = "The provider does not respond", body = ErrorBody),
    )
)]
#[post("/v1/oidc/finish")]
pub(crate) async fn finish_oidc(
    app: web::Data<App>,
    request: HttpRequest,
    ClientIp(address): ClientIp,
    body: Json,
) -> Result<HttpResponse, Problem> {
    let (callback, browser) = body.read(object(move |body| read_callback(body, address))).await?;
    let session = oidc::finish(&app, callback, browser).await;
    let session = session.inspect_err(|error| record_rejection(&request, error))?;
    Ok(HttpResponse::Created().json(session))
}

/// Reads a [`StartOidcRequest`].
pub(crate) fn read_start(body: &Object<'_>) -> Option<()> {
    body.reject_unknown(&[]);
    Some(())
}

/// Reads a [`FinishOidcRequest`].
pub(crate) fn read_callback(body: &Object<'_>, address: IpAddr) -> Option<(Callback, Browser)> {
    body.reject_unknown(&[&["flow", "code", "state"][..], &Browser::FIELDS].concat());
    let flow = body.required("flow", text(0..=8192));
    let code = body.required("code", text(1..=4096));
    let state = body.required("state", text(0..=1000));
    let browser = Browser::read(body, address);
    Some((Callback { flow: flow?, code: code?, state: state? }, browser?))
}
