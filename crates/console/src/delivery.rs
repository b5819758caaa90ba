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
use serde::{Deserialize, de::IgnoredAny};
use serde_json::json;
use uuid::Uuid;

use crate::{
    Notice, Page, PageError, PageResult, Posted, Section, SignedIn, error, html, html_with,
    person::NoFields, record_list::indented, states::Shown as _, table::Table,
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
    /// The `replay_number` of the newest attempt. A replay names it, so that a page which was opened before another
    /// replay does not send the message once more.
    replay_number: i32,
    /// The reason why nothing was sent.
    problem: Option<String>,
}

pub(crate) fn routes(app: &mut web::ServiceConfig) {
    app.service(show_delivery).service(retry_delivery).service(replay_delivery);
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
        replay_number: attempts.last().map_or(0, |last| last.replay_number),
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

/// Sends a pending delivery now. A delivery that was settled meanwhile is not sent again.
#[post("/deliveries/{service}/{id}/retry")]
async fn retry_delivery(posted: Posted<NoFields>, path: web::Path<(String, Uuid)>) -> PageResult {
    let (service, id) = delivery_of(path)?;
    let path = path!("v1", "deliveries", id.to_string(), "retry");
    send(&posted.signed_in, (service, id), &path, Notice::SentNow).await
}

#[derive(Deserialize)]
struct ReplayForm {
    #[serde(default)]
    force: bool,
    replay_number: i32,
}

/// Replays a settled delivery, unless it was replayed since the page was opened.
#[post("/deliveries/{service}/{id}/replay")]
async fn replay_delivery(
    posted: Posted<ReplayForm>,
    path: web::Path<(String, Uuid)>,
) -> PageResult {
    let Posted { signed_in, form: ReplayForm { force, replay_number } } = posted;
    let (service, id) = delivery_of(path)?;
    let path = path!("v1", "deliveries", id.to_string(), "replay");
    let path = format!("{path}?force={force}&replay_number={replay_number}");
    send(&signed_in, (service, id), &path, Notice::Replayed).await
}

async fn send(
    signed_in: &SignedIn,
    (service, id): (Service, Uuid),
    path: &str,
    notice: Notice,
) -> PageResult {
    let sent: Result<IgnoredAny, _> =
        signed_in.api.send_json(service, Method::POST, None, path, &json!({})).await;
    match sent {
        Ok(_) => Ok(notice.redirect(&format!("/deliveries/{service}/{id}"))),
        Err(ApiError::Conflict(body)) => {
            let problem = format!("Nothing was sent. {}", error::sentence(&body.message));
            let shown = load(signed_in, service, id, Some(problem)).await?;
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

#[cfg(test)]
mod tests {
    use actix_web::{HttpRequest, HttpResponse};

    use super::*;
    use crate::fixtures::{self, app_with_services};

    /// A delivery that was dead or pending, and was replayed and delivered since the page was opened.
    fn services(app: &mut web::ServiceConfig) {
        let show = async || {
            let mut delivery = json!(fixtures::delivery(&json!({ "state": "delivered" })));
            let attempt = json!({
                "replay_number": 1, "number": 1, "started_at": "2026-11-16T08:00:00Z",
                "latency_ms": 5, "outcome": "delivered", "status": 200, "detail": "",
                "request_headers": [], "response_headers": [], "response_body": "",
            });
            delivery["attempts"] = json!([attempt]);
            delivery["body"] = json!("{}");
            delivery["max_attempts"] = json!(6);
            HttpResponse::Ok().json(delivery)
        };
        let retry = async || {
            let message = "delivery 0 cannot be sent now: it is settled, replay it instead";
            HttpResponse::Conflict().json(json!({ "message": message }))
        };
        let replay = async |request: HttpRequest| {
            if request.query_string() == "force=false&replay_number=1" {
                return HttpResponse::Accepted().json(json!({}));
            }
            let message = "delivery 0 was replayed since you read it: read it again";
            HttpResponse::Conflict().json(json!({ "message": message }))
        };
        app.route("/v1/deliveries/{id}", web::get().to(show))
            .route("/v1/deliveries/{id}/retry", web::post().to(retry))
            .route("/v1/deliveries/{id}/replay", web::post().to(replay));
    }

    async fn post(action: &str, fields: &[(&str, &str)]) -> (StatusCode, String) {
        let path = format!("/deliveries/rma-engine/{}/{action}", Uuid::nil());
        let app = app_with_services(services);
        let (status, _, page) = fixtures::post(app, routes, &path, fields).await;
        (status, page)
    }

    #[actix_web::test]
    async fn a_page_from_before_the_delivery_does_not_send_the_message_again() {
        let (status, page) = post("retry", &[]).await;
        assert_eq!(status, StatusCode::CONFLICT, "{page}");
        assert!(page.contains("Nothing was sent. Delivery 0 cannot be sent now"), "{page}");
        // The page shows what happened, and what its button does now.
        for part in
            ["Delivered at the first attempt after a replay", "/replay\" method", ">Replay<"]
        {
            assert!(page.contains(part), "{part} in {page}");
        }
    }

    #[actix_web::test]
    async fn a_page_from_before_another_replay_does_not_send_the_message_again() {
        let (status, page) = post("replay", &[("replay_number", "0")]).await;
        assert_eq!(status, StatusCode::CONFLICT, "{page}");
        assert!(page.contains("Nothing was sent. Delivery 0 was replayed since"), "{page}");
        assert!(page.contains(r#"name="replay_number" value="1""#), "{page}");
        let (status, page) = post("replay", &[("replay_number", "1")]).await;
        assert_eq!(status, StatusCode::SEE_OTHER, "{page}");
        assert_eq!(post("replay", &[]).await.0, StatusCode::BAD_REQUEST);
    }
}
