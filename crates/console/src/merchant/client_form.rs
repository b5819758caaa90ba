//! The form for a new API client.

use actix_web::{get, post, web};
use askama::Template;
use domain::access::Scope;
use pages::{
    api::{ApiError, Service},
    form::Field,
};
use reqwest::Method;
use serde::Deserialize;
use serde_json::json;

use super::{
    Frame, Merchant, Tab,
    clients::{ClientView, list_url, show_secret},
    page, require_manage,
};
use crate::{
    Page, PageError, PageResult, Posted, SignedIn,
    error::{error_below, sentence},
    form_key::FormKey,
    html, rejected,
};

#[derive(Template)]
#[template(path = "merchant_client_new.html")]
struct NewClientPage {
    page: Page,
    merchant: Frame,
    back: String,
    form: ClientForm,
    key: FormKey,
}

#[derive(Default)]
struct ClientForm {
    name: Field,
    /// The names of the chosen scopes.
    chosen: Vec<String>,
    scopes_error: Option<String>,
    message: Option<String>,
}

impl ClientForm {
    /// Every scope that a merchant's client can have, and whether it is chosen.
    fn scopes(&self) -> impl Iterator<Item = (&'static str, &'static str, bool)> {
        Scope::OF_MERCHANTS.into_iter().map(|scope| {
            let is_chosen = self.chosen.iter().any(|chosen| chosen == scope.as_str());
            (scope.as_str(), scope.about(), is_chosen)
        })
    }
}

#[derive(Deserialize)]
struct ClientFields {
    key: FormKey,
    name: String,
    #[serde(default, rename = "scopes[]")]
    scopes: Vec<String>,
}

/// Back leads from a new client to its form, where the values can be changed.
const SENT_BEFORE: &str = "Nothing was changed. This form created a client before, with other values. \
    Look at the list of clients; send the form again to create one more.";

pub(super) fn routes(app: &mut web::ServiceConfig) {
    app.service(show_form).service(create);
}

async fn load(
    signed_in: &SignedIn,
    id: &str,
    form: ClientForm,
) -> Result<NewClientPage, PageError> {
    let found = Merchant::load(signed_in, id).await?;
    let merchant = Frame::new(&signed_in.person, &found, Tab::Clients);
    let key = FormKey::random();
    Ok(NewClientPage { page: page(signed_in), merchant, back: list_url(id), form, key })
}

#[get("/merchants/{merchant}/new-client")]
async fn show_form(signed_in: SignedIn, merchant: web::Path<String>) -> PageResult {
    require_manage(&signed_in)?;
    let chosen = vec![Scope::Orders.to_string(), Scope::Returns.to_string()];
    let form = ClientForm { chosen, ..ClientForm::default() };
    html(&load(&signed_in, signed_in.merchant(&merchant)?, form).await?)
}

#[post("/merchants/{merchant}/new-client")]
async fn create(posted: Posted<ClientFields>, merchant: web::Path<String>) -> PageResult {
    let Posted { signed_in, form: fields } = posted;
    let id = signed_in.merchant(&merchant)?;
    let body = json!({ "merchant": id, "name": fields.name.trim(), "scopes": fields.scopes });
    let api = fields.key.api(&signed_in.api);
    let created: Result<ClientView, _> =
        api.send_json(Service::Auth, Method::POST, None, "v1/clients", &body).await;
    let mut form = ClientForm {
        name: Field::new(fields.name),
        chosen: fields.scopes,
        ..ClientForm::default()
    };
    match created {
        Ok(client) => return show_secret(&signed_in, id, client),
        Err(ApiError::Invalid(body)) if body.field("$").is_some() => {
            form.message = Some(SENT_BEFORE.to_owned());
        }
        Err(ApiError::Invalid(body)) => {
            form.name.error = body.field("$.name").map(|text| sentence(&text));
            form.scopes_error = error_below(&body, "$.scopes");
            form.message = Some(sentence(&body.message));
        }
        Err(ApiError::Conflict(body)) => form.message = Some(sentence(&body.message)),
        Err(error) => return Err(error.into()),
    }
    rejected(&load(&signed_in, id, form).await?)
}

#[cfg(test)]
mod tests {
    use actix_web::{HttpRequest, HttpResponse, http::StatusCode};

    use super::*;
    use crate::fixtures::{self, app_with_services, key_of};

    const KEY: &str = "7d9f5a35-6f4e-4c3b-9a55-2f3f0f5b9c11";

    /// An auth that names a client after its idempotency key.
    fn auth(app: &mut web::ServiceConfig) {
        let respond = async |request: HttpRequest| {
            HttpResponse::Created().json(json!({
                "client_id": key_of(&request), "merchant": "acme", "name": "Shop", "scope": "orders",
                "created_at": "2026-11-16T08:00:00Z", "client_secret": "s",
            }))
        };
        app.route("/v1/clients", web::post().to(respond));
    }

    /// An auth that has created a client with this key and other values.
    fn auth_with_used_key(app: &mut web::ServiceConfig) {
        let respond = async || {
            let error = json!({ "field": "$", "code": "invalid", "detail": "was used" });
            let body = json!({ "message": "the request is invalid", "errors": [error] });
            HttpResponse::UnprocessableEntity().json(body)
        };
        app.route("/v1/clients", web::post().to(respond));
    }

    async fn post(services: fn(&mut web::ServiceConfig)) -> (StatusCode, String) {
        let fields = [("key", KEY), ("name", "Shop"), ("scopes[]", "orders")];
        let path = "/merchants/acme/new-client";
        let (status, _, page) =
            fixtures::post(app_with_services(services), routes, path, &fields).await;
        (status, page)
    }

    #[actix_web::test]
    async fn the_same_form_is_the_same_request() {
        let (status, page) = post(auth).await;
        assert!(status == StatusCode::OK && page.contains(KEY), "{page}");
    }

    #[actix_web::test]
    async fn a_changed_form_of_an_earlier_client_can_be_sent_again() {
        let (status, page) = post(auth_with_used_key).await;
        assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY);
        assert!(page.contains("This form created a client before"), "{page}");
        assert!(page.contains(r#"name="key""#) && !page.contains(KEY), "{page}");
    }
}
