//! The first page: finds an order by its number and a fact that the shopper knows, by a gift code or by a
//! link of the merchant. Also ends the shopper's access.

pub(crate) mod form;

use actix_web::{
    HttpResponse, get,
    http::{StatusCode, header},
    post, web,
};
use askama::Template;
use chrono::{DateTime, Utc};
use pages::{
    api::{ApiError, Service},
    form::Fields,
    url_path::is_own_path,
};
use reqwest::Method;
use serde::Deserialize;
use serde_json::{Value, json};

use self::form::{FindForm, SentForm};
use crate::{
    App,
    cookie::{self, Proof},
    error::{PageError, minutes},
    page::{Page, Step, html_with, redirect},
    sent::{Form, Problem},
    visit::Visit,
};

#[derive(Template)]
#[template(path = "find.html")]
struct FindPage {
    page: Page,
    form: FindForm,
    problems: Vec<Problem>,
    /// The reason why the order was not found.
    message: Option<String>,
    /// Whether the shopper has to prove the order again.
    is_again: bool,
    /// The orders that the shopper found already.
    orders: Vec<String>,
    /// The page that follows.
    next: String,
}

#[derive(Deserialize)]
struct FindQuery {
    #[serde(default)]
    next: String,
    #[serde(default)]
    again: String,
}

pub(crate) fn routes(app: &mut web::ServiceConfig) {
    app.service(sign_out).service(show_find).service(find).service(follow_deep_link);
}

/// Why a page that looks an order up is shown once more.
pub(crate) struct Failed {
    pub(crate) status: StatusCode,
    pub(crate) message: Option<String>,
    /// Minutes.
    pub(crate) wait: Option<u64>,
}

impl Failed {
    /// A page without a failed look-up: nothing was typed yet, or a field cannot be right.
    pub(crate) fn without_lookup(status: StatusCode) -> Self {
        Self { status, message: None, wait: None }
    }

    pub(crate) fn new(visit: &Visit, error: ApiError, text: &str) -> Result<Self, PageError> {
        let page = Page::new(visit, None);
        match error {
            ApiError::NotFound | ApiError::Invalid(_) => {
                let status = StatusCode::UNPROCESSABLE_ENTITY;
                Ok(Self { status, message: Some(page.t(text)), wait: None })
            }
            ApiError::TooManyRequests { retry_after, .. } => {
                let wait = minutes(retry_after);
                let message = page.t1("error-too-many-text", "minutes", wait);
                let status = StatusCode::TOO_MANY_REQUESTS;
                Ok(Self { status, message: Some(message), wait: Some(wait) })
            }
            // The shopper keeps what was typed.
            ApiError::Unavailable { .. } => {
                let status = StatusCode::SERVICE_UNAVAILABLE;
                let text = "error-unavailable-title";
                Ok(Self { status, message: Some(page.t(text)), wait: None })
            }
            error => Err(error.into()),
        }
    }

    /// The page as a response.
    pub(crate) fn response(
        &self,
        page: &Page,
        template: &impl Template,
    ) -> Result<HttpResponse, PageError> {
        let mut response = html_with(self.status, page, template)?;
        if let Some(wait) = self.wait {
            response.headers_mut().insert(header::RETRY_AFTER, (wait * 60).into());
        }
        Ok(response)
    }
}

fn show(
    visit: &Visit,
    form: FindForm,
    query: &FindQuery,
    failed: &Failed,
) -> Result<HttpResponse, PageError> {
    let orders = visit.proofs().iter().map(|proof| proof.order.clone()).collect();
    let template = FindPage {
        page: Page::new(visit, Some(Step::Find)),
        problems: form.problems(),
        form,
        message: failed.message.clone(),
        is_again: !query.again.is_empty(),
        orders,
        next: visit.own_path(&query.next).unwrap_or_default(),
    };
    failed.response(&template.page, &template)
}

#[get("/{merchant}")]
async fn show_find(
    app: web::Data<App>,
    visit: Visit,
    query: web::Query<FindQuery>,
) -> Result<HttpResponse, PageError> {
    // The order's number is filled in when only its proof expired.
    let known = visit.shopper.proof_to_renew(visit.now).filter(|_| !query.again.is_empty());
    let mut form = FindForm::new(&visit.portal, known.map_or("", |proof| &proof.order));
    form.is_gift = known.is_some_and(|proof| proof.is_gift);
    let response = show(&visit, form, &query, &Failed::without_lookup(StatusCode::OK))?;
    if visit.has_language_in_url { visit.with_cookie(&app, response) } else { Ok(response) }
}

#[post("/{merchant}")]
async fn find(
    app: web::Data<App>,
    visit: Visit,
    sent: Form<SentForm>,
) -> Result<HttpResponse, PageError> {
    let sent = sent.0;
    let query = FindQuery { next: sent.next.clone(), again: sent.again.clone() };
    let form = FindForm::check(&Page::new(&visit, None), sent);
    let Some(body) = form.lookup() else {
        let failed = Failed::without_lookup(StatusCode::UNPROCESSABLE_ENTITY);
        return show(&visit, form, &query, &failed);
    };
    match look_up(&visit, &body).await {
        Ok(found) => found.open(&app, visit, &query.next),
        Err(error) => {
            let failed = Failed::new(&visit, error, "find-wrong")?;
            show(&visit, form, &query, &failed)
        }
    }
}

/// A link to one order that the merchant sent.
#[get("/{merchant}/l/{token}")]
async fn follow_deep_link(
    app: web::Data<App>,
    visit: Visit,
    path: web::Path<(String, String)>,
) -> Result<HttpResponse, PageError> {
    let (_, token) = path.into_inner();
    match look_up(&visit, &json!({ "deep_link": token })).await {
        Ok(found) => found.open(&app, visit, ""),
        Err(error) => {
            let failed = Failed::new(&visit, error, "find-link-over")?;
            let query = FindQuery { next: String::new(), again: String::new() };
            show(&visit, FindForm::new(&visit.portal, ""), &query, &failed)
        }
    }
}

/// An order that was found.
#[derive(Deserialize)]
pub(crate) struct Found {
    proof: String,
    pub(crate) order_identifier: String,
    #[serde(default)]
    is_gift: bool,
    expires_at: DateTime<Utc>,
}

impl Found {
    /// Keeps the proof and leads to the page that the shopper asked for, else to the order's units.
    pub(crate) fn open(
        self,
        app: &App,
        mut visit: Visit,
        next: &str,
    ) -> Result<HttpResponse, PageError> {
        let Self { proof, order_identifier: order, is_gift, expires_at } = self;
        visit.shopper.add(Proof { order, proof, is_gift, expires_at });
        let next = visit.own_path(next).unwrap_or_else(|| visit.url("/choose"));
        visit.with_cookie(app, redirect(&next))
    }
}

pub(crate) async fn look_up(visit: &Visit, body: &Value) -> Result<Found, ApiError> {
    let merchant = Some(visit.merchant());
    visit.api.send_json(Service::RmaEngine, Method::POST, merchant, "v1/lookups", body).await
}

/// Ends the access to all orders. Leads to the page that the form names.
#[post("/sign-out")]
async fn sign_out(form: Form<Fields>) -> HttpResponse {
    let form = form.0;
    let next = Some(form.text("next")).filter(|next| is_own_path(next));
    let mut response = redirect(next.unwrap_or("/"));
    if let Err(error) = response.add_cookie(&cookie::removal()) {
        tracing::error!(%error, "a cookie cannot be removed");
    }
    response
}
