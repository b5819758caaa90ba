//! Calls to the services with a token: the signed-in person's, or that of the process.
//!
//! Every call has a deadline of two seconds. A page makes its calls in parallel and shows the parts
//! whose calls succeed.

mod part;
mod raw;

pub use part::Part;
pub use raw::{RawRequest, RawResponse};

use std::{collections::BTreeMap, fmt, net::IpAddr, time::Duration};

use chrono::{DateTime, Utc};
use reqwest::{Method, StatusCode, header};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use url::Url;

const DEADLINE: Duration = Duration::from_secs(2);

/// The base URLs of all services.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServiceUrls {
    pub auth: Url,
    pub orders: Url,
    pub returns: Url,
    pub exchange: Url,
    pub warehouse: Url,
}

impl From<ServiceUrls> for BTreeMap<Service, Url> {
    fn from(urls: ServiceUrls) -> Self {
        Self::from([
            (Service::Auth, urls.auth),
            (Service::OrderIntake, urls.orders),
            (Service::RmaEngine, urls.returns),
            (Service::Exchange, urls.exchange),
            (Service::WarehouseNotifier, urls.warehouse),
        ])
    }
}

/// A service that pages call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Service {
    Auth,
    OrderIntake,
    RmaEngine,
    Exchange,
    WarehouseNotifier,
}

impl Service {
    pub const ALL: [Self; 5] =
        [Self::Auth, Self::OrderIntake, Self::RmaEngine, Self::Exchange, Self::WarehouseNotifier];
    /// The services that deliver messages to merchants.
    pub const DELIVERING: [Self; 3] = [Self::RmaEngine, Self::Exchange, Self::WarehouseNotifier];

    pub fn name(self) -> &'static str {
        match self {
            Self::Auth => "auth",
            Self::OrderIntake => "order-intake",
            Self::RmaEngine => "rma-engine",
            Self::Exchange => "exchange",
            Self::WarehouseNotifier => "warehouse-notifier",
        }
    }

    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|service| service.name() == name)
    }
}

impl fmt::Display for Service {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The error body of the services.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
pub struct ErrorBody {
    #[serde(default)]
    pub message: String,
    /// The reason in a form for programs. Few errors have one.
    #[serde(default)]
    pub code: String,
    #[serde(default)]
    pub errors: Vec<FieldError>,
    /// The other fields, which some errors have.
    #[serde(flatten)]
    pub rest: serde_json::Map<String, serde_json::Value>,
}

/// One error of a 422 response.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct FieldError {
    pub field: String,
    #[serde(default)]
    pub code: String,
    #[serde(default)]
    pub detail: Option<String>,
}

impl ErrorBody {
    /// The text of the error at `path`, for example `$.url`.
    pub fn field(&self, path: &str) -> Option<String> {
        let error = self.errors.iter().find(|error| error.field == path)?;
        Some(match (&error.detail, error.code.as_str()) {
            (Some(detail), _) => detail.clone(),
            (None, "missing_field") => "is required".to_owned(),
            (None, code) => code.to_owned(),
        })
    }
}

/// The reason why a call failed.
#[derive(Debug, Clone, thiserror::Error)]
pub enum ApiError {
    #[error("{service} is not available now")]
    Unavailable { service: Service },
    #[error("the session ended")]
    Unauthenticated { service: Service },
    #[error("{}", .0.message)]
    Denied(ErrorBody),
    #[error("not found")]
    NotFound,
    #[error("{}", .0.message)]
    Conflict(ErrorBody),
    #[error("{}", .0.message)]
    Invalid(ErrorBody),
    #[error("too many requests, try again later")]
    TooManyRequests { service: Service, retry_after: Option<Duration> },
}

/// The state of a service: whether it can work, and the error of each part or "ok".
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
pub struct Readiness {
    pub ready: bool,
    #[serde(default)]
    pub parts: BTreeMap<String, String>,
    #[serde(default)]
    pub started_at: Option<DateTime<Utc>>,
}

/// The services, as one process calls them.
#[derive(Debug, Clone)]
pub struct Api {
    client: reqwest::Client,
    urls: BTreeMap<Service, Url>,
}

impl Api {
    /// A service without a URL counts as unavailable.
    pub fn new(urls: impl Into<BTreeMap<Service, Url>>) -> anyhow::Result<Self> {
        Ok(Self { client: platform::http_client(DEADLINE)?, urls: urls.into() })
    }

    /// Calls on behalf of a browser at `address`; with a token, on behalf of the person.
    pub fn caller(&self, address: IpAddr, token: Option<String>) -> Caller {
        Caller { api: self.clone(), address, token, headers: Vec::new(), deadline: DEADLINE }
    }
}

/// Calls on behalf of one browser.
#[derive(Debug, Clone)]
pub struct Caller {
    api: Api,
    address: IpAddr,
    token: Option<String>,
    headers: Vec<(&'static str, String)>,
    deadline: Duration,
}

/// Query parameters. Empty values are left out.
pub type Query<'a> = &'a [(&'a str, &'a str)];

impl Caller {
    /// Calls that may take longer, because the service itself waits for something.
    #[must_use]
    pub fn with_deadline(self, deadline: Duration) -> Self {
        Self { deadline, ..self }
    }

    /// Calls that have one more header, for example `Idempotency-Key`.
    #[must_use]
    pub fn with_header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    pub async fn get<T: DeserializeOwned>(
        &self,
        service: Service,
        path: &str,
        query: Query<'_>,
    ) -> Result<T, ApiError> {
        let query: Vec<_> = query.iter().filter(|(_, value)| !value.is_empty()).collect();
        self.send(service, self.request(service, Method::GET, path, None)?.query(&query)).await
    }

    /// A `GET` request for a resource of one merchant, which operators name in a header.
    pub async fn get_for<T: DeserializeOwned>(
        &self,
        service: Service,
        merchant: &str,
        path: &str,
        query: Query<'_>,
    ) -> Result<T, ApiError> {
        let query: Vec<_> = query.iter().filter(|(_, value)| !value.is_empty()).collect();
        let request = self.request(service, Method::GET, path, Some(merchant))?.query(&query);
        self.send(service, request).await
    }

    /// A request that changes something.
    pub async fn send_json<T: DeserializeOwned>(
        &self,
        service: Service,
        method: Method,
        merchant: Option<&str>,
        path: &str,
        body: &impl Serialize,
    ) -> Result<T, ApiError> {
        self.send(service, self.request(service, method, path, merchant)?.json(body)).await
    }

    /// Whether the service is ready, with its parts. A service that does not respond gives `None`.
    pub async fn readiness(&self, service: Service) -> Option<Readiness> {
        let request = self.request(service, Method::GET, "readyz", None).ok()?;
        let body = request.send().await.ok()?.bytes().await.ok()?;
        serde_json::from_slice(&body).ok()
    }

    fn request(
        &self,
        service: Service,
        method: Method,
        path: &str,
        merchant: Option<&str>,
    ) -> Result<reqwest::RequestBuilder, ApiError> {
        let base = self.api.urls.get(&service).ok_or(ApiError::Unavailable { service })?;
        let base = base.as_str().trim_end_matches('/');
        let url = format!("{base}/{}", path.trim_start_matches('/'));
        let mut request = self
            .api
            .client
            .request(method, url)
            .timeout(self.deadline)
            .header("x-forwarded-for", self.address.to_string());
        if let Some(token) = &self.token {
            request = request.bearer_auth(token);
        }
        if let Some(merchant) = merchant {
            request = request.header("x-service-id", merchant);
        }
        for (name, value) in &self.headers {
            request = request.header(*name, value);
        }
        Ok(request)
    }

    async fn send<T: DeserializeOwned>(
        &self,
        service: Service,
        request: reqwest::RequestBuilder,
    ) -> Result<T, ApiError> {
        let unavailable = |error: reqwest::Error| {
            tracing::warn!(upstream = %service, error = %error.without_url(), "a call to {service} failed");
            ApiError::Unavailable { service }
        };
        let response = request.send().await.map_err(unavailable)?;
        let status = response.status();
        let is_json = response
            .headers()
            .get(header::CONTENT_TYPE)
            .is_some_and(|value| value.as_bytes().starts_with(b"application/json"));
        let retry_after = retry_after(response.headers());
        let body = response.bytes().await.map_err(unavailable)?;
        if status.is_success() {
            let text: &[u8] = if body.is_empty() { b"null" } else { &body };
            return serde_json::from_slice(text).map_err(|error| {
                tracing::error!(upstream = %service, %error, "{service} sent a response that cannot be read");
                ApiError::Unavailable { service }
            });
        }
        let problem = || {
            if is_json {
                serde_json::from_slice(&body).unwrap_or_default()
            } else {
                ErrorBody::default()
            }
        };
        Err(match status {
            StatusCode::UNAUTHORIZED => ApiError::Unauthenticated { service },
            StatusCode::FORBIDDEN => ApiError::Denied(problem()),
            StatusCode::NOT_FOUND => ApiError::NotFound,
            StatusCode::CONFLICT | StatusCode::PRECONDITION_FAILED => ApiError::Conflict(problem()),
            StatusCode::TOO_MANY_REQUESTS => ApiError::TooManyRequests { service, retry_after },
            status if status.is_client_error() => ApiError::Invalid(problem()),
            _ => ApiError::Unavailable { service },
        })
    }
}

/// The waiting time of a `Retry-After` header in seconds, the form that the services send.
fn retry_after(headers: &header::HeaderMap) -> Option<Duration> {
    let seconds = headers.get(header::RETRY_AFTER)?.to_str().ok()?.parse().ok()?;
    Some(Duration::from_secs(seconds))
}

/// The segments of a path, each percent-encoded.
#[macro_export]
macro_rules! path {
    ($($segment:expr),+ $(,)?) => {{
        let mut url = $crate::api::path_builder();
        $( $crate::api::push(&mut url, $segment.as_ref()); )+
        url
    }};
}

#[doc(hidden)]
pub fn path_builder() -> String {
    String::new()
}

#[doc(hidden)]
pub fn push(path: &mut String, segment: &str) {
    if !path.is_empty() {
        path.push('/');
    }
    for byte in segment.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            path.push(char::from(byte));
        } else {
            path.push_str(&format!("%{byte:02X}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_are_encoded() {
        assert_eq!(path!("v1", "orders", "A/B ä?"), "v1/orders/A%2FB%20%C3%A4%3F");
    }

    #[test]
    fn an_error_is_found_by_its_path() {
        let text =
            r#"{"message": "m", "errors": [{"field": "$.url", "code": "invalid", "detail": "d"}]}"#;
        let body: ErrorBody = serde_json::from_str(text).unwrap();
        assert_eq!(body.field("$.url").as_deref(), Some("d"));
        assert_eq!(body.field("$.other"), None);
    }
}
