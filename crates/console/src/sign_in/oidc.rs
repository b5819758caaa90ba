//! Sign-in with the organisation's identity provider (OpenID Connect).

use actix_web::{
    HttpRequest, HttpResponse,
    cookie::{Cookie, time},
    get,
    http::StatusCode,
    post, web,
};
use askama::Template;
use pages::{
    api::{ApiError, Service},
    path,
};
use reqwest::Method;
use serde::Deserialize;
use serde_json::json;
use url::Url;

use super::{Failed, NewSession, Next, anonymous, own_path, show, with_browser};
use crate::{
    App, PageError, PageResult,
    cookies::{host_cookie, removal},
    error::{Bare, sentence},
    sent_form::Form,
};

/// The cookie with the sealed flow and the page to return to.
const FLOW: &str = "__Host-oidc";
/// The lifetime of a flow in auth.
const FLOW_MINUTES: i64 = 10;

pub(super) fn routes(app: &mut web::ServiceConfig) {
    app.service(start).service(finish);
}

#[derive(Deserialize)]
struct Started {
    authorization_url: Url,
    flow: String,
}

#[derive(Template)]
#[template(path = "oidc.html")]
struct ContinuePage {
    page: Bare,
    host: String,
    url: String,
}

/// Leads to the provider. The page does so itself, because the content security policy does not allow
/// the redirect of a form to another site.
#[post("/sign-in/oidc")]
async fn start(app: web::Data<App>, request: HttpRequest, form: Form<Next>) -> PageResult {
    let form = form.0;
    let api = anonymous(&app, &request);
    let started: Result<Started, _> =
        api.send_json(Service::Auth, Method::POST, None, "v1/oidc/start", &json!({})).await;
    let started = match started {
        Ok(started) => started,
        Err(error) => return show(&api, &form.next, String::new(), Some(failure(error)?)).await,
    };
    let url = started.authorization_url;
    if !matches!(url.scheme(), "https" | "http") {
        return Err(PageError::Internal);
    }
    let host = url.host_str().unwrap_or_default().to_owned();
    let page = ContinuePage { page: Bare::new(), host, url: url.to_string() };
    Ok(HttpResponse::Ok()
        .cookie(flow_cookie(&started.flow, own_path(&form.next)))
        .insert_header(("refresh", format!("0; url={url}")))
        .content_type("text/html; charset=utf-8")
        .body(page.render()?))
}

/// The parameters with which the provider sends the browser back.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Callback {
    code: String,
    state: String,
    error: String,
}

#[get("/sign-in/oidc")]
async fn finish(
    app: web::Data<App>,
    request: HttpRequest,
    callback: web::Query<Callback>,
) -> PageResult {
    let api = anonymous(&app, &request);
    let cookie = request.cookie(FLOW);
    let (flow, next) = cookie.as_ref().and_then(flow_of).unwrap_or_default();
    let failed = if !callback.error.is_empty() {
        Failed::new(StatusCode::UNAUTHORIZED, provider_error(&callback.error))
    } else if flow.is_empty() || callback.code.is_empty() {
        let message = "This sign-in took too long or began in another browser. Start again.";
        Failed::new(StatusCode::UNAUTHORIZED, message)
    } else {
        let body = json!({ "flow": flow, "code": callback.code, "state": callback.state });
        let body = with_browser(&request, body);
        let session: Result<NewSession, _> =
            api.send_json(Service::Auth, Method::POST, None, "v1/oidc/finish", &body).await;
        match session {
            Ok(session) => return without_flow(session.redirect(next)),
            Err(error) => failure(error)?,
        }
    };
    without_flow(show(&api, next, String::new(), Some(failed)).await?)
}

/// The failure of a step in plain words.
fn failure(error: ApiError) -> Result<Failed, PageError> {
    Ok(match error {
        ApiError::Unauthenticated { .. } | ApiError::Invalid(_) => {
            let message = "The sign-in could not be verified. Start again.";
            Failed::new(StatusCode::UNAUTHORIZED, message)
        }
        ApiError::Denied(body) => {
            let reason = body.errors.first().and_then(|error| error.detail.as_deref());
            let reason = sentence(reason.unwrap_or(&body.message));
            let message = format!("You may not use this console. {reason}");
            Failed::new(StatusCode::FORBIDDEN, message)
        }
        ApiError::Conflict(body) => Failed::new(StatusCode::CONFLICT, sentence(&body.message)),
        ApiError::Unavailable { .. } => {
            Failed::new(StatusCode::SERVICE_UNAVAILABLE, provider_error("server_error"))
        }
        ApiError::TooManyRequests { retry_after, .. } => Failed::too_many(retry_after),
        error => return Err(error.into()),
    })
}

/// An error code of the provider (OpenID Connect) in plain words. The text is fixed, because everybody
/// can write a link with parameters.
fn provider_error(code: &str) -> &'static str {
    match code {
        "access_denied" => "Your organisation did not let you in, or you cancelled the sign-in.",
        "login_required" | "interaction_required" | "consent_required" => {
            "Your organisation needs you to sign in there first. Start again."
        }
        "temporarily_unavailable" | "server_error" => {
            "The sign-in of your organisation does not work now. Try again in a moment."
        }
        _ => "Your organisation rejected the sign-in. An operator should check its settings.",
    }
}

fn flow_cookie(flow: &str, next: &str) -> Cookie<'static> {
    // Browsers accept only some characters, so the path is percent-encoded.
    let mut cookie = host_cookie(FLOW, format!("{flow}|{}", path!(next)));
    cookie.set_max_age(time::Duration::minutes(FLOW_MINUTES));
    cookie
}

/// The flow and the page to return to. Reading the cookie decoded its value.
fn flow_of<'a>(cookie: &'a Cookie<'_>) -> Option<(&'a str, &'a str)> {
    cookie.value().split_once('|')
}

/// Removes the flow, which can be used once.
fn without_flow(mut response: HttpResponse) -> PageResult {
    let removed = response.add_cookie(&removal(host_cookie(FLOW, String::new())));
    removed.map_err(|error| {
        tracing::error!(%error, "a cookie cannot be removed");
        PageError::Internal
    })?;
    Ok(response)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flow_cookie_keeps_the_next_page() {
        let cookie = flow_cookie("sealed.flow", "/deliveries?state=dead&kind=rma|x");
        let text = cookie.to_string();
        assert!(text.starts_with("__Host-oidc=sealed.flow|%2Fdeliveries%3F"), "{text}");
        for attribute in ["HttpOnly", "SameSite=Lax", "Secure", "Path=/", "Max-Age=600"] {
            assert!(text.contains(attribute), "{attribute} in {text}");
        }
        let pair = text.split(';').next().unwrap().to_owned();
        let read = Cookie::parse_encoded(pair).unwrap();
        assert_eq!(flow_of(&read), Some(("sealed.flow", "/deliveries?state=dead&kind=rma|x")));
    }

    #[test]
    fn provider_errors_have_plain_words() {
        assert!(provider_error("access_denied").contains("did not let you in"));
        assert!(provider_error("<script>").contains("rejected the sign-in"));
    }
}
