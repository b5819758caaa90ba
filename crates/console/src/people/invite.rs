//! The form that invites a person.

use actix_web::{get, post, web};
use askama::Template;
use chrono::{DateTime, Utc};
use pages::{
    api::{ApiError, ErrorBody, Service},
    form::Field,
};
use reqwest::Method;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{PersonView, list_url, section, url_of};
use crate::{
    Page, PageResult, Posted, SignedIn, confirm::SecretPage, error::sentence, html, person::Role,
    rejected,
};

/// The roles with their meaning.
const ROLES: [(Role, &str); 4] = [
    (Role::MerchantAdmin, "sees one merchant and manages its endpoints, clients and people."),
    (Role::MerchantViewer, "sees one merchant and changes nothing."),
    (Role::Support, "sees all merchants and replays deliveries."),
    (Role::Operator, "manages everything and needs an authenticator app."),
];

/// The roles that a person may give to others.
pub(super) fn roles_for(signed_in: &SignedIn) -> Vec<(Role, &'static str)> {
    let is_allowed = |role: Role| {
        signed_in.person.is_operator() || !matches!(role, Role::Support | Role::Operator)
    };
    ROLES.into_iter().filter(|(role, _)| is_allowed(*role)).collect()
}

/// The form for a new person, and without the address for a change.
#[derive(Default, Clone)]
pub(super) struct PersonForm {
    pub(super) email: Field,
    pub(super) name: Field,
    pub(super) role: Field,
    pub(super) merchant: Field,
    pub(super) message: Option<String>,
    /// See [`PersonFields::opened`].
    pub(super) opened: String,
}

#[derive(Deserialize)]
pub(super) struct PersonFields {
    #[serde(default)]
    pub(super) email: String,
    pub(super) name: String,
    #[serde(default)]
    pub(super) role: String,
    #[serde(default)]
    pub(super) merchant: String,
    /// The values that the page showed when the form was opened, as text. Empty for a new person.
    #[serde(default)]
    pub(super) opened: String,
}

impl PersonForm {
    /// The form with the present values of a person.
    pub(super) fn of(person: &PersonView) -> Self {
        let mut form = Self {
            name: Field::new(person.name.as_str()),
            role: Field::new(person.role.value()),
            merchant: Field::new(person.merchant.clone().unwrap_or_default()),
            ..Self::default()
        };
        form.opened = form.body().to_string();
        form
    }

    /// The values with their names.
    pub(super) fn facts(&self) -> Vec<(&'static str, String)> {
        let fields = [("Name", &self.name), ("Role", &self.role), ("Merchant", &self.merchant)];
        fields.map(|(name, field)| (name, field.value.clone())).into()
    }

    /// The request of a change. It leaves out the fields that are as they were when the form was opened, so
    /// that it cannot undo the change of another person.
    pub(super) fn change(&self) -> Value {
        let (mut body, opened) = (self.body(), serde_json::from_str::<Value>(&self.opened));
        if let (Some(body), Ok(opened)) = (body.as_object_mut(), opened) {
            body.retain(|name, value| opened.get(name) != Some(value));
        }
        body
    }

    pub(super) fn new(fields: &PersonFields) -> Self {
        Self {
            email: Field::new(fields.email.trim()),
            name: Field::new(fields.name.trim()),
            role: Field::new(fields.role.trim()),
            merchant: Field::new(fields.merchant.trim()),
            message: None,
            opened: fields.opened.clone(),
        }
    }

    /// The request, without the address. A role of no merchant ignores the field for the merchant.
    pub(super) fn body(&self) -> Value {
        let merchant = Some(self.merchant.value.as_str())
            .filter(|merchant| !merchant.is_empty() && self.role.value.starts_with("merchant-"));
        let name = Some(self.name.value.as_str()).filter(|name| !name.is_empty());
        json!({ "name": name, "role": self.role.value, "merchant": merchant })
    }

    /// Puts the errors of auth beside the fields.
    pub(super) fn reject(&mut self, body: &ErrorBody) {
        let fields = [
            (&mut self.email, "$.email"),
            (&mut self.name, "$.name"),
            (&mut self.role, "$.role"),
            (&mut self.merchant, "$.merchant"),
        ];
        for (field, path) in fields {
            field.error = body.field(path).map(|text| sentence(&text));
        }
        self.message = Some(sentence(&body.message));
    }
}

#[derive(Template)]
#[template(path = "person_new.html")]
struct InvitePage {
    page: Page,
    list: &'static str,
    roles: Vec<(Role, &'static str)>,
    form: PersonForm,
}

#[derive(Deserialize)]
pub(super) struct Invited {
    pub(super) person: PersonView,
    pub(super) invitation: Link,
}

#[derive(Deserialize)]
pub(super) struct Link {
    url: String,
    expires_at: DateTime<Utc>,
}

pub(super) fn routes(app: &mut web::ServiceConfig) {
    app.service(show_form).service(invite);
}

#[derive(Deserialize)]
struct InviteQuery {
    #[serde(default)]
    merchant: String,
}

fn page(signed_in: &SignedIn, form: PersonForm) -> InvitePage {
    let page = signed_in.page(section(signed_in));
    InvitePage { page, list: list_url(signed_in), roles: roles_for(signed_in), form }
}

#[get("/people/new")]
async fn show_form(signed_in: SignedIn, query: web::Query<InviteQuery>) -> PageResult {
    let merchant = Field::new(query.merchant.as_str());
    let role = Field::new(Role::MerchantAdmin.value());
    html(&page(&signed_in, PersonForm { merchant, role, ..PersonForm::default() }))
}

#[post("/people/new")]
async fn invite(posted: Posted<PersonFields>) -> PageResult {
    let Posted { signed_in, form } = posted;
    let mut form = PersonForm::new(&form);
    let mut body = form.body();
    if let Some(body) = body.as_object_mut() {
        body.insert("email".to_owned(), form.email.value.as_str().into());
    }
    let invited: Result<Invited, _> =
        signed_in.api.send_json(Service::Auth, Method::POST, None, "v1/people", &body).await;
    match invited {
        Ok(invited) => show_link(&signed_in, invited),
        Err(ApiError::Invalid(body)) => {
            form.reject(&body);
            rejected(&page(&signed_in, form))
        }
        Err(ApiError::Conflict(body)) => {
            form.email.reject(sentence(&body.message));
            rejected(&page(&signed_in, form))
        }
        Err(ApiError::NotFound) => {
            form.merchant.reject("There is no such merchant.");
            rejected(&page(&signed_in, form))
        }
        Err(error) => Err(error.into()),
    }
}

/// Shows a new link once.
pub(super) fn show_link(
    signed_in: &SignedIn,
    Invited { person, invitation }: Invited,
) -> PageResult {
    let page = signed_in.page(section(signed_in));
    let expires = page.moment(invitation.expires_at);
    let text = format!(
        "Pass this link on to {} yourself, for example by e-mail: it is shown only now and is not \
         sent. It works once and expires {expires} ({}).",
        person.name,
        expires.exact(),
    );
    html(&SecretPage {
        page,
        title: format!("Invitation for {}", person.email),
        text,
        values: vec![("Invitation link", invitation.url)],
        signs_messages: false,
        next: (url_of(&person.email), "I have passed it on"),
    })
}

/// Makes a new link for a person and shows it once.
pub(super) async fn renew(signed_in: &SignedIn, email: &str) -> PageResult {
    let path = pages::path!("v1", "people", email, "invitation");
    let invited: Invited =
        signed_in.api.send_json(Service::Auth, Method::POST, None, &path, &json!({})).await?;
    show_link(signed_in, invited)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_role_of_no_merchant_ignores_the_merchant() {
        let form = |role: &str| PersonForm {
            name: Field::new("Ada"),
            role: Field::new(role),
            merchant: Field::new("acme"),
            ..PersonForm::default()
        };
        let body = form("support").body();
        assert_eq!(body, json!({ "name": "Ada", "role": "support", "merchant": null }));
        let body = form("merchant-viewer").body();
        assert_eq!(body, json!({ "name": "Ada", "role": "merchant-viewer", "merchant": "acme" }));
    }

    #[test]
    fn errors_are_beside_their_fields() {
        let text = r#"{"message": "the request is invalid", "errors": [
            {"field": "$.merchant", "code": "missing_field"}]}"#;
        let mut form = PersonForm::default();
        form.reject(&serde_json::from_str(text).unwrap());
        assert_eq!(form.merchant.error.as_deref(), Some("Is required."));
        assert_eq!(form.message.as_deref(), Some("The request is invalid."));
        assert!(form.email.is_valid());
    }
}
