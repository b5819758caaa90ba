//! The own authenticator app: set it up or change it.

use actix_web::{get, post};
use askama::Template;
use pages::{
    api::{ApiError, ErrorBody, Service},
    form::Fields,
    qr,
};
use reqwest::Method;
use serde_json::json;

use super::NewCodes;
use crate::{
    Page, PageError, PageResult, Posted, Section, SignedIn,
    error::sentence,
    form::{Form, Input, Kind, untrimmed},
    form_key::FormKey,
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
    form: Form,
    key: FormKey,
}

/// The inputs of the form. Passwords and codes are never sent back.
const INPUTS: &[Input] = &[
    Input::new("new_code", "Code that the new app shows now", "new_totp_code", Kind::Code)
        .required(),
    Input::new("password", "Your password", "password", Kind::Secret)
        .required()
        .autocomplete("current-password"),
    Input::new("code", "Code of the present app, or a recovery code", "totp_code", Kind::Code)
        .required(),
];

/// The form with the errors of auth.
fn rejected_form(body: &ErrorBody) -> Form {
    let mut form = Form::empty(INPUTS);
    form.reject_all(body);
    if body.field("$.totp_setup").is_some() {
        let error = "The QR code is a new one. Scan it again and type the code of the app.";
        form.reject("new_code", error);
    }
    if form.is_valid() {
        form.reject("password", sentence(&body.message));
    }
    form
}

/// Loads a new secret. A form that was rejected shows the secret of its `setup` again.
async fn load(
    signed_in: &SignedIn,
    setup: Option<&str>,
    form: Form,
) -> Result<AuthenticatorPage, PageError> {
    let body = json!({ "totp_setup": setup });
    let totp: Totp =
        signed_in.api.send_json(Service::Auth, Method::POST, None, "v1/totp/setup", &body).await?;
    let picture = qr::svg(&totp.uri, "QR code for your authenticator app");
    let page = signed_in.page(Section::Account);
    Ok(AuthenticatorPage { page, totp, picture, form, key: FormKey::random() })
}

#[get("/account/authenticator")]
pub(super) async fn show_authenticator(signed_in: SignedIn) -> PageResult {
    html(&load(&signed_in, None, Form::empty(INPUTS)).await?)
}

#[post("/account/authenticator")]
pub(super) async fn change_authenticator(posted: Posted<Fields>) -> PageResult {
    let Posted { signed_in, form: fields } = posted;
    let setup = fields.text("totp_setup");
    let body = json!({
        "password": untrimmed(&fields, "password"), "totp_code": fields.text("code"),
        "totp_setup": setup, "new_totp_code": fields.text("new_code"),
    });
    let changed: Result<NewCodes, _> = FormKey::read(&fields)?
        .api(&signed_in.api)
        .with_deadline(SIGN_IN_DEADLINE)
        .send_json(Service::Auth, Method::POST, None, "v1/totp", &body)
        .await;
    match changed {
        Ok(new) => recovery_codes(signed_in.person.email, new.recovery_codes),
        Err(ApiError::Invalid(body)) => {
            rejected(&load(&signed_in, Some(setup), rejected_form(&body)).await?)
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
            let form = Form::empty(INPUTS);
            let (totp, key) = (totp.unwrap(), FormKey::random());
            AuthenticatorPage { page, totp, picture: None, form, key }.render().unwrap()
        };
        assert!(text(true).contains("GEZD GNBV GY3T QOJQ") && text(true).contains("k1.sealed"));
        assert!(text(true).contains("Code of the present app"));
        assert!(!text(false).contains("Code of the present app"));
    }
}
