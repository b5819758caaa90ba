//! The invitation link: a new person sets a password and an authenticator app.

use actix_web::{HttpRequest, HttpResponse, get, http::StatusCode, post, web};
use askama::Template;
use chrono::{DateTime, Utc};
use pages::{
    api::{ApiError, Caller, ErrorBody, Service},
    form::Field,
    qr,
    text::Moment,
};
use reqwest::Method;
use serde::Deserialize;
use serde_json::json;

use crate::{
    App,
    error::{Bare, PageError, sentence},
    notice::Notice,
    page::{html, html_with, rejected},
    person::{Person, Role, session_cookie},
    sign_in::{anonymous, user_agent},
};

/// An invitation as auth describes it.
#[derive(Deserialize)]
struct Invitation {
    email: String,
    name: String,
    role: Role,
    merchant: Option<String>,
    expires_at: DateTime<Utc>,
    totp: Totp,
}

/// The secret for the authenticator app.
#[derive(Deserialize)]
struct Totp {
    required: bool,
    secret: String,
    uri: String,
}

#[derive(Template)]
#[template(path = "invitation.html")]
struct InvitationPage {
    page: Bare,
    token: String,
    invitation: Invitation,
    expires: Moment,
    /// The QR code as SVG.
    code: Option<String>,
    form: AcceptErrors,
}

/// The fields of the form. Passwords and codes are never sent back, so only the errors are kept.
#[derive(Default)]
struct AcceptErrors {
    password: Field,
    password_again: Field,
    code: Field,
}

#[derive(Template)]
#[template(path = "invitation_over.html")]
struct OverPage {
    page: Bare,
}

#[derive(Template)]
#[template(path = "recovery_codes.html")]
struct CodesPage {
    page: Bare,
    email: String,
    codes: Vec<String>,
}

/// The page that shows new recovery codes once.
pub(crate) fn recovery_codes(email: String, codes: Vec<String>) -> Result<HttpResponse, PageError> {
    html(&CodesPage { page: Bare::new(), email, codes })
}

pub(crate) fn routes(app: &mut web::ServiceConfig) {
    app.service(show_invitation).service(accept_invitation);
}

#[derive(Deserialize)]
struct InvitationQuery {
    #[serde(default)]
    token: String,
}

#[get("/invitation")]
async fn show_invitation(
    app: web::Data<App>,
    request: HttpRequest,
    query: web::Query<InvitationQuery>,
) -> Result<HttpResponse, PageError> {
    let api = anonymous(&app, &request);
    match load(&app, &api, &query.token).await? {
        Some(page) => html(&page),
        None => over(),
    }
}

/// Loads an invitation. `None` means that the link was used, was replaced, or expired.
async fn load(app: &App, api: &Caller, token: &str) -> Result<Option<InvitationPage>, PageError> {
    let body = json!({ "token": token });
    let shown: Result<Invitation, _> =
        api.send_json(Service::Auth, Method::POST, None, "v1/invitations/show", &body).await;
    let invitation = match shown {
        Ok(invitation) => invitation,
        Err(ApiError::NotFound | ApiError::Invalid(_)) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let code = qr::svg(&invitation.totp.uri, "QR code for your authenticator app");
    let expires = Moment::new(invitation.expires_at, app.clock.now());
    let (token, form) = (token.to_owned(), AcceptErrors::default());
    Ok(Some(InvitationPage { page: Bare::new(), token, invitation, expires, code, form }))
}

fn over() -> Result<HttpResponse, PageError> {
    html_with(StatusCode::NOT_FOUND, &OverPage { page: Bare::new() })
}

#[derive(Deserialize)]
struct AcceptForm {
    token: String,
    password: String,
    password_again: String,
    #[serde(default)]
    code: String,
}

impl AcceptForm {
    /// The errors that only this page can find.
    fn check(&self, totp_required: bool) -> Result<(), Box<AcceptErrors>> {
        let mut errors = AcceptErrors::default();
        if self.password.is_empty() {
            errors.password.reject("Choose a password.");
        } else if self.password != self.password_again {
            errors.password_again.reject("The two passwords are different.");
        }
        if totp_required && self.code.trim().is_empty() {
            errors.code.reject("Type the code that your authenticator app shows.");
        }
        if errors.is_empty() { Ok(()) } else { Err(Box::new(errors)) }
    }
}

impl AcceptErrors {
    fn is_empty(&self) -> bool {
        [&self.password, &self.password_again, &self.code].iter().all(|field| field.is_valid())
    }

    fn of(body: &ErrorBody) -> Self {
        let mut errors = Self::default();
        errors.password.error = body.field("$.password").map(|text| sentence(&text));
        errors.code.error = body.field("$.totp_code").map(|text| sentence(&text));
        if errors.is_empty() {
            errors.password.reject(sentence(&body.message));
        }
        errors
    }
}

#[derive(Deserialize)]
struct Accepted {
    session: String,
    person: Person,
    #[serde(default)]
    recovery_codes: Vec<String>,
}

#[post("/invitation")]
async fn accept_invitation(
    app: web::Data<App>,
    request: HttpRequest,
    form: web::Form<AcceptForm>,
) -> Result<HttpResponse, PageError> {
    let api = anonymous(&app, &request);
    let Some(mut page) = load(&app, &api, &form.token).await? else { return over() };
    if let Err(errors) = form.check(page.invitation.totp.required) {
        page.form = *errors;
        return rejected(&page);
    }
    let code = Some(form.code.trim()).filter(|code| !code.is_empty());
    let body = json!({
        "token": form.token, "password": form.password, "totp_code": code,
        "user_agent": user_agent(&request),
    });
    let accepted: Result<Accepted, _> =
        api.send_json(Service::Auth, Method::POST, None, "v1/invitations/accept", &body).await;
    match accepted {
        Ok(accepted) => welcome(accepted),
        Err(ApiError::NotFound) => over(),
        Err(ApiError::Invalid(body)) => {
            page.form = AcceptErrors::of(&body);
            rejected(&page)
        }
        Err(error) => Err(error.into()),
    }
}

/// Signs the new person in and shows the recovery codes, if there are any.
fn welcome(accepted: Accepted) -> Result<HttpResponse, PageError> {
    let Accepted { session, person, recovery_codes: codes } = accepted;
    let mut response = if codes.is_empty() {
        Notice::Welcome.redirect("/")
    } else {
        recovery_codes(person.email, codes)?
    };
    response.add_cookie(&session_cookie(session)).map_err(|error| {
        tracing::error!(%error, "a session cookie cannot be set");
        PageError::Internal
    })?;
    Ok(response)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn form(password: &str, again: &str, code: &str) -> AcceptForm {
        let [token, password, password_again, code] =
            ["t", password, again, code].map(str::to_owned);
        AcceptForm { token, password, password_again, code }
    }

    #[test]
    fn both_passwords_must_be_equal_and_operators_need_a_code() {
        assert!(form("long enough", "long enough", "").check(false).is_ok());
        let errors = form("long enough", "other", "").check(true).err().unwrap();
        assert!(errors.password.is_valid());
        assert!(!errors.password_again.is_valid());
        assert!(!errors.code.is_valid());
    }

    #[test]
    fn errors_of_auth_are_beside_their_fields() {
        let text = r#"{"message": "m", "errors": [
            {"field": "$.password", "code": "invalid", "detail": "is too common"}]}"#;
        let errors = AcceptErrors::of(&serde_json::from_str(text).unwrap());
        assert_eq!(errors.password.error.as_deref(), Some("Is too common."));
        assert!(errors.code.is_valid());
    }
}
