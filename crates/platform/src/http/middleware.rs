//! What happens around every request: an id, a span, a deadline, a measurement, and an error
//! body where there would be none.

use std::sync::OnceLock;

use actix_web::{
    Error, HttpResponse, ResponseError,
    body::{BoxBody, MessageBody},
    dev::{ServiceRequest, ServiceResponse},
    http::header::{HeaderName, HeaderValue},
    middleware::Next,
    web,
};
use opentelemetry::{KeyValue, metrics::Histogram};
use tokio::time::Instant;
use tracing::Instrument;
use uuid::Uuid;

use super::Settings;
use crate::{Failure, Kind, Problem, telemetry};

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

tokio::task_local! {
    static CURRENT: String;
}

/// The id of the request being handled.
pub fn request_id() -> Option<String> {
    CURRENT.try_with(Clone::clone).ok()
}

#[derive(Debug, thiserror::Error)]
#[error("the request took too long")]
struct Overdue;

impl Failure for Overdue {
    fn kind(&self) -> Kind {
        Kind::Unavailable
    }
}

/// Wraps every request of every service.
pub(super) async fn observe(
    request: ServiceRequest,
    next: Next<impl MessageBody + 'static>,
) -> Result<ServiceResponse<BoxBody>, Error> {
    let id = incoming_id(&request).unwrap_or_else(|| Uuid::now_v7().to_string());
    let method = request.method().to_string();
    let span = tracing::info_span!(
        "request",
        otel.kind = "server",
        http.request.method = method,
        request.id = id,
        http.route = tracing::field::Empty,
        http.response.status_code = tracing::field::Empty,
    );
    let parent = request.headers().get("traceparent").and_then(|value| value.to_str().ok());
    telemetry::adopt(&span, parent);
    let started = Instant::now();
    let answer = CURRENT.scope(id.clone(), answer(request, next).instrument(span.clone())).await;
    let mut answer = answer?;
    if let Ok(value) = HeaderValue::from_str(&id) {
        answer.headers_mut().insert(REQUEST_ID, value);
    }
    let route = answer.request().match_pattern().unwrap_or_else(|| "unmatched".to_owned());
    let status = answer.status().as_u16();
    span.record("http.route", &route).record("http.response.status_code", status);
    let elapsed = started.elapsed();
    durations().record(
        elapsed.as_secs_f64(),
        &[
            KeyValue::new("method", method.clone()),
            KeyValue::new("route", route.clone()),
            KeyValue::new("status", i64::from(status)),
        ],
    );
    let _in_span = span.enter();
    if status >= 400 {
        tracing::info!(
            status,
            elapsed_ms = elapsed.as_millis(),
            "{method} {route} answered {status}"
        );
    } else {
        tracing::debug!(
            status,
            elapsed_ms = elapsed.as_millis(),
            "{method} {route} answered {status}"
        );
    }
    Ok(answer)
}

/// The handler's answer; an error is turned into one while the request id is at hand.
async fn answer(
    request: ServiceRequest,
    next: Next<impl MessageBody + 'static>,
) -> Result<ServiceResponse<BoxBody>, Error> {
    let settings = request.app_data::<web::Data<Settings>>().cloned();
    let patience =
        settings.map_or(std::time::Duration::from_secs(30), |settings| settings.request_timeout);
    let same = request.request().clone();
    let refused = |response: HttpResponse| Ok(ServiceResponse::new(same.clone(), response));
    match tokio::time::timeout(patience, next.call(request)).await {
        Ok(Ok(answer)) => Ok(answer.map_into_boxed_body()),
        Ok(Err(error)) => refused(error.error_response()),
        Err(_elapsed) => refused(Problem::from(Overdue).error_response()),
    }
}

/// The caller's own request id, if it is one that can be logged as it is.
fn incoming_id(request: &ServiceRequest) -> Option<String> {
    let id = request.headers().get(REQUEST_ID)?.to_str().ok()?;
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | ':');
    ((1..=64).contains(&id.len()) && id.chars().all(plain)).then(|| id.to_owned())
}

fn durations() -> &'static Histogram<f64> {
    static DURATIONS: OnceLock<Histogram<f64>> = OnceLock::new();
    DURATIONS.get_or_init(|| {
        telemetry::meter()
            .f64_histogram("http_request_duration_seconds")
            .with_description("How long requests took, by route and status")
            .with_boundaries(vec![
                0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0,
            ])
            .build()
    })
}
