//! The middleware of every request: rate limit, token check, request id, span, timeout, metrics.

use std::{
    sync::{Arc, OnceLock},
    time::Duration,
};

use actix_web::{
    Error, HttpMessage as _, HttpRequest, ResponseError,
    body::{BoxBody, MessageBody},
    dev::{ServiceRequest, ServiceResponse},
    error::InternalError,
    http::{
        Method,
        header::{AUTHORIZATION, HeaderMap, HeaderName, HeaderValue, X_CONTENT_TYPE_OPTIONS},
    },
    middleware::Next,
    web,
};
use domain::access::MerchantId;
use opentelemetry::{KeyValue, metrics::Histogram};
use tokio::time::Instant;
use tracing::{Instrument, Span};
use tracing_opentelemetry::OpenTelemetrySpanExt as _;
use uuid::Uuid;

use super::{
    ClientIp, RequestMemory, Settings,
    connections::{ActiveRequest, Connection},
    operations::Operations,
    request_error::{BadQuery, NoSuchPath, RepeatedHeader, RequestTimeout},
};
use crate::{
    Problem,
    identity::Caller,
    limits::PerAddress,
    rejections::{self, Reason, Rejection},
    request_id::{request_id, with_request_id},
    telemetry,
};

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
/// Paths of probes and metrics do not count towards the rate limit.
const UNCOUNTED: [&str; 3] = ["/healthz", "/readyz", "/metrics"];
/// Headers with one value. Proxies and services would otherwise choose different ones.
const SINGLE_VALUED: [&str; 4] = ["Api-Version", "Content-Type", "Idempotency-Key", "X-Service-Id"];

/// Wraps every request of every service.
pub(super) async fn observe(
    mut request: ServiceRequest,
    next: Next<impl MessageBody + 'static>,
) -> Result<ServiceResponse<BoxBody>, Error> {
    let _active = request.conn_data().map(ActiveRequest::on);
    let id = incoming_id(&request).unwrap_or_else(|| Uuid::now_v7().to_string());
    let method = request.method().to_string();
    if request.method() == Method::HEAD {
        // Handlers respond as to GET. The server knows the method and sends no body.
        request.head_mut().method = Method::GET;
    }
    let span = tracing::info_span!(
        "request",
        otel.kind = "server",
        http.request.method = method,
        request.id = id,
        merchant = tracing::field::Empty,
    );
    let parent = request.headers().get("traceparent").and_then(|value| value.to_str().ok());
    telemetry::set_parent(&span, parent);
    // The request is not available after a timeout.
    let route = request.match_pattern().unwrap_or_else(|| "unmatched".to_owned());
    let started = Instant::now();
    let responding = respond(request, &route, next).instrument(span.clone());
    let mut response = with_request_id(id.clone(), responding).await;
    if let Ok(response) = &mut response {
        record_merchant(&span, response.request());
        set_headers(&id, response.headers_mut());
        span.in_scope(|| report_rejection(response, &method, &route));
    }
    let status = match &response {
        Ok(response) => response.status().as_u16(),
        Err(error) => error.as_response_error().status_code().as_u16(),
    };
    // For the trace only: a log line has its own fields.
    span.set_attribute("http.route", route.clone());
    span.set_attribute("http.response.status_code", i64::from(status));
    record(&span, method, route, status, started.elapsed());
    response
}

/// Records the merchant in the path, for requests without a token, such as those of shoppers. That of a token was
/// recorded when it was verified.
fn record_merchant(span: &Span, request: &HttpRequest) {
    let merchant = request.match_info().get("merchant").map(str::parse::<MerchantId>);
    if let Some(Ok(merchant)) = merchant
        && !request.extensions().contains::<Caller>()
    {
        span.record("merchant", merchant.as_str());
    }
}

fn record(span: &Span, method: String, route: String, status: u16, elapsed: Duration) {
    // The log writes u128 as text.
    let elapsed_ms = u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX);
    if status >= 400 {
        span.in_scope(|| {
            tracing::info!(status, elapsed_ms, "{method} {route} responded with {status}")
        });
    } else if tracing::enabled!(tracing::Level::DEBUG) {
        span.in_scope(|| {
            tracing::debug!(status, elapsed_ms, "{method} {route} responded with {status}")
        });
    }
    let labels = [
        KeyValue::new("method", label(&method)),
        KeyValue::new("route", route),
        KeyValue::new("status", i64::from(status)),
    ];
    durations().record(elapsed.as_secs_f64(), &labels);
}

/// A client can invent methods; each would be one more time series.
fn label(method: &str) -> &'static str {
    const KNOWN: [&str; 9] =
        ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "CONNECT", "TRACE"];
    KNOWN.into_iter().find(|known| *known == method).unwrap_or("other")
}

fn report_rejection(response: &ServiceResponse<BoxBody>, method: &str, route: &str) {
    let Some(mut rejection) = Rejection::of(response) else { return };
    let request = response.request();
    if let Some(caller) = request.extensions().get::<Caller>() {
        rejection = rejection.with_client(caller.actor(), caller.merchant_scope());
    }
    rejection.log_and_count(ClientIp::of(request).0, label(method), route);
}

/// Sets the headers that every response has.
fn set_headers(id: &str, headers: &mut HeaderMap) {
    if let Ok(value) = HeaderValue::from_str(id) {
        headers.insert(REQUEST_ID, value);
    }
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
}

/// The response of the handler, unless the request is rejected or takes too long.
async fn respond(
    request: ServiceRequest,
    route: &str,
    next: Next<impl MessageBody + 'static>,
) -> Result<ServiceResponse<BoxBody>, Error> {
    let settings = request.app_data::<web::Data<Settings>>().cloned();
    let timeout = settings.map_or(Duration::from_secs(30), |settings| settings.request_timeout);
    let is_probe = UNCOUNTED.contains(&request.path());
    let work = async {
        match admit(request.request(), route).await {
            Ok(()) => next.call(request).await.map(ServiceResponse::map_into_boxed_body),
            Err(problem) => Ok(request.into_response(problem.error_response())),
        }
    };
    match tokio::time::timeout(timeout, work).await {
        Ok(response) if is_probe => response,
        Ok(response) => response.map(RequestMemory::reserve_for_response),
        // The response is created here, where the request id is known.
        Err(_elapsed) => {
            let mut response = Problem::from(RequestTimeout).error_response();
            set_headers(&request_id().unwrap_or_default(), response.headers_mut());
            Err(InternalError::from_response(RequestTimeout, response).into())
        }
    }
}

/// Checks a request before its body is read and before a handler sees it. The token is checked before
/// all other headers.
async fn admit(request: &HttpRequest, route: &str) -> Result<(), Problem> {
    let limits = request.app_data::<web::Data<PerAddress>>();
    if let Some(limits) = limits.filter(|_| !UNCOUNTED.contains(&request.path())) {
        limits
            .count(ClientIp::of(request).0)
            .inspect_err(|_| rejections::record(request, Reason::RateLimited, None, None))?;
    }
    if let Some(connection) = request.conn_data::<Arc<Connection>>() {
        connection.check_share()?;
    }
    check_url(request)?;
    if request.headers().get_all(AUTHORIZATION).count() > 1 {
        return Err(RepeatedHeader("Authorization").into());
    }
    let operations = request.app_data::<web::Data<Operations>>();
    if operations.is_some_and(|operations| operations.need_token(route, request.method())) {
        Caller::authenticate(request).await?;
    }
    for name in SINGLE_VALUED {
        let mut values = request.headers().get_all(name);
        if let Some(first) = values.next()
            && values.any(|value| value != first)
        {
            return Err(RepeatedHeader(name).into());
        }
    }
    Ok(())
}

/// App data of a service that renders pages: URLs with a NUL character reach its handlers, so that the response is a
/// page. Such a service has no database.
#[derive(Clone, Copy, Debug)]
pub struct RendersPages;

/// Rejects URLs with a NUL character. PostgreSQL text cannot contain NUL, so such a URL names nothing.
fn check_url(request: &HttpRequest) -> Result<(), Problem> {
    if request.app_data::<RendersPages>().is_some() {
        return Ok(());
    }
    let has_nul = |text: &str| text.contains("%00");
    if has_nul(request.uri().path()) {
        return Err(NoSuchPath.into());
    }
    if request.uri().query().is_some_and(has_nul) {
        return Err(BadQuery("a value contains NUL".to_owned()).into());
    }
    Ok(())
}

/// The request id of the client, if it can be logged as it is.
fn incoming_id(request: &ServiceRequest) -> Option<String> {
    let id = request.headers().get(REQUEST_ID)?.to_str().ok()?;
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | ':');
    ((1..=64).contains(&id.len()) && id.chars().all(is_plain)).then(|| id.to_owned())
}

fn durations() -> &'static Histogram<f64> {
    static DURATIONS: OnceLock<Histogram<f64>> = OnceLock::new();
    DURATIONS.get_or_init(|| {
        telemetry::meter()
            .f64_histogram("http_request_duration_seconds")
            .with_description("Duration of requests by method, route and status")
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
    fn an_invented_method_gets_no_label_of_its_own() {
        assert_eq!(["GET", "PATCH", "get", "BREW"].map(label), ["GET", "PATCH", "other", "other"]);
    }
}
