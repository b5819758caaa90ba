//! The form for a new merchant, for operators.

use actix_web::{get, post, web};
use askama::Template;
use pages::{
    api::{ApiError, Service},
    form::Fields,
    path,
};
use reqwest::Method;
use serde_json::Value;

use crate::{
    Notice, Page, PageError, PageResult, Posted, Section, SignedIn,
    error::sentence,
    form::{Form, Input, Kind},
    html, rejected,
};

/// The inputs of the form.
const INPUTS: &[Input] = &[
    Input::text("identifier", "Identifier")
        .hint("Lower-case letters, digits and hyphens, for example acme. It can never change.")
        .required(),
    Input::text("name", "Name").required(),
    Input::text("time_zone", "Time zone")
        .hint("For days and return windows, for example Europe/Berlin."),
    Input::new("currency", "Currency", "currency", Kind::Capitals)
        .hint("Of shipping costs and bonus, for example EUR."),
    Input::text("base_url", "Base URL of endpoints")
        .kind("url")
        .hint("Optional. Every endpoint can have its own URL instead."),
];

#[derive(Template)]
#[template(path = "merchant_new.html")]
struct NewMerchantPage {
    page: Page,
    form: Form,
}

pub(super) fn routes(app: &mut web::ServiceConfig) {
    app.service(show_form).service(create);
}

#[get("/new-merchant")]
async fn show_form(signed_in: SignedIn) -> PageResult {
    if !signed_in.person.is_operator() {
        return Err(PageError::Denied("only an operator can create a merchant".to_owned()));
    }
    let form = Form::empty(INPUTS).with("time_zone", "UTC").with("currency", "USD");
    html(&NewMerchantPage { page: signed_in.page(Section::Merchants), form })
}

#[post("/new-merchant")]
async fn create(posted: Posted<Fields>) -> PageResult {
    let Posted { signed_in, form } = posted;
    let mut form = Form::read(INPUTS, &form);
    let created: Result<Value, _> = signed_in
        .api
        .send_json(Service::Auth, Method::POST, None, "v1/merchants", &form.body())
        .await;
    match created {
        Ok(_) => {
            let url = format!("/{}", path!("merchants", form.value("identifier")));
            return Ok(Notice::MerchantCreated.redirect(&url));
        }
        Err(ApiError::Conflict(body)) => form.reject("identifier", sentence(&body.message)),
        Err(ApiError::Invalid(body)) => form.reject_all(&body),
        Err(error) => return Err(error.into()),
    }
    rejected(&NewMerchantPage { page: signed_in.page(Section::Merchants), form })
}
