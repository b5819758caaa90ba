//! The form for a new merchant, for operators.

use actix_web::{get, post, web};
use askama::Template;
use pages::{
    api::{ApiError, Service},
    form::Field,
};
use reqwest::Method;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{
    Notice, Page, PageError, PageResult, Posted, Section, SignedIn, error::sentence, html, rejected,
};

#[derive(Template)]
#[template(path = "merchant_new.html")]
struct NewMerchantPage {
    page: Page,
    form: NewMerchantForm,
}

#[derive(Default)]
struct NewMerchantForm {
    identifier: Field,
    name: Field,
    time_zone: Field,
    currency: Field,
    base_url: Field,
    message: Option<String>,
}

#[derive(Deserialize)]
struct NewMerchantFields {
    identifier: String,
    name: String,
    time_zone: String,
    currency: String,
    base_url: String,
}

impl NewMerchantForm {
    fn new(fields: &NewMerchantFields) -> Self {
        Self {
            identifier: Field::new(fields.identifier.trim()),
            name: Field::new(fields.name.trim()),
            time_zone: Field::new(fields.time_zone.trim()),
            currency: Field::new(fields.currency.trim().to_uppercase()),
            base_url: Field::new(fields.base_url.trim()),
            message: None,
        }
    }

    fn body(&self) -> Value {
        let text = |field: &Field| Some(field.value.clone()).filter(|text| !text.is_empty());
        json!({
            "identifier": self.identifier.value, "name": self.name.value,
            "time_zone": text(&self.time_zone), "currency": text(&self.currency),
            "base_url": text(&self.base_url),
        })
    }

    /// Puts the error beside its field.
    fn reject(&mut self, error: ApiError) -> Result<(), PageError> {
        let body = match error {
            ApiError::Conflict(body) => {
                self.identifier.reject(sentence(&body.message));
                return Ok(());
            }
            ApiError::Invalid(body) => body,
            error => return Err(error.into()),
        };
        let fields = [
            (&mut self.identifier, "$.identifier"),
            (&mut self.name, "$.name"),
            (&mut self.time_zone, "$.time_zone"),
            (&mut self.currency, "$.currency"),
            (&mut self.base_url, "$.base_url"),
        ];
        for (field, path) in fields {
            field.error = body.field(path).map(|text| sentence(&text));
        }
        self.message = Some(sentence(&body.message));
        Ok(())
    }
}

pub(super) fn routes(app: &mut web::ServiceConfig) {
    app.service(show_form).service(create);
}

fn page(signed_in: &SignedIn, form: NewMerchantForm) -> NewMerchantPage {
    NewMerchantPage { page: signed_in.page(Section::Merchants), form }
}

#[get("/new-merchant")]
async fn show_form(signed_in: SignedIn) -> PageResult {
    if !signed_in.person.is_operator() {
        return Err(PageError::Denied("only an operator can create a merchant".to_owned()));
    }
    let form = NewMerchantForm {
        time_zone: Field::new("UTC"),
        currency: Field::new("USD"),
        ..NewMerchantForm::default()
    };
    html(&page(&signed_in, form))
}

#[post("/new-merchant")]
async fn create(posted: Posted<NewMerchantFields>) -> PageResult {
    let Posted { signed_in, form } = posted;
    let mut form = NewMerchantForm::new(&form);
    let created: Result<Value, _> = signed_in
        .api
        .send_json(Service::Auth, Method::POST, None, "v1/merchants", &form.body())
        .await;
    match created {
        Ok(_) => {
            let url = format!("/{}", pages::path!("merchants", form.identifier.value));
            Ok(Notice::MerchantCreated.redirect(&url))
        }
        Err(error) => {
            form.reject(error)?;
            rejected(&page(&signed_in, form))
        }
    }
}
