//! The page of one person, and changes of name, role and merchant.

use actix_web::{HttpResponse, get, post, web};
use askama::Template;
use futures_util::future::join;
use pages::{
    api::{ApiError, Part, Service},
    form::Field,
    path,
};
use reqwest::Method;
use serde::Deserialize;

use super::{
    PersonRow, PersonView,
    invite::{Invited, Link, PersonFields, PersonForm, roles_for, show_link},
    list_url, section, url_of,
};
use crate::{
    App,
    error::{PageError, sentence},
    notice::Notice,
    page::{Page, html, rejected},
    person::{Posted, Role, SignedIn},
    sessions::{SessionList, SessionRow},
};

#[derive(Template)]
#[template(path = "person.html")]
struct PersonDetails {
    page: Page,
    list: &'static str,
    person: PersonRow,
    /// Whether this is the signed-in person.
    is_self: bool,
    sessions: Part<Vec<SessionRow>>,
    /// The URL under which sessions are ended.
    end_session: String,
    roles: Vec<(Role, &'static str)>,
    form: PersonForm,
}

pub(super) fn routes(app: &mut web::ServiceConfig) {
    app.service(show_person).service(change_person);
}

/// Loads a person; `form` is a rejected form, if there is one.
async fn load(
    app: &App,
    signed_in: &SignedIn,
    email: &str,
    form: Option<PersonForm>,
) -> Result<PersonDetails, PageError> {
    let path = path!("v1", "people", email);
    let (view, sessions) = join(
        signed_in.api.get::<PersonView>(Service::Auth, &path, &[]),
        SessionList::load(signed_in, email),
    )
    .await;
    let (view, page) = (view?, Page::new(app, signed_in, section(signed_in)));
    let sessions = match Part::new(sessions)? {
        Part::Loaded(list) => Part::Loaded(list.rows(&page)),
        Part::Missing(service) => Part::Missing(service),
    };
    let form = form.unwrap_or_else(|| PersonForm {
        name: Field::new(view.name.as_str()),
        role: Field::new(view.role.value()),
        merchant: Field::new(view.merchant.clone().unwrap_or_default()),
        ..PersonForm::default()
    });
    Ok(PersonDetails {
        is_self: view.email == signed_in.person.email,
        end_session: format!("{}/sessions", url_of(&view.email)),
        person: PersonRow::new(view, &page),
        list: list_url(signed_in),
        roles: roles_for(signed_in),
        page,
        sessions,
        form,
    })
}

#[get("/people/{email}")]
async fn show_person(
    app: web::Data<App>,
    signed_in: SignedIn,
    email: web::Path<String>,
) -> Result<HttpResponse, PageError> {
    html(&load(&app, &signed_in, &email, None).await?)
}

/// A changed person. New rights can end a link or the credentials; then there is a new link.
#[derive(Deserialize)]
struct Changed {
    #[serde(flatten)]
    person: PersonView,
    invitation: Option<Link>,
}

#[post("/people/{email}")]
async fn change_person(
    app: web::Data<App>,
    posted: Posted<PersonFields>,
    email: web::Path<String>,
) -> Result<HttpResponse, PageError> {
    let Posted { signed_in, form } = posted;
    let mut form = PersonForm::new(&form);
    let path = path!("v1", "people", email.as_str());
    let mut body = form.body();
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
            return show_link(&app, &signed_in, Invited { person, invitation });
        }
        Ok(_) => return Ok(Notice::PersonChanged.redirect(&url_of(&email))),
        Err(ApiError::Invalid(body)) => form.reject(&body),
        Err(ApiError::Conflict(body)) => form.message = Some(sentence(&body.message)),
        Err(error) => return Err(error.into()),
    }
    rejected(&load(&app, &signed_in, &email, Some(form)).await?)
}
