//! The form that invites a person.

use actix_web::{get, post, web};
use askama::Template;
use chrono::{DateTime, Utc};
use pages::{
    api::{ApiError, Service},
    form::Fields,
};
use reqwest::Method;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{PersonView, list_url, section, url_of};
use crate::{
    Page, PageResult, Posted, SignedIn,
    confirm::SecretPage,
    error::sentence,
    form::{Form, Input, Kind},
    form_key::{FormKey, SENT_BEFORE},
    html,
    person::Role,
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

/// The inputs of the form for a new person. A change has no address.
const INPUTS: &[Input] = &[
    Input::text("email", "E-mail address")
        .kind("email")
        .hint("The person signs in with this address.")
        .required(),
    Input::text("name", "Name").hint("Shown in lists and in the audit log. Can be empty."),
    Input::new("role", "Role", "role", Kind::Own).sent_empty(),
    Input::text("merchant", "Merchant")
        .hint("The identifier, for example acme. Only for the two merchant roles."),
];

/// The form for a new person or a change.
#[derive(Clone)]
pub(super) struct PersonForm {
    pub(super) inputs: Form,
    /// The values that the page showed when the form was opened, as text. Empty for a new person.
    pub(super) opened: String,
}

impl PersonForm {
    /// The form with the present values of a person.
    pub(super) fn of(person: &PersonView) -> Self {
        let merchant = person.merchant.clone().unwrap_or_default();
        let inputs = Form::empty(INPUTS).with("name", person.name.as_str());
        let inputs = inputs.with("role", person.role.value()).with("merchant", merchant);
        let mut form = Self { inputs, opened: String::new() };
        form.opened = form.body().to_string();
        form
    }

    pub(super) fn read(fields: &Fields) -> Self {
        let opened = fields.text("opened").to_owned();
        Self { inputs: Form::read(INPUTS, fields), opened }
    }

    /// The request of a change. It leaves out the fields that are as they were when the form was opened, so
    /// that it cannot undo the change of another person.
    pub(super) fn change(&self) -> Value {
        let mut body = self.body();
        let opened = serde_json::from_str::<Value>(&self.opened);
        if let (Some(body), Ok(opened)) = (body.as_object_mut(), opened) {
            body.retain(|name, value| opened.get(name) != Some(value));
        }
        body
    }

    /// The request, without the address. A role of no merchant ignores the field for the merchant.
    pub(super) fn body(&self) -> Value {
        let filled = |name| Some(self.inputs.value(name)).filter(|value| !value.is_empty());
        let role = self.inputs.value("role");
        let merchant = filled("merchant").filter(|_| role.starts_with("merchant-"));
        json!({ "name": filled("name"), "role": role, "merchant": merchant })
    }
}

#[derive(Template)]
#[template(path = "person_new.html")]
struct InvitePage {
    page: Page,
    list: &'static str,
    roles: Vec<(Role, &'static str)>,
    form: PersonForm,
    key: FormKey,
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

fn page(signed_in: &SignedIn, form: PersonForm) -> InvitePage {
    let page = signed_in.page(section(signed_in));
    let key = FormKey::random();
    InvitePage { page, list: list_url(signed_in), roles: roles_for(signed_in), form, key }
}

#[get("/people/new")]
async fn show_form(signed_in: SignedIn, query: web::Query<Fields>) -> PageResult {
    let inputs = Form::empty(INPUTS).with("role", Role::MerchantAdmin.value());
    let inputs = inputs.with("merchant", query.text("merchant"));
    html(&page(&signed_in, PersonForm { inputs, opened: String::new() }))
}

#[post("/people/new")]
async fn invite(posted: Posted<Fields>) -> PageResult {
    let Posted { signed_in, form } = posted;
    let api = FormKey::read(&form)?.api(&signed_in.api);
    let mut form = PersonForm::read(&form);
    let mut body = form.body();
    if let Some(body) = body.as_object_mut() {
        body.insert("email".to_owned(), form.inputs.value("email").into());
    }
    let invited: Result<Invited, _> =
        api.send_json(Service::Auth, Method::POST, None, "v1/people", &body).await;
    match invited {
        Ok(invited) => return show_link(&signed_in, invited),
        Err(ApiError::Invalid(body)) if body.field("$").is_some() => {
            form.inputs.message = Some(SENT_BEFORE.to_owned());
        }
        Err(ApiError::Invalid(body)) => form.inputs.reject_all(&body),
        Err(ApiError::Conflict(body)) => form.inputs.reject("email", sentence(&body.message)),
        Err(ApiError::NotFound) => form.inputs.reject("merchant", "There is no such merchant."),
        Err(error) => return Err(error.into()),
    }
    rejected(&page(&signed_in, form))
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
pub(super) async fn renew(signed_in: &SignedIn, email: &str, key: FormKey) -> PageResult {
    let path = pages::path!("v1", "people", email, "invitation");
    let api = key.api(&signed_in.api);
    let invited: Invited =
        api.send_json(Service::Auth, Method::POST, None, &path, &json!({})).await?;
    show_link(signed_in, invited)
}

#[cfg(test)]
mod tests {
    use actix_web::{HttpRequest, HttpResponse, http::StatusCode};

    use super::*;
    use crate::fixtures;

    const KEY: &str = "7d9f5a35-6f4e-4c3b-9a55-2f3f0f5b9c11";

    /// An auth whose link ends with the idempotency key.
    fn auth(app: &mut web::ServiceConfig) {
        let respond = async |request: HttpRequest| {
            let url = format!("https://console.test/{}", fixtures::key_of(&request));
            let person = json!({
                "email": "ada@acme.example", "name": "Ada", "role": "support", "merchant": null,
                "state": "invited", "created_at": "2026-11-16T08:00:00Z", "last_signed_in_at": null,
                "has_password": false, "totp": false,
            });
            let invitation = json!({ "url": url, "expires_at": "2026-11-19T08:00:00Z" });
            HttpResponse::Created().json(json!({ "person": person, "invitation": invitation }))
        };
        app.route("/v1/people", web::post().to(respond));
        app.route("/v1/people/{email}/invitation", web::post().to(respond));
    }

    #[actix_web::test]
    async fn a_form_for_an_invitation_is_one_request() {
        let fields = [("key", KEY), ("email", "ada@acme.example"), ("role", "support")];
        let app = fixtures::app_with_services(auth);
        let (status, _, page) = fixtures::post(app, routes, "/people/new", &fields).await;
        assert!(status == StatusCode::OK && page.contains(KEY), "{page}");
        let app = fixtures::app_with_services(auth);
        let (status, ..) = fixtures::post(app, routes, "/people/new", &fields[1..]).await;
        assert_eq!(status, StatusCode::BAD_REQUEST);
        let routes = super::super::actions::routes;
        let path = "/people/ada@acme.example/invitation";
        let app = fixtures::app_with_services(auth);
        let (status, _, page) = fixtures::post(app, routes, path, &fields[..1]).await;
        assert!(status == StatusCode::OK && page.contains(KEY), "{page}");
    }

    #[test]
    fn a_role_of_no_merchant_ignores_the_merchant() {
        let form = |role: &str| {
            let inputs = Form::empty(INPUTS).with("name", "Ada").with("role", role);
            PersonForm { inputs: inputs.with("merchant", "acme"), opened: String::new() }
        };
        let body = form("support").body();
        assert_eq!(body, json!({ "name": "Ada", "role": "support", "merchant": null }));
        let body = form("merchant-viewer").body();
        assert_eq!(body, json!({ "name": "Ada", "role": "merchant-viewer", "merchant": "acme" }));
    }
}
