//! Withdrawal from the contract (Directive (EU) 2023/2673), for merchants who offer it: a page with name,
//! contract and contact, a page that asks for the confirmation, and an acknowledgement to keep.
//!
//! A withdrawal becomes a return with the reason `withdrawal` and the name and contact of the shopper. Until
//! the confirmation, these are in the sealed cookie and in the sealed request of the form, because no
//! personal data may be in a URL.

mod acknowledgement;
mod confirm;
mod form;
mod units;

use actix_web::{HttpResponse, get, http::StatusCode, post, web};
use askama::Template;
use domain::returns::Withdrawal;
use serde::Deserialize;
use url::form_urlencoded;

use self::form::{SentForm, WithdrawForm};
use crate::{
    App,
    error::PageError,
    find::{Failed, look_up},
    page::{self, Page},
    sent::Form,
    visit::Visit,
};

#[derive(Template)]
#[template(path = "withdraw.html")]
struct WithdrawPage {
    page: Page,
    form: WithdrawForm,
    /// The reason why the order was not found.
    message: Option<String>,
}

#[derive(Deserialize)]
struct WithdrawQuery {
    #[serde(default)]
    order: String,
}

pub(crate) fn routes(app: &mut web::ServiceConfig) {
    app.service(show_withdraw)
        .service(withdraw)
        .service(confirm::show_confirm)
        .service(confirm::confirm)
        .service(acknowledgement::show_acknowledgement)
        .service(acknowledgement::download);
}

/// The page does not exist for merchants without the switch.
fn check_offered(visit: &Visit) -> Result<(), PageError> {
    if visit.portal.withdrawal { Ok(()) } else { Err(PageError::NotFound) }
}

/// The digest by which the cookie remembers the withdrawal of an order. The lines of returns have no space.
fn digest(order: &str) -> u64 {
    page::digest(&format!("withdrawal {order}"))
}

/// The path of a page of the withdrawal with the order in its query.
fn url(visit: &Visit, path: &str, order: &str) -> String {
    let query =
        form_urlencoded::Serializer::new(String::new()).append_pair("order", order).finish();
    format!("{}?{query}", visit.url(path))
}

#[get("/{merchant}/withdraw")]
async fn show_withdraw(
    app: web::Data<App>,
    visit: Visit,
    query: web::Query<WithdrawQuery>,
) -> Result<HttpResponse, PageError> {
    check_offered(&visit)?;
    let known = visit.shopper.withdrawing(&query.order);
    let form = WithdrawForm::new(&visit.portal, known, &query.order);
    let response = show(&visit, form, &Failed::without_lookup(StatusCode::OK))?;
    if visit.has_language_in_url { visit.with_cookie(&app, response) } else { Ok(response) }
}

#[post("/{merchant}/withdraw")]
async fn withdraw(
    app: web::Data<App>,
    mut visit: Visit,
    sent: Form<SentForm>,
) -> Result<HttpResponse, PageError> {
    let sent = sent.0;
    check_offered(&visit)?;
    let form = WithdrawForm::check(&Page::new(&visit, None), sent);
    let Some(body) = form.lookup() else {
        return show(&visit, form, &Failed::without_lookup(StatusCode::UNPROCESSABLE_ENTITY));
    };
    match look_up(&visit, &body).await {
        Ok(found) => {
            let name = form.name.value;
            let email = form.email.value;
            visit.shopper.begin_withdrawal(&found.order_identifier, Withdrawal { name, email });
            let next = url(&visit, "/withdraw/confirm", &found.order_identifier);
            found.open(&app, visit, &next)
        }
        Err(error) => {
            let failed = Failed::new(&visit, error, "withdraw-wrong")?;
            show(&visit, form, &failed)
        }
    }
}

fn show(visit: &Visit, form: WithdrawForm, failed: &Failed) -> Result<HttpResponse, PageError> {
    let page = Page::new(visit, None);
    let template = WithdrawPage { page, form, message: failed.message.clone() };
    failed.response(&template.page, &template)
}
