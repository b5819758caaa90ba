//! The own authenticator app: set it up or change it.

use actix_web::{get, post};
use askama::Template;
use pages::{
    api::{ApiError, ErrorBody, Service},
    form::Field,
    qr,
};
use reqwest::Method;
use serde::Deserialize;
use serde_json::json;

use super::{NewCodes, error};
use crate::{
    Page, PageError, PageResult, Posted, Section, SignedIn,
    error::sentence,
    html,
    invitation::{Totp, recovery_codes},
    rejected,
    sign_in::SIGN_IN_DEADLINE,
};

#[derive(Template)]
#[template(path = "authenticator.html")]
struct AuthenticatorPage {
    page: Page,
    totp: Totp,
    /// The QR code as SVG.
    picture: Option<String>,
    errors: AuthenticatorErrors,
}

/// The errors of the form. Passwords and codes are never sent back.
#[derive(Default)]
struct AuthenticatorErrors {
    password: Field,
    code: Field,
    new_code: Field,
}

impl AuthenticatorErrors {
    fn of(body: &ErrorBody) -> Self {
        let mut errors = Self::default();
        errors.password.error = error(body, "$.password");
        errors.code.error = error(body, "$.totp_code");
        errors.new_code.error = error(body, "$.new_totp_code");
        if body.field("$.totp_setup").is_some() {
            errors
                .new_code
                .reject("The QR code is a new one. Scan it again and type the code of the app.");
        }
        if [&errors.password, &errors.code, &errors.new_code].iter().all(|field| field.is_valid()) {
            errors.password.reject(sentence(&body.message));
        }
        errors
    }
}

/// Loads a new secret. A form that was rejected shows the secret of its `setup` again.
async fn load(
    signed_in: &SignedIn,
    setup: Option<&str>,
    errors: AuthenticatorErrors,
) -> Result<AuthenticatorPage, PageError> {
    let body = json!({ "totp_setup": setup });
    let totp: Totp =
        signed_in.api.send_json(Service::Auth, Method::POST, None, "v1/totp/setup", &body).await?;
    let picture = qr::svg(&totp.uri, "QR code for your authenticator app");
    let page = signed_in.page(Section::Account);
    Ok(AuthenticatorPage { page, totp, picture, errors })
}

#[get("/account/authenticator")]
pub(super) async fn show_authenticator(signed_in: SignedIn) -> PageResult {
    html(&load(&signed_in, None, AuthenticatorErrors::default()).await?)
}

#[derive(Deserialize)]
struct AuthenticatorForm {
    totp_setup: String,
    new_code: String,
    password: String,
    #[serde(default)]
    code: String,
}

#[post("/account/authenticator")]
pub(super) async fn change_authenticator(posted: Posted<AuthenticatorForm>) -> PageResult {
    let Posted { signed_in, form } = posted;
    let body = json!({
        "password": form.password, "totp_code": form.code.trim(),
        "totp_setup": form.totp_setup, "new_totp_code": form.new_code.trim(),
    });
    let changed: Result<NewCodes, _> = signed_in
        .api
        .clone()
        .with_deadline(SIGN_IN_DEADLINE)
        .send_json(Service::Auth, Method::POST, None, "v1/totp", &body)
        .await;
    match changed {
        Ok(new) => recovery_codes(signed_in.person.email, new.recovery_codes),
        Err(ApiError::Invalid(body)) => {
            let errors = AuthenticatorErrors::of(&body);
            rejected(&load(&signed_in, Some(&form.totp_setup), errors).await?)
        }
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures;

    #[test]
    fn a_present_app_is_asked_for_its_code() {
        let text = |has_totp: bool| {
            let changes = json!({ "has_password": true, "totp": has_totp });
            let page = fixtures::page(&fixtures::signed_in("support", None, &changes));
            let totp = serde_json::from_value(json!({ "required": false, "uri": "otpauth://x",
                "secret": "GEZDGNBVGY3TQOJQ", "setup": "k1.sealed" }));
            let errors = AuthenticatorErrors::default();
            AuthenticatorPage { page, totp: totp.unwrap(), picture: None, errors }.render().unwrap()
        };
        assert!(text(true).contains("GEZD GNBV GY3T QOJQ") && text(true).contains("k1.sealed"));
        assert!(text(true).contains("Code of the present app"));
        assert!(!text(false).contains("Code of the present app"));
    }
}
