//! The own account: sessions, password, authenticator app and recovery codes.

mod authenticator;

use actix_web::{get, post, web};
use askama::Template;
use pages::{
    api::{ApiError, ErrorBody, Part, Service},
    form::Field,
};
use reqwest::Method;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{
    Notice, Page, PageError, PageResult, Posted, Section, SignedIn,
    error::sentence,
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
    errors: AccountErrors,
}

/// The errors of the two forms. Passwords are never sent back.
#[derive(Default)]
struct AccountErrors {
    current_password: Field,
    password_code: Field,
    new_password: Field,
    password_again: Field,
    /// The password in the form for new recovery codes.
    password: Field,
    recovery_code: Field,
}

pub(crate) fn routes(app: &mut web::ServiceConfig) {
    app.service(show_account)
        .service(end_session)
        .service(end_all_sessions)
        .service(change_password)
        .service(replace_recovery_codes)
        .service(authenticator::show_authenticator)
        .service(authenticator::change_authenticator);
}

async fn load(signed_in: &SignedIn, errors: AccountErrors) -> Result<AccountPage, PageError> {
    let page = signed_in.page(Section::Account);
    let sessions = sessions::load(signed_in, "").await?;
    Ok(AccountPage { page, sessions, end_session: "/account/sessions", errors })
}

#[get("/account")]
async fn show_account(signed_in: SignedIn) -> PageResult {
    html(&load(&signed_in, AccountErrors::default()).await?)
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

#[derive(Deserialize)]
struct PasswordForm {
    current_password: String,
    #[serde(default)]
    password_code: String,
    new_password: String,
    password_again: String,
}

/// Changes the password. Auth ends all other sessions.
#[post("/account/password")]
async fn change_password(posted: Posted<PasswordForm>) -> PageResult {
    let Posted { signed_in, form } = posted;
    let mut errors = AccountErrors::default();
    let body = json!({
        "current_password": form.current_password, "totp_code": form.password_code,
        "new_password": form.new_password, "new_password_again": form.password_again,
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
            errors.current_password.error = error(&body, "$.current_password");
            errors.password_code.error = error(&body, "$.totp_code");
            errors.new_password.error = error(&body, "$.new_password");
            errors.password_again.error = error(&body, "$.new_password_again");
            rejected(&load(&signed_in, errors).await?)
        }
        Err(error) => Err(error.into()),
    }
}

fn error(body: &ErrorBody, field: &str) -> Option<String> {
    body.field(field).map(|text| sentence(&text))
}

#[derive(Deserialize)]
struct CodesForm {
    password: String,
    #[serde(default)]
    recovery_code: String,
}

#[derive(Deserialize)]
struct NewCodes {
    recovery_codes: Vec<String>,
}

#[post("/account/recovery-codes")]
async fn replace_recovery_codes(posted: Posted<CodesForm>) -> PageResult {
    let Posted { signed_in, form } = posted;
    let body = json!({ "password": form.password, "totp_code": form.recovery_code });
    let replaced: Result<NewCodes, _> = signed_in
        .api
        .clone()
        .with_deadline(SIGN_IN_DEADLINE)
        .send_json(Service::Auth, Method::POST, None, "v1/recovery_codes", &body)
        .await;
    match replaced {
        Ok(new) => recovery_codes(signed_in.person.email, new.recovery_codes),
        Err(ApiError::Invalid(body)) => {
            let mut errors = AccountErrors::default();
            errors.recovery_code.error = error(&body, "$.totp_code");
            errors.password.error = error(&body, "$.password");
            if errors.recovery_code.is_valid() && errors.password.is_valid() {
                errors.password.reject(sentence(&body.message));
            }
            rejected(&load(&signed_in, errors).await?)
        }
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures;

    #[test]
    fn a_person_without_a_password_cannot_change_one() {
        let text = |has_password: bool| {
            let changes = json!({ "has_password": has_password, "totp": true });
            let signed_in = fixtures::signed_in("support", None, &changes);
            let page = fixtures::page(&signed_in);
            let (sessions, errors) = (Part::Missing(Service::Auth), AccountErrors::default());
            AccountPage { page, sessions, end_session: "/x", errors }.render().unwrap()
        };
        for form in ["Change your password", "New recovery codes", "/account/authenticator"] {
            assert!(text(true).contains(form) && !text(false).contains(form), "{form}");
        }
        assert!(text(false).contains("with the account of your organisation"));
    }
}
