//! Cancels a return, after a page that says what happens.

use actix_web::{get, post, web};
use askama::Template;
use domain::returns::Rma;
use pages::{
    api::{ApiError, Service},
    form::Field,
    path,
};
use reqwest::Method;
use serde::Deserialize;
use serde_json::json;

use super::{active_units, is_cancelable, load_return};
use crate::{
    Notice, Page, PageError, PageResult, Posted, Section, SignedIn, error::sentence, html,
    person::Person, rejected,
};

pub(super) fn routes(app: &mut web::ServiceConfig) {
    app.service(confirm_cancel).service(cancel_return);
}

#[derive(Template)]
#[template(path = "return_cancel.html")]
struct CancelPage {
    page: Page,
    merchant: String,
    rma: Rma,
    reason: Field,
    /// The reason why the return was not canceled.
    problem: Option<String>,
}

#[get("/merchants/{merchant}/returns/{rma}/cancel")]
async fn confirm_cancel(signed_in: SignedIn, path: web::Path<(String, String)>) -> PageResult {
    let (merchant, identifier) = path.into_inner();
    check_role(&signed_in.person)?;
    let rma = load_return(&signed_in, signed_in.merchant(&merchant)?, &identifier).await?.rma;
    let page = signed_in.page(Section::Returns);
    html(&CancelPage { page, merchant, rma, reason: Field::default(), problem: None })
}

#[derive(Deserialize)]
struct CancelForm {
    #[serde(default)]
    reason: String,
}

#[post("/merchants/{merchant}/returns/{rma}/cancel")]
async fn cancel_return(
    posted: Posted<CancelForm>,
    path: web::Path<(String, String)>,
) -> PageResult {
    let Posted { signed_in, form } = posted;
    let (merchant, identifier) = path.into_inner();
    let own = signed_in.merchant(&merchant)?;
    let reason = form.reason.trim();
    let body = if reason.is_empty() { json!({}) } else { json!({ "reason": reason }) };
    let cancel_path = path!("v1", "returns", identifier, "cancel");
    let canceled: Result<Rma, _> = signed_in
        .api
        .send_json(Service::RmaEngine, Method::POST, Some(own), &cancel_path, &body)
        .await;
    let mut reason = Field::new(form.reason);
    let problem = match canceled {
        Ok(rma) => {
            let shown = path!("merchants", merchant, "returns", identifier);
            let is_undecided = rma.review.is_some_and(|review| review.decided.is_none());
            let notice =
                if is_undecided { Notice::RequestCanceled } else { Notice::ReturnCanceled };
            return Ok(notice.redirect(&format!("/{shown}")));
        }
        Err(ApiError::Conflict(body)) => Some(sentence(&body.message)),
        Err(ApiError::Invalid(body)) => {
            reason.error = body.field("$.reason");
            reason.is_valid().then(|| sentence(&body.message))
        }
        Err(error) => return Err(error.into()),
    };
    let rma = load_return(&signed_in, own, &identifier).await?.rma;
    let page = signed_in.page(Section::Returns);
    rejected(&CancelPage { page, merchant, rma, reason, problem })
}

fn check_role(person: &Person) -> Result<(), PageError> {
    if person.may_manage() {
        Ok(())
    } else {
        Err(PageError::Denied("your role cannot cancel returns".to_owned()))
    }
}
