//! The page of one person, and changes of name, role and merchant.

use actix_web::{get, http::StatusCode, post, web};
use askama::Template;
use futures_util::future::join;
use pages::{
    api::{ApiError, Part, Service},
    form::Fields,
    path,
};
use reqwest::Method;
use serde::Deserialize;

use super::{
    PersonView,
    invite::{Invited, Link, PersonForm, roles_for, show_link},
    list_url, section, url_of,
};
use crate::{
    Notice, Page, PageError, PageResult, Posted, SignedIn,
    changes::{self, Change},
    error::sentence,
    html, html_with,
    person::Role,
    rejected,
    sessions::{self, SessionView},
};

#[derive(Template)]
#[template(path = "person.html")]
struct PersonDetails {
    page: Page,
    list: &'static str,
    person: PersonView,
    /// Whether this is the signed-in person.
    is_self: bool,
    sessions: Part<Vec<SessionView>>,
    /// The URL under which sessions are ended.
    end_session: String,
    roles: Vec<(Role, &'static str)>,
    form: PersonForm,
    /// The values that differ, if another person changed it in the meantime.
    changes: Vec<Change>,
}

pub(super) fn routes(app: &mut web::ServiceConfig) {
    app.service(show_person).service(change_person);
}

/// Loads a person; `form` is a rejected form, if there is one.
async fn load(
    signed_in: &SignedIn,
    email: &str,
    form: Option<PersonForm>,
) -> Result<PersonDetails, PageError> {
    let path = path!("v1", "people", email);
    let (view, sessions) = join(
        signed_in.api.get::<PersonView>(Service::Auth, &path, &[]),
        sessions::load(signed_in, email),
    )
    .await;
    let view = view?;
    let page = signed_in.page(section(signed_in));
    let form = form.unwrap_or_else(|| PersonForm::of(&view));
    Ok(PersonDetails {
        is_self: view.email == signed_in.person.email,
        end_session: format!("{}/sessions", url_of(&view.email)),
        person: view,
        list: list_url(signed_in),
        roles: roles_for(signed_in),
        sessions: sessions?,
        page,
        form,
        changes: Vec::new(),
    })
}

#[get("/people/{email}")]
async fn show_person(signed_in: SignedIn, email: web::Path<String>) -> PageResult {
    html(&load(&signed_in, &email, None).await?)
}

/// A changed person. New rights can end a link or the credentials; then there is a new link.
#[derive(Deserialize)]
struct Changed {
    #[serde(flatten)]
    person: PersonView,
    invitation: Option<Link>,
}

#[post("/people/{email}")]
async fn change_person(posted: Posted<Fields>, email: web::Path<String>) -> PageResult {
    let Posted { signed_in, form } = posted;
    let mut form = PersonForm::read(&form);
    let path = path!("v1", "people", email.as_str());
    let stored: PersonView = signed_in.api.get(Service::Auth, &path, &[]).await?;
    let stored = PersonForm::of(&stored);
    if stored.opened != form.opened {
        return outdated(&signed_in, &email, &stored, form).await;
    }
    let mut body = form.change();
    // The admin of a merchant cannot move people to another merchant, so the form has no such field.
    if !signed_in.person.is_operator()
        && let Some(body) = body.as_object_mut()
    {
        body.remove("merchant");
    }
    let changed: Result<Changed, _> =
        signed_in.api.send_json(Service::Auth, Method::PATCH, None, &path, &body).await;
    match changed {
        Ok(Changed { person, invitation: Some(invitation) }) => {
            return show_link(&signed_in, Invited { person, invitation });
        }
        Ok(_) => return Ok(Notice::PersonChanged.redirect(&url_of(&email))),
        Err(ApiError::Invalid(body)) => form.inputs.reject_all(&body),
        Err(ApiError::Conflict(body)) => form.inputs.message = Some(sentence(&body.message)),
        Err(error) => return Err(error.into()),
    }
    rejected(&load(&signed_in, &email, Some(form)).await?)
}

/// Shows the values that are stored now beside those of the form. Saving again replaces them.
async fn outdated(
    signed_in: &SignedIn,
    email: &str,
    stored: &PersonForm,
    mut form: PersonForm,
) -> PageResult {
    let changes = changes::between(stored.inputs.facts(), form.inputs.facts());
    form.inputs.message = Some(changes::message("person"));
    form.opened.clone_from(&stored.opened);
    let shown = load(signed_in, email, Some(form)).await?;
    html_with(StatusCode::CONFLICT, &PersonDetails { changes, ..shown })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_change_sends_only_the_edited_fields() {
        let person: PersonView = serde_json::from_value(json!({
            "email": "joe@acme.example", "name": "Joe", "role": "merchant-viewer", "merchant": "acme",
            "state": "active", "totp": true, "created_at": "2026-11-16T08:00:00Z",
        }))
        .unwrap();
        let opened = PersonForm::of(&person);
        let query = serde_html_form::to_string([
            ("name", "Joe Doe"),
            ("role", "merchant-viewer"),
            ("merchant", "acme"),
            ("opened", &opened.opened),
        ])
        .unwrap();
        let sent = PersonForm::read(&serde_html_form::from_str(&query).unwrap());
        assert_eq!(sent.change(), json!({ "name": "Joe Doe" }));
        assert_eq!(sent.opened, opened.opened);
        let promoted = PersonView { role: Role::MerchantAdmin, ..person };
        assert_ne!(PersonForm::of(&promoted).opened, sent.opened, "the form is out of date");
    }
}
