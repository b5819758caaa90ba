//! One attempt: sign the message, authenticate, POST it and read the response.
//!
//! The body and the `webhook-id` are the same in every attempt; signature, timestamp and token are
//! new. An attempt ends within its timeout and always has an [`Outcome`], never an error.

mod call;
mod classify;
mod header_log;
mod masking;
mod response_log;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use chrono::{DateTime, TimeDelta, Utc};
use domain::message_kind::{MessageKind, MessageVersion};
use platform::{MemoryBudget, MemoryPermit};
use reqwest::header::{self, HeaderValue};
use reqwest::{Method, Request, Response};
use tokio::time::Instant;

use self::call::Call;
use self::classify::{Classified, classify};
use self::header_log::{request_headers, response_headers};
use self::masking::SentSecrets;
use self::response_log::response_log;
use crate::client::{GuardedClient, RequestError};
use crate::endpoint::Endpoint;
use crate::outcome::{Jitter, Outcome, Signal};
use crate::tokens::{Generation, Token, Tokens};

pub(crate) use self::header_log::{MessageFacts, derived_headers, parse_headers};

/// A message as the merchant receives it.
#[derive(Clone, Debug)]
pub struct Message {
    /// Sent as `webhook-id`.
    pub id: String,
    pub merchant: String,
    pub kind: MessageKind,
    pub version: MessageVersion,
    /// For example `rma.created`.
    pub event: String,
    pub sequence: i64,
    pub traceparent: Option<String>,
    pub body: Bytes,
    pub response_body: ResponseBody,
}

/// Whether the success of a delivery depends on the body of the response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResponseBody {
    /// A 2xx status is enough, even if the body is cut off.
    Ignored,
    /// A 2xx whose body is cut off is a failure. A body above the size limit is not: the status is
    /// enough for a message.
    Required,
}

/// A GET request to a merchant, for example for the variants of a product.
#[derive(Clone, Debug)]
pub struct Query {
    pub merchant: String,
    pub version: MessageVersion,
    pub traceparent: Option<String>,
    /// A longer response is [`Outcome::ResponseTooLarge`].
    pub max_response_bytes: usize,
}

/// One HTTP request and its response.
#[derive(Clone, Debug)]
pub struct Attempt {
    pub outcome: Outcome,
    pub signal: Signal,
    pub started_at: DateTime<Utc>,
    pub latency: Duration,
    /// Body of the response, as far as it was read.
    pub response: Bytes,
    /// The memory of a long body. It is free again when nothing has the body any more.
    pub response_memory: Option<Arc<MemoryPermit>>,
    /// Start of that body for the attempt log, with our secrets masked.
    pub response_log: String,
    /// Headers for the attempt log, with secrets masked. Empty if there was no request or no response.
    pub headers: LoggedHeaders,
}

impl Attempt {
    /// An attempt that ended before a request was made, because there was no token.
    fn without_request(outcome: Outcome, started_at: DateTime<Utc>, latency: Duration) -> Self {
        Self {
            signal: outcome.signal(),
            outcome,
            started_at,
            latency,
            response: Bytes::new(),
            response_memory: None,
            response_log: String::new(),
            headers: LoggedHeaders::default(),
        }
    }
}

/// Headers of an attempt, as lines `name: value`.
#[derive(Clone, Debug, Default)]
pub struct LoggedHeaders {
    pub request: String,
    pub response: String,
}

/// HTTP client for merchants' endpoints. Cheap to clone.
#[derive(Clone, Debug)]
pub struct EndpointClient {
    pub client: GuardedClient,
    pub tokens: Tokens,
    /// Limits one request, including the time to get a token.
    pub timeout: Duration,
    /// Memory for responses to messages that are longer than 64 KiB.
    pub long_responses: MemoryBudget,
}

impl EndpointClient {
    /// Sends a message. If the endpoint responds with 401 and takes tokens, sends it once more with
    /// a new token, within a timeout of its own. Returns that 401, if any, and the last attempt.
    pub async fn deliver(
        &self,
        message: &Message,
        endpoint: &Endpoint,
        now: DateTime<Utc>,
        jitter: Jitter,
    ) -> (Option<Attempt>, Attempt) {
        let call = Call::Deliver(message);
        let started = Instant::now();
        let deadline = started + self.timeout;
        let (first, stale) = self.request(call, endpoint, None, now, deadline, jitter).await;
        if !needs_new_token(&first, endpoint) {
            return (None, first);
        }
        let now = later(now, started);
        let deadline = Instant::now() + self.timeout;
        let (second, _) = self.request(call, endpoint, stale, now, deadline, jitter).await;
        (Some(first), second)
    }

    /// Sends a query. One timeout covers everything, including a second request with a new token.
    pub async fn fetch(
        &self,
        query: &Query,
        endpoint: &Endpoint,
        now: DateTime<Utc>,
        jitter: Jitter,
    ) -> Attempt {
        let call = Call::Fetch(query);
        let started = Instant::now();
        let deadline = started + self.timeout;
        let (first, stale) = self.request(call, endpoint, None, now, deadline, jitter).await;
        if !needs_new_token(&first, endpoint) {
            return first;
        }
        let now = later(now, started);
        self.request(call, endpoint, stale, now, deadline, jitter).await.0
    }

    /// Makes one request, with a token newer than `stale`. Returns the generation of the token, if the
    /// endpoint takes tokens.
    async fn request(
        &self,
        call: Call<'_>,
        endpoint: &Endpoint,
        stale: Option<Generation>,
        started_at: DateTime<Utc>,
        deadline: Instant,
        jitter: Jitter,
    ) -> (Attempt, Option<Generation>) {
        let started = Instant::now();
        let token = match self.token(endpoint, stale, deadline, jitter).await {
            Ok(token) => token,
            Err(outcome) => {
                return (Attempt::without_request(outcome, started_at, started.elapsed()), None);
            }
        };
        let (generation, authorization) = token.map(|it| (it.generation, it.authorization)).unzip();
        let secrets = SentSecrets::new(endpoint, authorization.as_ref());
        let (request_headers, response) =
            self.send(call, endpoint, authorization.clone(), started_at, deadline).await;
        let mut headers = LoggedHeaders { request: request_headers, response: String::new() };
        let Classified { outcome, signal, body: response, memory } = match response {
            Err(error) => {
                let outcome = Outcome::from(error);
                Classified { signal: outcome.signal(), outcome, body: Bytes::new(), memory: None }
            }
            Ok(response) => {
                headers.response = response_headers(response.headers(), &secrets);
                let budget = &self.long_responses;
                classify(call, response, budget, started_at, started, deadline).await
            }
        };
        let latency = started.elapsed();
        let response_log = response_log(&response, &secrets, call.has_documents());
        let attempt = Attempt {
            outcome,
            signal,
            started_at,
            latency,
            response,
            response_memory: memory,
            response_log,
            headers,
        };
        (attempt, generation)
    }

    async fn token(
        &self,
        endpoint: &Endpoint,
        stale: Option<Generation>,
        deadline: Instant,
        jitter: Jitter,
    ) -> Result<Option<Token>, Outcome> {
        let Some(credentials) = endpoint.credentials() else { return Ok(None) };
        let token = self.tokens.get(credentials, stale, Instant::now(), jitter);
        match tokio::time::timeout_at(deadline, token).await {
            Ok(Ok(token)) => Ok(Some(token)),
            Ok(Err(error)) => Err(Outcome::TokenRefused(error.to_string())),
            Err(_) => Err(Outcome::TokenRefused("no token within the timeout".to_owned())),
        }
    }

    fn build(
        client: &GuardedClient,
        call: Call<'_>,
        endpoint: &Endpoint,
        authorization: Option<HeaderValue>,
        at: DateTime<Utc>,
    ) -> Result<Request, RequestError> {
        let mut headers = call
            .headers(endpoint, at)
            .map_err(|error| RequestError::Unreachable(error.to_string()))?;
        if let Some(authorization) = authorization {
            headers.insert(header::AUTHORIZATION, authorization);
        }
        let (method, body) = match call {
            Call::Deliver(message) => (Method::POST, Some(message.body.clone())),
            Call::Fetch(_) => (Method::GET, None),
        };
        let url = endpoint.url().clone();
        if let Some(aws) = endpoint.aws() {
            let body = body.as_deref().unwrap_or_default();
            aws.sign(&method, &url, &mut headers, body, at)
                .map_err(|error| RequestError::Unreachable(error.to_string()))?;
        }
        let mut request = client.request(method, url)?.headers(headers);
        if let Some(body) = body {
            request = request.body(body);
        }
        Ok(request.build()?)
    }

    /// Sends a request. Returns its headers for the log, or none if it could not be made.
    async fn send(
        &self,
        call: Call<'_>,
        endpoint: &Endpoint,
        authorization: Option<HeaderValue>,
        at: DateTime<Utc>,
        deadline: Instant,
    ) -> (String, Result<Response, RequestError>) {
        let client = match endpoint.identity() {
            Some(identity) => self.client.with_identity(identity),
            None => Ok(self.client.clone()),
        };
        let request = client.and_then(|client| {
            let request = Self::build(&client, call, endpoint, authorization, at)?;
            Ok((client, request))
        });
        let (client, request) = match request {
            Ok(request) => request,
            Err(error) => return (String::new(), Err(error)),
        };
        let headers = request_headers(&request);
        match tokio::time::timeout_at(deadline, client.send(request)).await {
            Ok(response) => (headers, response.map_err(RequestError::from)),
            Err(_) => (headers, Err(RequestError::TimedOut)),
        }
    }
}

fn needs_new_token(attempt: &Attempt, endpoint: &Endpoint) -> bool {
    attempt.outcome == Outcome::Unauthorized && endpoint.credentials().is_some()
}

fn later(then: DateTime<Utc>, since: Instant) -> DateTime<Utc> {
    then + TimeDelta::from_std(since.elapsed()).unwrap_or_default()
}
