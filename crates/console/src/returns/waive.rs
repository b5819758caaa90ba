//! Waives exchanged units that have not come back, after a page that says what happens.

use actix_web::{get, post, web};
use askama::Template;
use domain::returns::{GuaranteeState, Rma};
use pages::{
    api::{ApiError, Service},
    form::Field,
    path,
};
use reqwest::Method;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{load_return, may_waive, units_with};
use crate::{
    Notice, Page, PageError, PageResult, Posted, Section, SignedIn, error::sentence, html,
    listing::amount, person::Person, rejected,
};

pub(super) fn routes(app: &mut web::ServiceConfig) {
    app.service(confirm_waiver).service(waive);
}

#[derive(Template)]
#[template(path = "return_waive.html")]
struct WaivePage {
    page: Page,
    merchant: String,
    rma: Rma,
    note: Field,
    /// The reason why the units were not waived.
    problem: Option<String>,
}

impl WaivePage {
    /// The number of units and the amount that was paid for them.
    fn waived(&self) -> (usize, String) {
        let states = [GuaranteeState::Open, GuaranteeState::Due];
        let units: Vec<_> = states.into_iter().flat_map(|it| units_with(&self.rma, it)).collect();
        let cents = units.iter().map(|guarantee| guarantee.amount_cents).sum();
        let currency = Some(self.rma.currency.as_str()).filter(|it| !it.is_empty());
        (units.len(), amount(cents, currency))
    }
}

#[get("/merchants/{merchant}/returns/{rma}/waive")]
async fn confirm_waiver(signed_in: SignedIn, path: web::Path<(String, String)>) -> PageResult {
    let (merchant, identifier) = path.into_inner();
    check_role(&signed_in.person)?;
    let rma = load_return(&signed_in, signed_in.merchant(&merchant)?, &identifier).await?.rma;
    let page = signed_in.page(Section::Lookup);
    html(&WaivePage { page, merchant, rma, note: Field::default(), problem: None })
}

#[derive(Deserialize)]
struct WaiveForm {
    #[serde(default)]
    note: String,
}

#[post("/merchants/{merchant}/returns/{rma}/waive")]
async fn waive(posted: Posted<WaiveForm>, path: web::Path<(String, String)>) -> PageResult {
    let Posted { signed_in, form } = posted;
    let (merchant, identifier) = path.into_inner();
    let own = signed_in.merchant(&merchant)?;
    let body = json!({ "note": form.note.trim() });
    let waive_path = path!("v1", "returns", identifier, "waive");
    let waived: Result<Value, _> = signed_in
        .api
        .send_json(Service::RmaEngine, Method::POST, Some(own), &waive_path, &body)
        .await;
    let mut note = Field::new(form.note);
    let problem = match waived {
        Ok(_) => {
            let shown = path!("merchants", merchant, "returns", identifier);
            return Ok(Notice::UnitsWaived.redirect(&format!("/{shown}")));
        }
        Err(ApiError::Conflict(body)) => Some(sentence(&body.message)),
        Err(ApiError::Invalid(body)) => {
            note.error = body.field("$.note");
            note.is_valid().then(|| sentence(&body.message))
        }
        Err(error) => return Err(error.into()),
    };
    let rma = load_return(&signed_in, own, &identifier).await?.rma;
    let page = signed_in.page(Section::Lookup);
    rejected(&WaivePage { page, merchant, rma, note, problem })
}

fn check_role(person: &Person) -> Result<(), PageError> {
    if person.may_manage() {
        Ok(())
    } else {
        Err(PageError::Denied("your role cannot waive units".to_owned()))
    }
}
