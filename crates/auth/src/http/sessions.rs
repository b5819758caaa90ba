//! Sign-in and sessions. The operations with a secret in the body need no token.

#![expect(unused_qualifications, reason = "the route macros repeat the types of queries")]

use actix_web::{HttpRequest, HttpResponse, delete, get, post, web};
use domain::json::{Object, object, read_fields, text};
use platform::{
    Problem,
    http::{ClientIp, ErrorBody, Json, Query},
    identity::Caller,
    rejections::{self, Reason},
};
use serde::Deserialize;
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

use super::people::{manager, parse_email};
use crate::{
    App,
    account::SignedIn,
    email::Email,
    error::Error,
    people,
    sessions::{self, SessionList, SessionToken, StartedSession},
    sign_in::{self, SignIn},
    store::people::Person,
};

/// The credentials of a person.
#[derive(ToSchema)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "only describes the request in the OpenAPI document")]
pub(crate) struct SignInRequest {
    #[schema(max_length = 1000, example = "ada@acme.example")]
    email: String,
    #[schema(max_length = 1000)]
    password: String,
    /// A TOTP code or a recovery code. Required if the person has TOTP.
    #[schema(max_length = 1000, example = "287082")]
    totp_code: Option<String>,
    /// The browser, for the list of sessions.
    #[schema(max_length = 10_000)]
    user_agent: Option<String>,
    /// The session that the browser has until now. It ends.
    #[schema(max_length = 1000)]
    previous_session: Option<String>,
}

/// The secret of a session.
#[derive(ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SessionRequest {
    #[schema(max_length = 1000)]
    session: String,
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
pub(crate) struct SessionQuery {
    /// E-mail address of another person, for operators and for the managers of the person's merchant
    person: Option<String>,
}

pub(crate) fn read_session(body: &Object<'_>) -> Option<SessionRequest> {
    read_fields!(body => SessionRequest { session: body.required("session", text(0..=1000)) })
}

/// Records why a request was rejected, for the log and the metric.
pub(super) fn record_rejection(request: &HttpRequest, error: &Error) {
    match error {
        Error::SignInFailed(person) => {
            let person = person.as_ref().map(Email::as_str);
            rejections::record(request, Reason::SignInFailed, person, None);
        }
        Error::OidcFailed => rejections::record(request, Reason::SignInFailed, None, None),
        Error::LockedOut(_) => rejections::record(request, Reason::LockedOut, None, None),
        _ => {}
    }
}

/// Sign in with a password
///
/// Starts a session. All failures get the same response after the same time.
#[utoipa::path(
    tag = "sessions", security(()),
    request_body(content = SignInRequest, example = json!({ "email": "ada@acme.example", "password": "a-long-password", "totp_code": "287082" })),
    responses(
        (status = 201, body = StartedSession), (status = 401, description = "The e-mail address, the password or the code is wrong", body = ErrorBody),
        (status = 403, description = "Passwords are switched off", body = ErrorBody),
        (status = 429, description = "Too many failures from this address or for this person, or too many passwords are being checked", body = ErrorBody),
    )
)]
#[post("/v1/sessions")]
pub(crate) async fn start_session(
    app: web::Data<App>,
    request: HttpRequest,
    ClientIp(address): ClientIp,
    body: Json,
) -> Result<HttpResponse, Problem> {
    let credentials = body.read(object(move |body| SignIn::read(body, address))).await?;
    let started = sign_in::sign_in(&app, credentials).await;
    Ok(HttpResponse::Created()
        .json(started.inspect_err(|error| record_rejection(&request, error))?))
}

/// Get an access token for a session
///
/// A token is valid for 10 minutes. The same token is returned while it is valid for more than 5 minutes.
#[utoipa::path(
    tag = "sessions", security(()),
    request_body(content = SessionRequest, example = json!({ "session": "9rYbEvJ4qUs0cUHD3sG0ncYBF5r0cEI0vGZ2T8xG7oA" })),
    responses(
        (status = 200, body = SessionToken), (status = 401, description = "The session does not exist, has ended or has expired", body = ErrorBody),
    )
)]
#[post("/v1/sessions/token")]
pub(crate) async fn issue_session_token(
    app: web::Data<App>,
    ClientIp(address): ClientIp,
    body: Json,
) -> Result<HttpResponse, Problem> {
    let SessionRequest { session } = body.read(object(read_session)).await?;
    Ok(HttpResponse::Ok().json(sessions::token(&app, &session, address).await?))
}

/// Sign out
///
/// Ends the session. All services reject its tokens within seconds. An unknown session is not an error.
#[utoipa::path(
    tag = "sessions", security(()),
    request_body(content = SessionRequest, example = json!({ "session": "9rYbEvJ4qUs0cUHD3sG0ncYBF5r0cEI0vGZ2T8xG7oA" })),
    responses((status = 204))
)]
#[post("/v1/sessions/end")]
pub(crate) async fn end_session_by_secret(
    app: web::Data<App>,
    body: Json,
) -> Result<HttpResponse, Problem> {
    sessions::end_by_token(&app, &body.read(object(read_session)).await?.session).await?;
    Ok(HttpResponse::NoContent().finish())
}

/// The person in a query, or else the sender of the request.
async fn person_of(app: &App, caller: &Caller, query: &SessionQuery) -> Result<Person, Problem> {
    let own = SignedIn::of(caller).map(|signed_in| signed_in.email);
    let email = match &query.person {
        Some(person) => parse_email(person)?,
        None => own.as_ref().map_err(|_client| Error::NotAPerson)?.clone(),
    };
    if own.is_ok_and(|own| own == email) {
        let person = people::find(&mut *app.pool.get().await?, &email).await?;
        return Ok(person.ok_or_else(|| Error::PersonNotFound(email.to_string()))?);
    }
    Ok(people::show(app, &manager(caller)?, &email).await?)
}

/// List sessions
///
/// The own sessions, newest first, or those of another person.
#[utoipa::path(
    tag = "sessions", security(("bearer" = ["read"]), ("bearer" = ["operator"])), params(SessionQuery),
    responses(
        (status = 200, body = SessionList),
        (status = 403, description = "Not the token of a person, or no right to see another person", body = ErrorBody), (status = 404, body = ErrorBody),
    )
)]
#[get("/v1/sessions")]
pub(crate) async fn list_sessions(
    app: web::Data<App>,
    caller: Caller,
    query: Query<SessionQuery>,
) -> Result<HttpResponse, Problem> {
    let person = person_of(&app, &caller, &query).await?;
    let list = sessions::list(&app, &person.email, caller.claims.sid).await?;
    Ok(HttpResponse::Ok().json(list))
}

/// End all sessions
///
/// The own sessions with the current one, or those of another person. All services reject their tokens
/// within seconds.
#[utoipa::path(
    tag = "sessions", security(("bearer" = ["read"]), ("bearer" = ["operator"])), params(SessionQuery),
    responses(
        (status = 204),
        (status = 403, description = "Not the token of a person, or no right to change another person", body = ErrorBody), (status = 404, body = ErrorBody),
    )
)]
#[delete("/v1/sessions")]
pub(crate) async fn end_sessions(
    app: web::Data<App>,
    caller: Caller,
    query: Query<SessionQuery>,
) -> Result<HttpResponse, Problem> {
    let person = person_of(&app, &caller, &query).await?;
    sessions::end_all(&app, caller.actor(), &person).await?;
    Ok(HttpResponse::NoContent().finish())
}

/// End a session
///
/// An own session, or one of a person whom the caller manages.
#[utoipa::path(
    tag = "sessions", security(("bearer" = ["read"]), ("bearer" = ["operator"]), ("bearer" = [])), params(("session" = String, Path)),
    responses((status = 204))
)]
#[delete("/v1/sessions/{session}")]
pub(crate) async fn end_session(
    app: web::Data<App>,
    caller: Caller,
    id: web::Path<String>,
) -> Result<HttpResponse, Problem> {
    let missing = || Error::SessionNotFound(id.to_string());
    let id: Uuid = id.parse().map_err(|_not_an_id| missing())?;
    let (session, person) = sessions::find(&app, id).await?;
    let is_own = SignedIn::of(&caller).is_ok_and(|signed_in| signed_in.email == person.email);
    // Another session gets the same response as one that does not exist.
    let is_managed = || manager(&caller).is_ok_and(|manager| manager.check(&person).is_ok());
    if !is_own && !is_managed() {
        return Err(missing().into());
    }
    sessions::end(&app, caller.actor(), &person, session).await?;
    Ok(HttpResponse::NoContent().finish())
}
