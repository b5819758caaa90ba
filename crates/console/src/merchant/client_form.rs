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
    html, rejected,
};

#[derive(Template)]
#[template(path = "merchant_client_new.html")]
struct NewClientPage {
    page: Page,
    merchant: Frame,
    back: String,
    form: ClientForm,
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
    name: String,
    #[serde(default, rename = "scopes[]")]
    scopes: Vec<String>,
}

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
    Ok(NewClientPage { page: page(signed_in), merchant, back: list_url(id), form })
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
    let created: Result<ClientView, _> =
        signed_in.api.send_json(Service::Auth, Method::POST, None, "v1/clients", &body).await;
    let mut form = ClientForm {
        name: Field::new(fields.name),
        chosen: fields.scopes,
        ..ClientForm::default()
    };
    match created {
        Ok(client) => return show_secret(&signed_in, id, client),
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
