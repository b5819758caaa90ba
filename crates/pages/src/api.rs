//! Calls to the services with a token: the signed-in person's, or that of the process.
//!
//! A call has a deadline of two seconds, unless the page sets a longer one because the service itself waits. A
//! page makes its calls in parallel and shows the parts whose calls succeed.

mod error;
mod part;
mod raw;
mod service;

pub use error::{ApiError, ErrorBody, FieldError};
pub use part::Part;
pub use raw::{RawRequest, RawResponse};
pub use service::{Service, ServiceUrls};

use std::{collections::BTreeMap, net::IpAddr, time::Duration};

use chrono::{DateTime, Utc};
use reqwest::Method;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use url::Url;

const DEADLINE: Duration = Duration::from_secs(2);
/// The deadline of a whole file.
const DOWNLOAD_DEADLINE: Duration = Duration::from_secs(3600);

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

    /// The response to a `GET` request for a file, whose body arrives in parts. Operators name the merchant in a header.
    pub async fn download(
        &self,
        service: Service,
        merchant: Option<&str>,
        path: &str,
        query: Query<'_>,
    ) -> Result<reqwest::Response, ApiError> {
        let query: Vec<_> = query.iter().filter(|(_, value)| !value.is_empty()).collect();
        let request = self.request(service, Method::GET, path, merchant)?.query(&query);
        successful(service, request.timeout(DOWNLOAD_DEADLINE)).await
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
        let response = successful(service, request).await?;
        let body = response.bytes().await.map_err(|error| unavailable(service, error))?;
        let text: &[u8] = if body.is_empty() { b"null" } else { &body };
        serde_json::from_slice(text).map_err(|error| {
            tracing::error!(upstream = %service, %error, "{service} sent a response that cannot be read");
            ApiError::Unavailable { service }
        })
    }
}

/// The response to a request, unless it is an error.
async fn successful(
    service: Service,
    request: reqwest::RequestBuilder,
) -> Result<reqwest::Response, ApiError> {
    let response = request.send().await.map_err(|error| unavailable(service, error))?;
    let status = response.status();
    if status.is_success() {
        return Ok(response);
    }
    let headers = response.headers().clone();
    let body = response.bytes().await.map_err(|error| unavailable(service, error))?;
    Err(ApiError::new(service, status, &headers, &body))
}

fn unavailable(service: Service, error: reqwest::Error) -> ApiError {
    tracing::warn!(upstream = %service, error = %error.without_url(), "a call to {service} failed");
    ApiError::Unavailable { service }
}
