//! The middleware of every request: rate limit, request id, span, timeout, metrics, and an error body
//! for responses without one.

use std::{sync::OnceLock, time::Duration};

use actix_web::{
    Error, HttpRequest, ResponseError,
    body::{BoxBody, MessageBody},
    dev::{ServiceRequest, ServiceResponse},
    error::InternalError,
    http::header::{HeaderMap, HeaderName, HeaderValue},
    middleware::Next,
    web,
};
use opentelemetry::{KeyValue, metrics::Histogram};
use tokio::time::Instant;
use tracing::{Instrument, Span};
use tracing_opentelemetry::OpenTelemetrySpanExt as _;
use uuid::Uuid;

use super::{
    ClientIp, RequestMemory, Settings,
    connections::ActiveRequest,
    server::{BadQuery, NoSuchPath},
};
use crate::{ErrorKind, Failure, Problem, limits::PerAddress, telemetry};

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
/// Paths of probes and metrics do not count towards the rate limit.
const UNCOUNTED: [&str; 3] = ["/healthz", "/readyz", "/metrics"];

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
    fn kind(&self) -> ErrorKind {
        ErrorKind::Unavailable
    }
}

/// Wraps every request of every service.
pub(super) async fn observe(
    request: ServiceRequest,
    next: Next<impl MessageBody + 'static>,
) -> Result<ServiceResponse<BoxBody>, Error> {
    let _under_way = request.conn_data().map(ActiveRequest::on);
    let id = incoming_id(&request).unwrap_or_else(|| Uuid::now_v7().to_string());
    let method = request.method().to_string();
    let span = tracing::info_span!(
        "request",
        otel.kind = "server",
        http.request.method = method,
        request.id = id,
    );
    let parent = request.headers().get("traceparent").and_then(|value| value.to_str().ok());
    telemetry::adopt(&span, parent);
    // Before the request is given away: one that takes too long does not come back.
    let route = request.match_pattern().unwrap_or_else(|| "unmatched".to_owned());
    let started = Instant::now();
    let mut answer =
        CURRENT.scope(id.clone(), answer(request, next).instrument(span.clone())).await;
    if let Ok(answer) = &mut answer {
        carry(&id, answer.headers_mut());
    }
    let status = match &answer {
        Ok(answer) => answer.status().as_u16(),
        Err(error) => error.as_response_error().status_code().as_u16(),
    };
    // For the trace only: a line in the log says them itself.
    span.set_attribute("http.route", route.clone());
    span.set_attribute("http.response.status_code", i64::from(status));
    record(&span, method, route, status, started.elapsed());
    answer
}

fn record(span: &Span, method: String, route: String, status: u16, elapsed: Duration) {
    let elapsed_ms = elapsed.as_millis();
    if status >= 400 {
        span.in_scope(|| tracing::info!(status, elapsed_ms, "{method} {route} answered {status}"));
    } else if tracing::enabled!(tracing::Level::DEBUG) {
        span.in_scope(|| tracing::debug!(status, elapsed_ms, "{method} {route} answered {status}"));
    }
    let labels = [
        KeyValue::new("method", label(&method)),
        KeyValue::new("route", route),
        KeyValue::new("status", i64::from(status)),
    ];
    durations().record(elapsed.as_secs_f64(), &labels);
}

/// Callers can make methods up, and each would be a metric of its own.
fn label(method: &str) -> &'static str {
    const KNOWN: [&str; 9] =
        ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "CONNECT", "TRACE"];
    KNOWN.into_iter().find(|known| *known == method).unwrap_or("other")
}

fn carry(id: &str, headers: &mut HeaderMap) {
    if let Ok(value) = HeaderValue::from_str(id) {
        headers.insert(REQUEST_ID, value);
    }
}

/// The handler's answer, unless the request does not come in or takes too long.
async fn answer(
    request: ServiceRequest,
    next: Next<impl MessageBody + 'static>,
) -> Result<ServiceResponse<BoxBody>, Error> {
    if let Err(refused) = admit(request.request()) {
        return Ok(request.into_response(refused.error_response()));
    }
    let settings = request.app_data::<web::Data<Settings>>().cloned();
    let timeout = settings.map_or(Duration::from_secs(30), |settings| settings.request_timeout);
    let is_probe = UNCOUNTED.contains(&request.path());
    match tokio::time::timeout(timeout, next.call(request)).await {
        Ok(answer) if is_probe => Ok(answer?.map_into_boxed_body()),
        Ok(answer) => Ok(RequestMemory::keep(answer?.map_into_boxed_body())),
        // The response is created here, where the request id is known.
        Err(_elapsed) => {
            let mut answer = Problem::from(Overdue).error_response();
            carry(&request_id().unwrap_or_default(), answer.headers_mut());
            Err(InternalError::from_response(Overdue, answer).into())
        }
    }
}

/// Rejects requests over the rate limit of their address, and URLs with a NUL character, before the body
/// is read. PostgreSQL text cannot contain NUL, so such a URL names nothing.
fn admit(request: &HttpRequest) -> Result<(), Problem> {
    let door = request.app_data::<web::Data<PerAddress>>();
    if let Some(door) = door.filter(|_| !UNCOUNTED.contains(&request.path())) {
        door.count(ClientIp::of(request).0)?;
    }
    let has_nul = |text: &str| text.contains("%00");
    if has_nul(request.uri().path()) {
        return Err(NoSuchPath.into());
    }
    if request.uri().query().is_some_and(has_nul) {
        return Err(BadQuery("NUL is in no value".to_owned()).into());
    }
    Ok(())
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

#[cfg(test)]
mod tests {
    use super::label;

    #[test]
    fn a_method_that_a_caller_made_up_is_no_metric_of_its_own() {
        assert_eq!(["GET", "PATCH", "get", "BREW"].map(label), ["GET", "PATCH", "other", "other"]);
    }
}
