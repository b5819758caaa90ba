//! One delivery with its message and attempts.

use actix_web::{HttpResponse, get, post, web};
use askama::Template;
use chrono::{DateTime, Utc};
use pages::{
    api::Service,
    path,
    text::Moment,
};
use reqwest::Method;
use serde::Deserialize;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::{
    App,
    deliveries::Delivery,
    error::PageError,
    notice::Notice,
    page::{Page, Section, html},
    person::{Posted, SignedIn},
};

#[derive(Deserialize)]
struct AttemptView {
    replay_number: i32,
    started_at: DateTime<Utc>,
    latency_ms: i32,
    outcome: String,
    status: Option<i32>,
    detail: String,
    response_body: String,
}

#[derive(Deserialize)]
struct Details {
    #[serde(flatten)]
    delivery: Delivery,
    body: String,
    attempts: Vec<AttemptView>,
}

struct Attempt {
    view: AttemptView,
    started: Moment,
}

impl Attempt {
    fn tone(&self) -> &'static str {
        if self.view.outcome == "delivered" { "good" } else { "bad" }
    }

    fn result(&self) -> String {
        match self.view.status {
            Some(status) => format!("Response {status}"),
            None => self.view.outcome.replace('_', " "),
        }
    }
}

#[derive(Template)]
#[template(path = "delivery.html")]
struct DeliveryPage {
    page: Page,
    service: Service,
    details: Details,
    /// One sentence: the state of the delivery and what happens next.
    sentence: String,
    created: Moment,
    attempts: Vec<Attempt>,
    body: String,
}

pub(crate) fn routes(app: &mut web::ServiceConfig) {
    app.service(show_delivery).service(replay_delivery);
}

#[get("/deliveries/{service}/{id}")]
async fn show_delivery(
    app: web::Data<App>,
    signed_in: SignedIn,
    path: web::Path<(String, Uuid)>,
) -> Result<HttpResponse, PageError> {
    let (service, id) = delivery_of(path)?;
    let mut details: Details =
        signed_in.api.get(service, &path!("v1", "deliveries", id.to_string()), &[]).await?;
    let page = Page::new(&app, &signed_in, Section::Deliveries);
    let created = page.moment(details.delivery.created_at);
    let attempts: Vec<_> = std::mem::take(&mut details.attempts)
        .into_iter()
        .map(|view| Attempt { started: page.moment(view.started_at), view })
        .collect();
    let sentence = sentence(&details.delivery, attempts.len());
    let body = readable(&details.body);
    html(&DeliveryPage { page, service, details, sentence, created, attempts, body })
}

#[derive(Deserialize)]
struct ReplayForm {
    #[serde(default)]
    force: bool,
}

/// Replays a settled delivery, or sends a pending one now.
#[post("/deliveries/{service}/{id}/replay")]
async fn replay_delivery(
    posted: Posted<ReplayForm>,
    path: web::Path<(String, Uuid)>,
) -> Result<HttpResponse, PageError> {
    let Posted { signed_in, form } = posted;
    let (service, id) = delivery_of(path)?;
    let id = id.to_string();
    let shown: Delivery = signed_in.api.get(service, &path!("v1", "deliveries", id), &[]).await?;
    let action = if shown.state == "pending" { "retry" } else { "replay" };
    let body = if action == "replay" { json!({ "force": form.force }) } else { json!({}) };
    let _: Value = signed_in
        .api
        .send_json(service, Method::POST, None, &path!("v1", "deliveries", id, action), &body)
        .await?;
    let notice = if action == "replay" { Notice::Replayed } else { Notice::SentNow };
    Ok(notice.redirect(&format!("/deliveries/{service}/{id}")))
}

fn delivery_of(path: web::Path<(String, Uuid)>) -> Result<(Service, Uuid), PageError> {
    let (service, id) = path.into_inner();
    let service = Service::from_name(&service)
        .filter(|service| Service::DELIVERING.contains(service))
        .ok_or(PageError::NotFound)?;
    Ok((service, id))
}

/// The state of a delivery and what happens next.
fn sentence(delivery: &Delivery, attempts: usize) -> String {
    let tries = pages::text::count(attempts.try_into().unwrap_or(u64::MAX), "attempt", "attempts");
    let last = delivery.last_error.as_deref().filter(|error| !error.is_empty());
    let last = last.map_or_else(|| delivery.last_response(), str::to_owned);
    match delivery.state.as_str() {
        "delivered" => format!("Delivered after {tries}."),
        "dead" => format!("Given up after {tries}. The last one failed: {last}."),
        _ => {
            let waiting = delivery.waiting.as_ref().map(|waiting| waiting.detail.as_str());
            let waiting = waiting.unwrap_or("it is sent next");
            match attempts {
                0 => format!("Not attempted yet: {waiting}."),
                _ => format!("Failed {tries} so far ({last}). Next: {waiting}."),
            }
        }
    }
}

/// JSON with line breaks, or the text as it is.
fn readable(body: &str) -> String {
    let parsed = serde_json::from_str::<Value>(body).ok();
    parsed.and_then(|json| serde_json::to_string_pretty(&json).ok()).unwrap_or_else(|| body.to_owned())
}
