//! The invitation link: a new person sets a password and an authenticator app.

mod over;

use actix_web::{HttpRequest, get, post, web};
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
    App, Notice, PageError, PageResult,
    cookies::session_cookie,
    error::{Bare, sentence},
    form_key::FormKey,
    html,
    person::{Person, Role},
    rejected,
    sent_form::Form,
    sign_in::{anonymous, with_browser},
};

use over::{OverPage, over};

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
pub(crate) struct Totp {
    required: bool,
    secret: String,
    pub(crate) uri: String,
    /// The encrypted secret, which the form sends back.
    pub(crate) setup: String,
}

impl Totp {
    /// The secret in groups of four characters, for people who type it. Apps ignore the spaces.
    pub(crate) fn key(&self) -> String {
        let characters: Vec<char> = self.secret.chars().collect();
        let groups: Vec<String> =
            characters.chunks(4).map(|group| group.iter().collect()).collect();
        groups.join(" ")
    }
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
    key: FormKey,
}

/// The fields of the form. Passwords and codes are never sent back, so only the errors are kept.
#[derive(Default)]
struct AcceptErrors {
    password: Field,
    password_again: Field,
    code: Field,
}

#[derive(Template)]
#[template(path = "recovery_codes.html")]
struct CodesPage {
    page: Bare,
    email: String,
    codes: Vec<String>,
}

/// The page that shows new recovery codes once.
pub(crate) fn recovery_codes(email: String, codes: Vec<String>) -> PageResult {
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
) -> PageResult {
    let api = anonymous(&app, &request);
    match load(&app, &api, &query.token, "").await? {
        Ok(page) => html(&page),
        Err(over) => over.show(),
    }
}

/// Loads an invitation, or the page about a link that does not work any more. `setup` is the encrypted
/// secret of a form that was sent: its page shows the same QR code again.
async fn load(
    app: &App,
    api: &Caller,
    token: &str,
    setup: &str,
) -> Result<Result<InvitationPage, OverPage>, PageError> {
    let setup = Some(setup).filter(|setup| !setup.is_empty());
    let body = json!({ "token": token, "totp_setup": setup });
    let shown: Result<Invitation, _> =
        api.send_json(Service::Auth, Method::POST, None, "v1/invitations/show", &body).await;
    let invitation = match shown {
        Ok(invitation) => invitation,
        Err(error) => return over(error).map(Err),
    };
    let code = qr::svg(&invitation.totp.uri, "QR code for your authenticator app");
    let expires = Moment::new(invitation.expires_at, app.clock.now());
    let token = token.to_owned();
    let form = AcceptErrors::default();
    let page = Bare::new();
    let key = FormKey::random();
    Ok(Ok(InvitationPage { page, token, invitation, expires, code, form, key }))
}

#[derive(Deserialize)]
struct AcceptForm {
    key: FormKey,
    token: String,
    password: String,
    password_again: String,
    #[serde(default)]
    code: String,
    #[serde(default)]
    totp_setup: String,
}

impl AcceptErrors {
    fn is_empty(&self) -> bool {
        [&self.password, &self.password_again, &self.code].iter().all(|field| field.is_valid())
    }

    fn of(body: &ErrorBody) -> Self {
        let mut errors = Self::default();
        errors.password.error = body.field("$.password").map(|text| sentence(&text));
        errors.password_again.error = body.field("$.password_again").map(|text| sentence(&text));
        errors.code.error = body.field("$.totp_code").map(|text| sentence(&text));
        if body.field("$.totp_setup").is_some() {
            errors
                .code
                .reject("The QR code is a new one. Scan it again and type the code of the app.");
        }
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
    form: Form<AcceptForm>,
) -> PageResult {
    let form = form.0;
    let api = anonymous(&app, &request);
    let code = Some(form.code.trim()).filter(|code| !code.is_empty());
    let body = json!({
        "token": form.token, "password": form.password,
        "password_again": form.password_again, "totp_code": code,
        "totp_setup": code.map(|_| form.totp_setup.as_str()),
    });
    let body = with_browser(&request, body);
    let accepted: Result<Accepted, _> = form
        .key
        .api(&api)
        .send_json(Service::Auth, Method::POST, None, "v1/invitations/accept", &body)
        .await;
    match accepted {
        Ok(accepted) => welcome(accepted),
        Err(ApiError::Invalid(body)) => {
            match load(&app, &api, &form.token, &form.totp_setup).await? {
                Ok(page) => rejected(&InvitationPage { form: AcceptErrors::of(&body), ..page }),
                Err(over) => over.show(),
            }
        }
        Err(error) => over(error)?.show(),
    }
}

/// Signs the new person in and shows the recovery codes, if there are any.
fn welcome(accepted: Accepted) -> PageResult {
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
mod tests;
