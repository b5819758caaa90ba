//! The operator's API, as the commands for operators see it.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context as _;
use clap::Args;
use domain::access::MerchantId;
use platform::http_client;
use reqwest::{Client, Method};
use secrecy::{ExposeSecret, SecretString};
use serde_json::{Map, Value};
use url::Url;

use crate::output::Format;
use crate::refusal::Refusal;
use crate::settings::{Setting, Settings};
use crate::tokens::{self, Credentials, OPERATOR, TokenService, address, below};

pub(crate) const DEADLINE: Duration = Duration::from_secs(30);
/// The most that one page of a list can hold.
const PAGE: usize = 200;

/// What every command for operators understands.
#[derive(Args)]
pub(crate) struct Flags {
    /// Print the service's answer as JSON
    #[arg(long, global = true)]
    json: bool,
    #[command(flatten)]
    place: tokens::Place,
    /// The operator's client [default: $OPERATOR_CLIENT_ID]
    #[arg(long, global = true, value_name = "ID", help_heading = "Connection")]
    operator_id: Option<String>,
    /// File with its secret, - for standard input [default: $OPERATOR_CLIENT_SECRET]
    #[arg(long, global = true, value_name = "FILE", help_heading = "Connection")]
    operator_secret_file: Option<PathBuf>,
}

/// An operator with a token.
#[derive(Clone)]
pub(crate) struct Operator {
    http: Client,
    url: Url,
    token: SecretString,
    /// Sent with every request.
    headers: Vec<(&'static str, String)>,
}

/// A list that comes in pages.
pub(crate) struct Listing<'a> {
    pub(crate) path: &'a [&'a str],
    pub(crate) merchant: Option<&'a str>,
    /// The key of the items in an answer.
    pub(crate) items: &'a str,
    /// The parameter that says where the page before ended.
    pub(crate) cursor: &'a str,
    pub(crate) most: usize,
}

impl Flags {
    pub(crate) fn format(&self) -> Format {
        if self.json { Format::Json } else { Format::Text }
    }

    pub(crate) async fn connect(&self) -> anyhow::Result<Operator> {
        let settings = Settings::load()?;
        let url = self.place.url(&settings)?;
        let secret_file = self.operator_secret_file.as_deref();
        let id = self.operator_id.as_deref();
        let credentials = Credentials::find(&settings, OPERATOR, id, secret_file)?;
        Operator::log_in(url, credentials, DEADLINE).await
    }
}

impl Operator {
    /// Gets a token from the token service at `url`. Every answer must come before the deadline.
    pub(crate) async fn log_in(
        url: Url,
        credentials: Credentials,
        deadline: Duration,
    ) -> anyhow::Result<Self> {
        let http = http_client(deadline)?;
        let granted = TokenService::new(url.clone(), credentials).request(&http, None).await?;
        Ok(Self { http, url, token: granted.access_token, headers: Vec::new() })
    }

    /// The same operator, acting for a merchant.
    pub(crate) fn naming(self, merchant: Option<MerchantId>) -> Self {
        match merchant {
            Some(merchant) => self.with("X-Service-Id", merchant.as_str()),
            None => self,
        }
    }

    /// The same operator, with a header in every request.
    pub(crate) fn with(&self, header: &'static str, value: &str) -> Self {
        let mut headers = self.headers.clone();
        headers.push((header, value.to_owned()));
        Self { headers, ..self.clone() }
    }

    /// The same operator, at another service than the one that granted the token.
    pub(crate) fn at(self, url: Url) -> Self {
        Self { url, ..self }
    }

    /// The same operator, at another service that no flag is for. It brings its token along: a
    /// secret that came from standard input cannot be read twice.
    pub(crate) fn elsewhere(&self, service: Setting) -> anyhow::Result<Self> {
        Ok(self.clone().at(address(None, &Settings::load()?, service.without_flag())?))
    }

    pub(crate) async fn search(
        &self,
        path: &[&str],
        query: &[(&str, String)],
    ) -> anyhow::Result<Value> {
        let query: Vec<_> = query.iter().map(|(name, value)| (*name, value.as_str())).collect();
        self.call(Method::GET, path, &query, None).await
    }

    /// A post that says everything in its address.
    pub(crate) async fn order(
        &self,
        path: &[&str],
        query: &[(&str, String)],
    ) -> anyhow::Result<Value> {
        let query: Vec<_> = query.iter().map(|(name, value)| (*name, value.as_str())).collect();
        self.call(Method::POST, path, &query, None).await
    }

    pub(crate) async fn get(&self, path: &[&str]) -> anyhow::Result<Value> {
        self.call(Method::GET, path, &[], None).await
    }

    pub(crate) async fn post(
        &self,
        path: &[&str],
        body: Map<String, Value>,
    ) -> anyhow::Result<Value> {
        self.call(Method::POST, path, &[], Some(body)).await
    }

    pub(crate) async fn put(
        &self,
        path: &[&str],
        body: Map<String, Value>,
    ) -> anyhow::Result<Value> {
        self.call(Method::PUT, path, &[], Some(body)).await
    }

    pub(crate) async fn patch(
        &self,
        path: &[&str],
        body: Map<String, Value>,
    ) -> anyhow::Result<Value> {
        self.call(Method::PATCH, path, &[], Some(body)).await
    }

    pub(crate) async fn delete(&self, path: &[&str]) -> anyhow::Result<Value> {
        self.call(Method::DELETE, path, &[], None).await
    }

    /// As much of a list as is wanted, as if it had come in one page.
    pub(crate) async fn list(&self, listing: Listing<'_>) -> anyhow::Result<Value> {
        let Listing { path, merchant, items, cursor, most } = listing;
        let (mut found, mut next) = (Vec::new(), None::<String>);
        loop {
            let limit = (most - found.len()).min(PAGE).to_string();
            let mut query = vec![("limit", limit.as_str())];
            query.extend(merchant.map(|merchant| ("merchant", merchant)));
            query.extend(next.as_deref().map(|next| (cursor, next)));
            let mut page = self.call(Method::GET, path, &query, None).await?;
            if let Some(Value::Array(page)) = page.get_mut(items) {
                found.append(page);
            }
            next = page.get("next").and_then(Value::as_str).map(str::to_owned);
            if next.is_none() || found.len() >= most {
                return Ok(Value::Object(Map::from_iter([(items.to_owned(), found.into())])));
            }
        }
    }

    async fn call(
        &self,
        method: Method,
        path: &[&str],
        query: &[(&str, &str)],
        body: Option<Map<String, Value>>,
    ) -> anyhow::Result<Value> {
        let url = below(&self.url, path.iter().copied());
        let mut request = self.http.request(method, url).bearer_auth(self.token.expose_secret());
        for (name, value) in &self.headers {
            request = request.header(*name, value);
        }
        if !query.is_empty() {
            request = request.query(query);
        }
        if let Some(body) = body {
            request = request.json(&body);
        }
        let answer = request.send().await.context("the service does not answer")?;
        if !answer.status().is_success() {
            return Err(Refusal::read(answer).await.into());
        }
        let bytes = answer.bytes().await.context("the service's answer broke off")?;
        if bytes.is_empty() {
            return Ok(Value::Object(Map::new()));
        }
        serde_json::from_slice(&bytes).context("an answer that is not JSON")
    }
}
