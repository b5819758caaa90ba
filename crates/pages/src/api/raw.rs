//! Requests of the API reference: an operation as a person fills it in, and the response as it came.

use std::time::{Duration, Instant};

use reqwest::Method;

use super::{ApiError, Caller, Service};

/// Some operations send samples to merchants and wait for their responses.
const DEADLINE: Duration = Duration::from_secs(20);
/// Longer responses are truncated.
const MAX_BODY_BYTES: usize = 256 * 1024;

/// A request to one of the documented operations.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RawRequest {
    pub method: Method,
    /// Path and query, percent-encoded.
    pub target: String,
    pub headers: Vec<(String, String)>,
    pub body: Option<String>,
    /// Whether the operation needs a token. Public operations get none.
    pub needs_token: bool,
}

/// A response with any status.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RawResponse {
    pub status: u16,
    /// The name of the status, for example `Not Found`.
    pub reason: &'static str,
    pub headers: Vec<(String, String)>,
    pub body: String,
    pub is_truncated: bool,
    pub duration: Duration,
}

impl Caller {
    /// Sends a request as it is and returns every response, also those with an error status.
    pub async fn send_raw(
        &self,
        service: Service,
        raw: &RawRequest,
    ) -> Result<RawResponse, ApiError> {
        let token = self.token.clone().filter(|_| raw.needs_token);
        let caller = Self { token, deadline: DEADLINE, ..self.clone() };
        let mut request = caller.request(service, raw.method.clone(), &raw.target, None)?;
        for (name, value) in &raw.headers {
            request = request.header(name, value);
        }
        if let Some(body) = &raw.body {
            request = request.body(body.clone());
        }
        let started = Instant::now();
        read(request, started).await.map_err(|error| {
            tracing::warn!(upstream = %service, error = %error.without_url(), "a call to {service} failed");
            ApiError::Unavailable { service }
        })
    }
}

async fn read(
    request: reqwest::RequestBuilder,
    started: Instant,
) -> Result<RawResponse, reqwest::Error> {
    let mut response = request.send().await?;
    let status = response.status();
    let text = |value: &reqwest::header::HeaderValue| {
        String::from_utf8_lossy(value.as_bytes()).into_owned()
    };
    let headers =
        response.headers().iter().map(|(name, value)| (name.to_string(), text(value))).collect();
    let mut body = Vec::new();
    while body.len() <= MAX_BODY_BYTES
        && let Some(chunk) = response.chunk().await?
    {
        body.extend_from_slice(&chunk);
    }
    let is_truncated = body.len() > MAX_BODY_BYTES;
    body.truncate(MAX_BODY_BYTES);
    Ok(RawResponse {
        status: status.as_u16(),
        reason: status.canonical_reason().unwrap_or_default(),
        headers,
        body: String::from_utf8_lossy(&body).into_owned(),
        is_truncated,
        duration: started.elapsed(),
    })
}
