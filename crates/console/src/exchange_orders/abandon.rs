//! Abandons an undeliverable exchange order, after a page that says what happens.

use actix_web::{HttpResponse, get, post, web};
use askama::Template;
use pages::{
    api::{ApiError, Service},
    path,
};
use reqwest::Method;
use serde::de::IgnoredAny;
use serde_json::json;

use super::{ExchangeOrder, details::load_order, url};
use crate::{
    App,
    error::{PageError, sentence},
    notice::Notice,
    page::{Page, Section, html, rejected},
    person::{Posted, SignedIn},
};

pub(super) fn routes(app: &mut web::ServiceConfig) {
    app.service(confirm_abandon).service(abandon_exchange_order);
}

#[derive(Template)]
#[template(path = "exchange_order_abandon.html")]
struct AbandonPage {
    page: Page,
    order: ExchangeOrder,
    url: String,
    /// The reason why the exchange order was not abandoned.
    problem: Option<String>,
}

#[get("/merchants/{merchant}/exchange-orders/{order}/abandon")]
async fn confirm_abandon(
    app: web::Data<App>,
    signed_in: SignedIn,
    path: web::Path<(String, String)>,
) -> Result<HttpResponse, PageError> {
    let (merchant, original_order) = path.into_inner();
    let own = signed_in.merchant(&merchant)?;
    if !signed_in.person.is_operator() {
        return Err(PageError::Denied("only operators can abandon exchange orders".to_owned()));
    }
    let (order, _) = load_order(&signed_in, own, &original_order).await?;
    let page = Page::new(&app, &signed_in, Section::ExchangeOrders);
    html(&AbandonPage { page, url: order.url(), order, problem: None })
}

#[post("/merchants/{merchant}/exchange-orders/{order}/abandon")]
async fn abandon_exchange_order(
    app: web::Data<App>,
    posted: Posted<IgnoredAny>,
    path: web::Path<(String, String)>,
) -> Result<HttpResponse, PageError> {
    let signed_in = posted.signed_in;
    let (merchant, original_order) = path.into_inner();
    let own = signed_in.merchant(&merchant)?;
    let abandon_path = path!("v1", "exchange_orders", original_order, "abandon");
    let abandoned: Result<IgnoredAny, _> = signed_in
        .api
        .send_json(Service::Exchange, Method::POST, Some(own), &abandon_path, &json!({}))
        .await;
    let problem = match abandoned {
        Ok(_) => {
            return Ok(Notice::ExchangeOrderAbandoned.redirect(&url(&merchant, &original_order)));
        }
        Err(ApiError::Conflict(body) | ApiError::Invalid(body)) => sentence(&body.message),
        Err(error) => return Err(error.into()),
    };
    let (order, _) = load_order(&signed_in, own, &original_order).await?;
    let page = Page::new(&app, &signed_in, Section::ExchangeOrders);
    rejected(&AbandonPage { page, url: order.url(), order, problem: Some(problem) })
}
