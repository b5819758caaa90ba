//! The own account: sessions, password, authenticator app and recovery codes.

mod authenticator;

use actix_web::{get, post, web};
use askama::Template;
use pages::{
    api::{ApiError, Part, Service},
    form::Fields,
};
use reqwest::Method;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{
    Notice, Page, PageError, PageResult, Posted, Section, SignedIn,
    error::sentence,
    form::{Form, Input, Kind, untrimmed},
    form_key::FormKey,
    html,
    invitation::recovery_codes,
    person::NoFields,
    rejected,
    sessions::{self, SessionView},
    sign_in::{SIGN_IN_DEADLINE, signed_out},
};

#[derive(Template)]
#[template(path = "account.html")]
struct AccountPage {
    page: Page,
    sessions: Part<Vec<SessionView>>,
    /// The URL under which sessions are ended.
    end_session: &'static str,
    password: Form,
    codes: Form,
    /// The key of the form for recovery codes.
    key: FormKey,
}

/// The inputs of the form for a new password.
const PASSWORD: &[Input] = &[
    Input::new("current_password", "Current password", "current_password", Kind::Secret)
        .required()
        .autocomplete("current-password"),
    Input::new("password_code", "Code of your authenticator app", "totp_code", Kind::Code)
        .hint("Or a recovery code.")
        .required(),
    Input::new("new_password", "New password", "new_password", Kind::Secret)
        .hint("8 to 128 characters.")
        .required(),
    Input::new("password_again", "The new password again", "new_password_again", Kind::Secret)
        .required(),
];

/// The inputs of the form for new recovery codes.
const CODES: &[Input] = &[
    Input::new("password", "Your password", "password", Kind::Secret)
        .required()
        .autocomplete("current-password"),
    Input::new("recovery_code", "Code of your authenticator app", "totp_code", Kind::Code)
        .hint("Or one of your present recovery codes.")
        .required(),
];

pub(crate) fn routes(app: &mut web::ServiceConfig) {
    app.service(show_account)
        .service(end_session)
        .service(end_all_sessions)
        .service(change_password)
        .service(replace_recovery_codes)
        .service(authenticator::show_authenticator)
        .service(authenticator::change_authenticator);
}

/// The page, with the errors of the two forms. Passwords and codes are never sent back.
async fn load(signed_in: &SignedIn, password: Form, codes: Form) -> Result<AccountPage, PageError> {
    let page = signed_in.page(Section::Account);
    let sessions = sessions::load(signed_in, "").await?;
    let key = FormKey::random();
    Ok(AccountPage { page, sessions, end_session: "/account/sessions", password, codes, key })
}

#[get("/account")]
async fn show_account(signed_in: SignedIn) -> PageResult {
    html(&load(&signed_in, Form::empty(PASSWORD), Form::empty(CODES)).await?)
}

#[post("/account/sessions/{id}/end")]
async fn end_session(posted: Posted<NoFields>, id: web::Path<String>) -> PageResult {
    // If it was the current session, the next page is the one to sign in.
    sessions::end(&posted.signed_in, &id).await?;
    Ok(Notice::SessionEnded.redirect("/account"))
}

#[post("/account/sessions/end")]
async fn end_all_sessions(posted: Posted<NoFields>) -> PageResult {
    sessions::end_all(&posted.signed_in, None).await?;
    Ok(signed_out())
}

/// Changes the password. Auth ends all other sessions.
#[post("/account/password")]
async fn change_password(posted: Posted<Fields>) -> PageResult {
    let Posted { signed_in, form: fields } = posted;
    let mut form = Form::empty(PASSWORD);
    let body = json!({
        "current_password": untrimmed(&fields, "current_password"),
        "totp_code": untrimmed(&fields, "password_code"),
        "new_password": untrimmed(&fields, "new_password"),
        "new_password_again": untrimmed(&fields, "password_again"),
    });
    let changed: Result<Value, _> = signed_in
        .api
        .clone()
        .with_deadline(SIGN_IN_DEADLINE)
        .send_json(Service::Auth, Method::POST, None, "v1/password", &body)
        .await;
    match changed {
        Ok(_) => Ok(Notice::PasswordChanged.redirect("/account")),
        Err(ApiError::Invalid(body)) => {
            form.reject_all(&body);
            rejected(&load(&signed_in, form, Form::empty(CODES)).await?)
        }
        Err(error) => Err(error.into()),
    }
}

#[derive(Deserialize)]
struct NewCodes {
    recovery_codes: Vec<String>,
}

#[post("/account/recovery-codes")]
async fn replace_recovery_codes(posted: Posted<Fields>) -> PageResult {
    let Posted { signed_in, form: fields } = posted;
    let body = json!({
        "password": untrimmed(&fields, "password"), "totp_code": untrimmed(&fields, "recovery_code"),
    });
    let replaced: Result<NewCodes, _> = FormKey::read(&fields)?
        .api(&signed_in.api)
        .with_deadline(SIGN_IN_DEADLINE)
        .send_json(Service::Auth, Method::POST, None, "v1/recovery_codes", &body)
        .await;
    match replaced {
        Ok(new) => recovery_codes(signed_in.person.email, new.recovery_codes),
        Err(ApiError::Invalid(body)) => {
            let mut form = Form::empty(CODES);
            form.reject_all(&body);
            if form.is_valid() {
                form.reject("password", sentence(&body.message));
            }
            rejected(&load(&signed_in, Form::empty(PASSWORD), form).await?)
        }
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use actix_web::{HttpRequest, HttpResponse, http::StatusCode};

    use super::*;
    use crate::fixtures;

    const KEY: &str = "7d9f5a35-6f4e-4c3b-9a55-2f3f0f5b9c11";

    /// An auth that names a recovery code after the idempotency key.
    fn auth(app: &mut web::ServiceConfig) {
        let respond = async |request: HttpRequest| {
            let codes = json!({ "recovery_codes": [fixtures::key_of(&request)] });
            HttpResponse::Created().json(codes)
        };
        app.route("/v1/recovery_codes", web::post().to(respond));
        app.route("/v1/totp", web::post().to(respond));
    }

    #[actix_web::test]
    async fn a_form_for_recovery_codes_is_one_request() {
        for path in ["/account/recovery-codes", "/account/authenticator"] {
            let post = async |fields: &[(&str, &str)]| {
                fixtures::post(fixtures::app_with_services(auth), routes, path, fields).await
            };
            let (status, _, page) = post(&[("key", KEY), ("password", "battery")]).await;
            assert!(status == StatusCode::OK && page.contains(KEY), "{page}");
            let (status, ..) = post(&[("password", "battery")]).await;
            assert_eq!(status, StatusCode::BAD_REQUEST, "{path}");
        }
    }

    #[test]
    fn a_person_without_a_password_cannot_change_one() {
        let text = |has_password: bool| {
            let changes = json!({ "has_password": has_password, "totp": true });
            let signed_in = fixtures::signed_in("support", None, &changes);
            let page = fixtures::page(&signed_in);
            let sessions = Part::Missing(Service::Auth);
            let password = Form::empty(PASSWORD);
            let codes = Form::empty(CODES);
            let key = FormKey::random();
            AccountPage { page, sessions, end_session: "/x", password, codes, key }
                .render()
                .unwrap()
        };
        for form in ["Change your password", "New recovery codes", "/account/authenticator"] {
            assert!(text(true).contains(form) && !text(false).contains(form), "{form}");
        }
        assert!(text(false).contains("with the account of your organisation"));
    }
}
