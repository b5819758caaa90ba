//! One delivery with its message and attempts.

mod attempts;
mod neighbours;
mod request;
mod sentence;
mod subjects;

use actix_web::{get, http::StatusCode, post, web};
use api::delivery::{DeliveryDetails, DeliveryView, State};
use askama::Template;
use futures_util::future::join;
use pages::{
    api::{ApiError, Part, Service},
    path,
};
use reqwest::Method;
use serde::Deserialize;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::{
    Notice, Page, PageError, PageResult, Posted, Section, SignedIn, error, html, html_with,
    record_list::indented, states::Shown as _, table::Table,
};

use attempts::Attempt;
use request::Request;
use sentence::sentence;
use subjects::{Subject, subjects};

#[derive(Template)]
#[template(path = "delivery.html")]
struct DeliveryPage {
    page: Page,
    service: Service,
    delivery: DeliveryView,
    /// One sentence: the state of the delivery and what happens next.
    sentence: String,
    attempts: Vec<Attempt>,
    body: String,
    request: Request,
    subjects: Vec<Subject>,
    /// The messages of the ordering key, if there are several.
    neighbours: Part<Option<Table>>,
    /// The reason why the message was not sent again.
    problem: Option<String>,
}

pub(crate) fn routes(app: &mut web::ServiceConfig) {
    app.service(show_delivery).service(replay_delivery);
}

#[get("/deliveries/{service}/{id}")]
async fn show_delivery(signed_in: SignedIn, path: web::Path<(String, Uuid)>) -> PageResult {
    let (service, id) = delivery_of(path)?;
    let shown = load(&signed_in, service, id, None).await?;
    html(&shown)
}

/// Loads everything about a delivery. The message decides about the other calls.
async fn load(
    signed_in: &SignedIn,
    service: Service,
    id: Uuid,
    problem: Option<String>,
) -> Result<DeliveryPage, PageError> {
    let details: DeliveryDetails =
        signed_in.api.get(service, &path!("v1", "deliveries", id.to_string()), &[]).await?;
    let DeliveryDetails { delivery, body, attempts, max_attempts } = details;
    let (request, neighbours) = join(
        Request::load(signed_in, &delivery, attempts.last(), &body),
        neighbours::load(signed_in, service, &delivery),
    )
    .await;
    let page = signed_in.page(Section::Deliveries);
    let neighbours = match neighbours? {
        Part::Loaded(entries) => {
            let table = || neighbours::table(&entries, delivery.id, &page);
            Part::Loaded((entries.len() > 1).then(table))
        }
        Part::Missing(service) => Part::Missing(service),
    };
    Ok(DeliveryPage {
        sentence: sentence(&page, &delivery, &attempts, max_attempts),
        attempts: Attempt::list(&page, attempts),
        subjects: subjects(&delivery, &body),
        body: indented(&body),
        request: request?,
        neighbours,
        page,
        service,
        delivery,
        problem,
    })
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
) -> PageResult {
    let Posted { signed_in, form } = posted;
    let (service, id) = delivery_of(path)?;
    let text = id.to_string();
    let shown: DeliveryView =
        signed_in.api.get(service, &path!("v1", "deliveries", text), &[]).await?;
    let (notice, path) = if shown.state == State::Pending {
        (Notice::SentNow, path!("v1", "deliveries", text, "retry"))
    } else {
        let force = if form.force { "?force=true" } else { "" };
        (Notice::Replayed, path!("v1", "deliveries", text, "replay") + force)
    };
    let sent: Result<Value, _> =
        signed_in.api.send_json(service, Method::POST, None, &path, &json!({})).await;
    match sent {
        Ok(_) => Ok(notice.redirect(&format!("/deliveries/{service}/{id}"))),
        Err(ApiError::Conflict(body)) => {
            let problem = Some(error::sentence(&body.message));
            let shown = load(&signed_in, service, id, problem).await?;
            html_with(StatusCode::CONFLICT, &shown)
        }
        Err(error) => Err(error.into()),
    }
}

fn delivery_of(path: web::Path<(String, Uuid)>) -> Result<(Service, Uuid), PageError> {
    let (service, id) = path.into_inner();
    Ok((delivering_service(&service)?, id))
}

/// The service in a URL. Only some services deliver messages.
pub(crate) fn delivering_service(name: &str) -> Result<Service, PageError> {
    Service::from_name(name)
        .filter(|service| Service::DELIVERING.contains(service))
        .ok_or(PageError::NotFound)
}
