//! Signs people in and out.

use actix_web::{HttpRequest, HttpResponse, get, http::header, post, web};
use askama::Template;
use pages::api::{ApiError, Service};
use platform::http::ClientIp;
use reqwest::Method;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{
    App,
    error::{Bare, PageError},
    page::html,
    person::{no_session, session_cookie, session_of},
};

#[derive(Template)]
#[template(path = "sign_in.html")]
struct SignInPage {
    page: Bare,
    next: String,
    email: String,
    message: Option<String>,
    /// The name of the identity provider, if there is one.
    provider: Option<String>,
}

#[derive(Deserialize)]
struct Next {
    #[serde(default)]
    next: String,
}

pub(crate) fn routes(app: &mut web::ServiceConfig) {
    app.service(show_sign_in).service(sign_in).service(sign_out);
}

#[get("/sign-in")]
async fn show_sign_in(query: web::Query<Next>) -> Result<HttpResponse, PageError> {
    let next = own_path(&query.next).to_owned();
    let (email, message, provider) = (String::new(), None, None);
    html(&SignInPage { page: Bare::new(), next, email, message, provider })
}

#[derive(Deserialize)]
struct SignInForm {
    next: String,
    email: String,
    password: String,
    code: String,
}

#[derive(Deserialize)]
struct NewSession {
    session: String,
}

#[post("/sign-in")]
async fn sign_in(
    app: web::Data<App>,
    request: HttpRequest,
    form: web::Form<SignInForm>,
) -> Result<HttpResponse, PageError> {
    let form = form.into_inner();
    let api = app.api.caller(ClientIp::of(&request).0, None);
    let body = json!({ "email": form.email, "password": form.password, "totp_code": form.code });
    let session: Result<NewSession, _> =
        api.send_json(Service::Auth, Method::POST, None, "v1/sessions", &body).await;
    let message = match session {
        Ok(session) => {
            return Ok(HttpResponse::SeeOther()
                .cookie(session_cookie(session.session))
                .insert_header((header::LOCATION, own_path(&form.next)))
                .finish());
        }
        Err(ApiError::Unauthenticated | ApiError::Invalid(_)) => {
            "The e-mail address, the password or the code is wrong.".to_owned()
        }
        Err(ApiError::TooManyRequests) => {
            "There were too many attempts. Wait some minutes and try again.".to_owned()
        }
        Err(error) => return Err(error.into()),
    };
    let (next, provider) = (own_path(&form.next).to_owned(), None);
    html(&SignInPage { page: Bare::new(), next, email: form.email, message: Some(message), provider })
}

/// Ends the session. A person whose session ended already is signed out too.
#[post("/sign-out")]
async fn sign_out(
    app: web::Data<App>,
    request: HttpRequest,
) -> Result<HttpResponse, PageError> {
    if let Some(session) = session_of(&request) {
        let api = app.api.caller(ClientIp::of(&request).0, None);
        let body = json!({ "session": session });
        let ended: Result<Value, _> =
            api.send_json(Service::Auth, Method::POST, None, "v1/sessions/end", &body).await;
        match ended {
            Ok(_) | Err(ApiError::Unauthenticated | ApiError::NotFound) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(HttpResponse::SeeOther()
        .cookie(no_session())
        .insert_header((header::LOCATION, "/sign-in"))
        .finish())
}

/// A path of this site. Anything else could lead to another site.
fn own_path(next: &str) -> &str {
    let is_own = next.starts_with('/') && !next.starts_with("//") && !next.contains(['\\', '\r', '\n']);
    if is_own { next } else { "/" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signing_in_leads_to_an_own_page() {
        for (next, path) in [
            ("/deliveries?state=dead", "/deliveries?state=dead"),
            ("", "/"),
            ("https://other.test/", "/"),
            ("//other.test/", "/"),
            ("/\\other.test", "/"),
        ] {
            assert_eq!(own_path(next), path);
        }
    }
}
