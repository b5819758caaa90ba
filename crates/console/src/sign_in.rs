//! Signs people in and out, with a password or with the organisation's identity provider.

mod oidc;

use std::time::Duration;

use actix_web::{
    HttpRequest, HttpResponse, get,
    http::{StatusCode, header},
    post, web,
};
use askama::Template;
use chrono::TimeDelta;
use pages::{
    api::{ApiError, Caller, Service},
    text::Span,
    url_path::is_own_path,
};
use platform::http::ClientIp;
use reqwest::Method;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{
    App, PageResult,
    cookies::{no_session, session_cookie, session_of},
    error::Bare,
    html_with,
    sent_form::Form,
};

/// Passwords are hashed slowly on purpose, a few at a time, and the provider has to respond too.
pub(crate) const SIGN_IN_DEADLINE: Duration = Duration::from_secs(10);

/// Longer descriptions of a browser are cut; auth rejects those of more than 1,000 characters.
const MAX_USER_AGENT_BYTES: usize = 500;

#[derive(Template)]
#[template(path = "sign_in.html")]
struct SignInPage {
    page: Bare,
    next: String,
    email: String,
    message: Option<String>,
    methods: SignInMethods,
}

/// How people can sign in.
#[derive(Deserialize)]
struct SignInMethods {
    password: bool,
    oidc: Option<Provider>,
}

/// The identity provider.
#[derive(Deserialize)]
struct Provider {
    name: String,
}

#[derive(Deserialize)]
struct Next {
    #[serde(default)]
    next: String,
}

pub(crate) fn routes(app: &mut web::ServiceConfig) {
    app.service(show_sign_in).service(sign_in).service(sign_out).configure(oidc::routes);
}

/// Calls before anybody is signed in.
pub(crate) fn anonymous(app: &App, request: &HttpRequest) -> Caller {
    app.api.caller(ClientIp::of(request).0, None).with_deadline(SIGN_IN_DEADLINE)
}

/// A request that starts a session, with the fields about the browser. Auth ends the session that the
/// browser has until now, so that it does not stay open without a cookie.
pub(crate) fn with_browser(request: &HttpRequest, mut body: Value) -> Value {
    if let Some(body) = body.as_object_mut() {
        body.insert("user_agent".to_owned(), json!(user_agent(request)));
        body.insert("previous_session".to_owned(), json!(session_of(request)));
    }
    body
}

/// The browser and system of a request, for the list of sessions.
fn user_agent(request: &HttpRequest) -> Option<&str> {
    let text = request.headers().get(header::USER_AGENT)?.to_str().ok()?;
    text.get(..MAX_USER_AGENT_BYTES).or(Some(text))
}

/// A try to sign in that failed.
struct Failed {
    status: StatusCode,
    message: String,
}

impl Failed {
    fn new(status: StatusCode, message: impl Into<String>) -> Self {
        Self { status, message: message.into() }
    }

    fn too_many(retry_after: Option<Duration>) -> Self {
        let message = match retry_after.and_then(|wait| TimeDelta::from_std(wait).ok()) {
            Some(wait) => format!("There were too many attempts. Try again in {}.", Span(wait)),
            None => "There were too many attempts. Wait some minutes and try again.".to_owned(),
        };
        Self::new(StatusCode::TOO_MANY_REQUESTS, message)
    }
}

async fn show(api: &Caller, next: &str, email: String, failed: Option<Failed>) -> PageResult {
    let methods: SignInMethods = api.get(Service::Auth, "v1/sign_in_methods", &[]).await?;
    let status = failed.as_ref().map_or(StatusCode::OK, |failed| failed.status);
    let message = failed.map(|failed| failed.message);
    let next = own_path(next).to_owned();
    html_with(status, &SignInPage { page: Bare::new(), next, email, message, methods })
}

#[get("/sign-in")]
async fn show_sign_in(
    app: web::Data<App>,
    request: HttpRequest,
    query: web::Query<Next>,
) -> PageResult {
    show(&anonymous(&app, &request), &query.next, String::new(), None).await
}

#[derive(Deserialize)]
struct SignInForm {
    next: String,
    email: String,
    password: String,
    #[serde(default)]
    code: String,
}

/// A session that auth started.
#[derive(Deserialize)]
struct NewSession {
    session: String,
}

impl NewSession {
    /// Leads to the page that the person asked for.
    fn redirect(self, next: &str) -> HttpResponse {
        HttpResponse::SeeOther()
            .cookie(session_cookie(self.session))
            .insert_header((header::LOCATION, own_path(next)))
            .finish()
    }
}

#[post("/sign-in")]
async fn sign_in(app: web::Data<App>, request: HttpRequest, form: Form<SignInForm>) -> PageResult {
    let form = form.0;
    let api = anonymous(&app, &request);
    let code = Some(form.code.trim()).filter(|code| !code.is_empty());
    let body = json!({
        "email": form.email.trim(), "password": form.password, "totp_code": code,
    });
    let body = with_browser(&request, body);
    let session: Result<NewSession, _> =
        api.send_json(Service::Auth, Method::POST, None, "v1/sessions", &body).await;
    let failed = match session {
        Ok(session) => return Ok(session.redirect(&form.next)),
        Err(ApiError::Unauthenticated { .. } | ApiError::Invalid(_)) => {
            let message = "The e-mail address, the password or the code is wrong.";
            Failed::new(StatusCode::UNAUTHORIZED, message)
        }
        Err(ApiError::TooManyRequests { retry_after, .. }) => Failed::too_many(retry_after),
        Err(error) => return Err(error.into()),
    };
    show(&api, &form.next, form.email, Some(failed)).await
}

/// Ends the session. A person whose session ended already is signed out too.
#[post("/sign-out")]
async fn sign_out(app: web::Data<App>, request: HttpRequest) -> PageResult {
    if let Some(session) = session_of(&request) {
        let body = json!({ "session": session });
        let ended: Result<Value, _> = anonymous(&app, &request)
            .send_json(Service::Auth, Method::POST, None, "v1/sessions/end", &body)
            .await;
        match ended {
            Ok(_) | Err(ApiError::Unauthenticated { .. } | ApiError::NotFound) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(signed_out())
}

/// Leads to the sign-in page and removes the session.
pub(crate) fn signed_out() -> HttpResponse {
    HttpResponse::SeeOther()
        .cookie(no_session())
        .insert_header((header::LOCATION, "/sign-in"))
        .finish()
}

/// A path of this site. Anything else could lead to another site.
fn own_path(next: &str) -> &str {
    if is_own_path(next) { next } else { "/" }
}

#[cfg(test)]
mod tests;
