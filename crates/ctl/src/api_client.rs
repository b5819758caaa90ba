//! A client for the HTTP APIs of the services.

use std::time::Duration;

use anyhow::{Context as _, bail};
use domain::access::{MerchantId, Scope, Scopes};
use platform::http_client;
use reqwest::{Client, Method, RequestBuilder};
use secrecy::{ExposeSecret, SecretString};
use serde::Serialize;
use serde_json::{Value, json};
use url::Url;

use crate::api_error::ApiError;
use crate::oauth::{IssuedToken, TokenClient};
use crate::service_urls::{join, resolve};
use crate::settings::{Setting, Settings};
use crate::usage_error;

pub const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);
/// The page size limit of every list.
const MAX_PAGE_SIZE: usize = 200;
/// A list without query parameters.
pub(crate) const NO_QUERY: &[(&str, &str)] = &[];

/// One service, called with one access token.
#[derive(Clone)]
pub struct ApiClient {
    http: Client,
    base_url: Url,
    /// The name of the service, if it is known.
    service: Option<&'static str>,
    token: SecretString,
    /// The scopes of the token.
    scopes: Scopes,
    /// The client of the token, and another that can be used, for the error of a refused request.
    client: String,
    client_id: String,
    headers: Vec<(&'static str, String)>,
}

impl ApiClient {
    /// Requests a token and returns a client for the auth service.
    pub async fn log_in(tokens: &TokenClient, timeout: Duration) -> anyhow::Result<Self> {
        let http = http_client(timeout)?;
        let IssuedToken { access_token: token, response } = tokens.request(&http, None).await?;
        let scopes = response.get("scope").and_then(Value::as_str).unwrap_or_default();
        // Scopes that only a later version knows are ignored.
        let scopes = scopes.split(' ').filter_map(|scope| scope.parse().ok()).collect();
        let base_url = tokens.url.clone();
        let client_id = tokens.client_id.clone();
        let client = format!("client {client_id} was used");
        let headers = Vec::new();
        Ok(Self { http, base_url, service: None, token, scopes, client, client_id, headers })
    }

    /// Adds to the error of a refused request how another client can be used.
    #[must_use]
    pub(crate) fn with_alternative(self, alternative: &str) -> Self {
        Self { client: format!("{}; {alternative}", self.client), ..self }
    }

    /// The client of the token.
    pub(crate) fn client_id(&self) -> &str {
        &self.client_id
    }

    pub(crate) fn is_operator(&self) -> bool {
        self.scopes.contains(Scope::Operator)
    }

    /// Fails before the first request if the token lacks one of these scopes. An operator has all.
    pub(crate) fn require_scopes(&self, required: &[Scope]) -> anyhow::Result<()> {
        let is_missing = |scope: &&Scope| !self.scopes.contains(**scope);
        let missing: Vec<_> =
            required.iter().filter(is_missing).map(|scope| scope.as_str()).collect();
        if missing.is_empty() || self.is_operator() {
            return Ok(());
        }
        bail!(
            "the client lacks the scope {}: use a client that has it, or act as the operator with \
             --merchant",
            missing.join(" and the scope ")
        )
    }

    /// Adds a header to every request.
    #[must_use]
    pub fn with_header(&self, name: &'static str, value: &str) -> Self {
        let mut headers = self.headers.clone();
        headers.push((name, value.to_owned()));
        Self { headers, ..self.clone() }
    }

    /// Acts for a merchant, as an operator.
    #[must_use]
    pub fn for_merchant(&self, merchant: &MerchantId) -> Self {
        self.with_header("X-Service-Id", merchant.as_str())
    }

    /// The URL of the service.
    pub(crate) fn base_url(&self) -> &Url {
        &self.base_url
    }

    /// Calls another service with the same token.
    #[must_use]
    pub fn at(&self, base_url: Url) -> Self {
        Self { base_url, service: None, ..self.clone() }
    }

    /// Gives the service its name.
    #[must_use]
    pub(crate) fn named(self, service: &'static str) -> Self {
        Self { service: Some(service), ..self }
    }

    /// The name of the service, or else its URL.
    pub(crate) fn name(&self) -> &str {
        self.service.unwrap_or(self.base_url.as_str())
    }

    /// Calls another service with the same token: a secret from standard input can be read only
    /// once.
    pub fn at_service(&self, service: Setting, settings: &Settings) -> anyhow::Result<Self> {
        Ok(self.at(resolve(None, settings, service.without_flag())?))
    }

    /// Fails if the merchant does not exist. The auth service hides merchants from clients that may not
    /// read them, so the merchant counts as existing for these.
    pub(crate) async fn require_merchant(
        &self,
        merchant: Option<&MerchantId>,
    ) -> anyhow::Result<()> {
        let Some(merchant) = merchant else { return Ok(()) };
        let path = ["v1", "merchants", merchant.as_str()];
        let Err(error) = self.get(&path).await else { return Ok(()) };
        let can_read = self.list(&["v1", "merchants"], "merchants", NO_QUERY, 1).await.is_ok();
        if can_read { Err(error) } else { Ok(()) }
    }

    pub async fn get(&self, path: &[&str]) -> anyhow::Result<Value> {
        self.send(self.request(Method::GET, path)?).await
    }

    /// Sends a GET request with query parameters.
    pub async fn search(
        &self,
        path: &[&str],
        query: &(impl Serialize + ?Sized),
    ) -> anyhow::Result<Value> {
        self.send(self.request(Method::GET, path)?.query(query)).await
    }

    pub async fn post(&self, path: &[&str], body: &Value) -> anyhow::Result<Value> {
        self.send(self.request(Method::POST, path)?.json(body)).await
    }

    /// Sends a POST request without a body.
    pub async fn trigger(&self, path: &[&str], query: &[(&str, &str)]) -> anyhow::Result<Value> {
        self.send(self.request(Method::POST, path)?.query(query)).await
    }

    pub async fn put(&self, path: &[&str], body: &Value) -> anyhow::Result<Value> {
        self.send(self.request(Method::PUT, path)?.json(body)).await
    }

    pub async fn patch(&self, path: &[&str], body: &Value) -> anyhow::Result<Value> {
        self.send(self.request(Method::PATCH, path)?.json(body)).await
    }

    pub(crate) async fn delete(&self, path: &[&str]) -> anyhow::Result<Value> {
        self.send(self.request(Method::DELETE, path)?).await
    }

    /// Deletes the resources that a query selects.
    pub(crate) async fn delete_matching(
        &self,
        path: &[&str],
        query: &[(&str, &str)],
    ) -> anyhow::Result<Value> {
        self.send(self.request(Method::DELETE, path)?.query(query)).await
    }

    /// Reads the list `items` page by page, up to `limit` items, and returns it as one page, with
    /// `has_more` if there are more.
    pub(crate) async fn list(
        &self,
        path: &[&str],
        items: &str,
        query: &(impl Serialize + ?Sized),
        limit: usize,
    ) -> anyhow::Result<Value> {
        Ok(self.list_after(path, items, query, limit, None).await?.0)
    }

    /// As [`ApiClient::list`], from a cursor on. Also returns the cursor with which a later request continues: `next`, or
    /// `resume` of the last page.
    pub(crate) async fn list_after(
        &self,
        path: &[&str],
        items: &str,
        query: &(impl Serialize + ?Sized),
        limit: usize,
        mut next: Option<String>,
    ) -> anyhow::Result<(Value, Option<String>)> {
        let mut all = Vec::new();
        loop {
            let page_size = (limit - all.len()).min(MAX_PAGE_SIZE).to_string();
            let mut position = vec![("limit", page_size.as_str())];
            position.extend(next.as_deref().map(|next| ("after", next)));
            let mut page =
                self.send(self.request(Method::GET, path)?.query(query).query(&position)).await?;
            if let Some(Value::Array(page)) = page.get_mut(items) {
                all.append(page);
            }
            let cursor = |name: &str| page.get(name).and_then(Value::as_str).map(str::to_owned);
            next = cursor("next");
            if next.is_none() || all.len() >= limit {
                let listed = json!({ items: all, "has_more": next.is_some() });
                return Ok((listed, next.or_else(|| cursor("resume"))));
            }
        }
    }

    fn request(&self, method: Method, path: &[&str]) -> anyhow::Result<RequestBuilder> {
        // Without the part, it would be the path of something else.
        if path.contains(&"") {
            return Err(usage_error("an identifier is empty"));
        }
        let url = join(&self.base_url, path.iter().copied());
        let request = self.http.request(method, url).bearer_auth(self.token.expose_secret());
        let headers = self.headers.iter();
        Ok(headers.fold(request, |request, (name, value)| request.header(*name, value)))
    }

    async fn send(&self, request: RequestBuilder) -> anyhow::Result<Value> {
        let response = request.send().await.context("the service does not respond")?;
        if !response.status().is_success() {
            return Err(ApiError::read(response).await.with_client(&self.client).into());
        }
        let bytes = response.bytes().await.context("the response is incomplete")?;
        if bytes.is_empty() {
            return Ok(json!({}));
        }
        serde_json::from_slice(&bytes).context("the response is not JSON")
    }
}
