//! A client for the order intake, with tokens, rate limits and retries.
//!
//! A 429 pauses all requests for the time in `Retry-After`, without a limit on the number of pauses.
//! Other transient failures (5xx, no response) are retried three times with back-off. A request with
//! several orders that times out, or that is rejected as a whole as malformed, is reported as too large,
//! so that the caller sends its orders in smaller requests.

use std::sync::Mutex;
use std::time::Duration;

use anyhow::{anyhow, bail};
use clap::Args;
use domain::json::FieldError;
use domain::order::OrderOutcome;
use domain::printable::one_line;
use platform::http_client;
use platform::retry::Backoff;
use reqwest::header::CONTENT_TYPE;
use reqwest::{Client, Response, StatusCode};
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;
use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep, sleep_until};
use url::Url;

use super::checkpoint::Target;
use crate::api_error::retry_after;
use crate::oauth::{ClientArgs, MERCHANT, TokenClient, TokenError};
use crate::service_urls::{ORDERS, join, resolve};
use crate::settings::Settings;

const RETRIES: u32 = 3;
const TIMEOUT: Duration = Duration::from_secs(60);
/// The importer's own limit, below the one that the order intake has for a merchant.
const MAX_INFLIGHT_BYTES: u32 = 5 * 1024 * 1024;
/// Pause after a 429 without `Retry-After`.
const DEFAULT_RETRY_AFTER: Duration = Duration::from_secs(1);

/// Connection flags for the order intake.
#[derive(Args, Default)]
pub(crate) struct IntakeArgs {
    /// URL of the order intake [default: $ORDERS_URL]
    #[arg(long, value_name = "URL", help_heading = "Connection")]
    orders_url: Option<Url>,
    #[command(flatten)]
    client: ClientArgs,
}

/// The order intake's decision on a message.
#[derive(Debug)]
pub(crate) enum Decision {
    Accepted(Vec<OrderOutcome>),
    Rejected(Vec<FieldError>),
    TooLarge,
}

pub(crate) struct IntakeClient {
    http: Client,
    url: Url,
    tokens: TokenClient,
    token: tokio::sync::Mutex<Option<SecretString>>,
    /// The end of a pause that a 429 asked for.
    paused_until: Mutex<Option<Instant>>,
    inflight_bytes: Semaphore,
    /// The first and the longest delay between retries.
    backoff: (Duration, Duration),
}

#[derive(Deserialize)]
struct AcceptedBody {
    orders: Vec<AcceptedOrder>,
}

#[derive(Deserialize)]
struct AcceptedOrder {
    result: OrderOutcome,
}

#[derive(Deserialize)]
struct ErrorBody {
    message: String,
    #[serde(default)]
    errors: Vec<FieldError>,
}

/// The action that follows a response.
enum NextAction {
    Done(Decision),
    RefreshToken,
    /// Retry after this pause, without counting it as a failure.
    Pause(Duration),
    /// Retry, unless all retries are used.
    Retry(anyhow::Error, Option<Duration>),
}

impl IntakeClient {
    /// A client with the URL and credentials of the arguments, or else of the settings.
    pub(crate) fn from_arguments(
        arguments: &IntakeArgs,
        settings: &Settings,
    ) -> anyhow::Result<Self> {
        let orders = ORDERS.with_flag("--orders-url");
        let url = resolve(arguments.orders_url.as_ref(), settings, orders)?;
        Self::new(url, arguments.client.token_client(settings, MERCHANT)?)
    }

    fn new(url: Url, tokens: TokenClient) -> anyhow::Result<Self> {
        Ok(Self {
            http: http_client(TIMEOUT)?,
            url,
            tokens,
            token: tokio::sync::Mutex::new(None),
            paused_until: Mutex::new(None),
            inflight_bytes: Semaphore::new(usize::try_from(MAX_INFLIGHT_BYTES)?),
            backoff: (Duration::from_secs(1), Duration::from_secs(30)),
        })
    }

    /// The order intake and API client, which identify an import.
    pub(crate) fn target(&self) -> Target {
        Target { intake: self.url.to_string(), client: self.tokens.client_id.clone() }
    }

    /// Sends a message of `orders` orders until the order intake has accepted or rejected it.
    pub(crate) async fn send(&self, message: &[u8], orders: usize) -> anyhow::Result<Decision> {
        let bytes = u32::try_from(message.len()).unwrap_or(u32::MAX).min(MAX_INFLIGHT_BYTES);
        let _permit = self.inflight_bytes.acquire_many(bytes).await?;
        let mut backoff = Backoff::new(self.backoff.0, self.backoff.1);
        let mut failures = 0;
        let mut has_new_token = false;
        loop {
            self.wait_for_pause().await;
            let token = self.token().await?;
            let next = match self.post(&token, message).await {
                Ok(response) => next_action(response, orders).await?,
                Err(error) => NextAction::Retry(error.without_url().into(), None),
            };
            match next {
                NextAction::Done(decision) => return Ok(decision),
                NextAction::RefreshToken if !has_new_token => {
                    has_new_token = true;
                    self.discard_token(&token).await;
                }
                NextAction::RefreshToken => bail!("the order intake rejects a new token"),
                NextAction::Pause(pause) => self.pause_all(pause),
                NextAction::Retry(error, _) if failures == RETRIES => {
                    return Err(error.context(format!("gave up after {RETRIES} retries")));
                }
                NextAction::Retry(_, retry_after) => {
                    failures += 1;
                    sleep(backoff.pause().max(retry_after.unwrap_or_default())).await;
                }
            }
        }
    }

    async fn post(&self, token: &SecretString, message: &[u8]) -> reqwest::Result<Response> {
        self.http
            .post(join(&self.url, ["returns_portal_orders"]))
            .bearer_auth(token.expose_secret())
            .header(CONTENT_TYPE, "application/json")
            .header("Accept", "application/json")
            .header("Api-Version", "3")
            .body(message.to_vec())
            .send()
            .await
    }

    async fn wait_for_pause(&self) {
        let paused_until = self.paused_until.lock().map(|at| *at).unwrap_or_default();
        if let Some(at) = paused_until {
            sleep_until(at).await;
        }
    }

    fn pause_all(&self, pause: Duration) {
        if let Ok(mut paused_until) = self.paused_until.lock() {
            *paused_until = (*paused_until).max(Some(Instant::now() + pause));
        }
    }

    /// The current token, or a new one. Concurrent callers share one token request.
    async fn token(&self) -> anyhow::Result<SecretString> {
        let mut token = self.token.lock().await;
        if let Some(token) = &*token {
            return Ok(token.clone());
        }
        let new = self.request_token().await?;
        *token = Some(new.clone());
        Ok(new)
    }

    async fn discard_token(&self, stale: &SecretString) {
        let mut token = self.token.lock().await;
        if token.as_ref().is_some_and(|it| it.expose_secret() == stale.expose_secret()) {
            *token = None;
        }
    }

    async fn request_token(&self) -> Result<SecretString, TokenError> {
        let mut backoff = Backoff::new(self.backoff.0, self.backoff.1);
        let mut failures = 0;
        loop {
            match self.tokens.request(&self.http, None).await {
                Ok(issued) => return Ok(issued.access_token),
                Err(TokenError::Unavailable { .. }) if failures < RETRIES => {
                    failures += 1;
                    sleep(backoff.pause()).await;
                }
                Err(TokenError::RateLimited { source, .. }) => {
                    sleep(source.retry_after.unwrap_or(DEFAULT_RETRY_AFTER)).await;
                }
                Err(error) => return Err(error),
            }
        }
    }
}

async fn next_action(response: Response, orders: usize) -> anyhow::Result<NextAction> {
    let status = response.status();
    let retry_after = retry_after(response.headers());
    Ok(match status {
        StatusCode::OK => match response.json::<AcceptedBody>().await {
            Ok(accepted) => {
                let outcomes = accepted.orders.iter().map(|order| order.result).collect();
                NextAction::Done(Decision::Accepted(outcomes))
            }
            // The orders may be stored; sending them again changes nothing.
            Err(error) => unreadable(status, error),
        },
        StatusCode::UNPROCESSABLE_ENTITY => match response.json::<ErrorBody>().await {
            Ok(body) => NextAction::Done(Decision::Rejected(body.errors)),
            Err(error) => unreadable(status, error),
        },
        StatusCode::PAYLOAD_TOO_LARGE => NextAction::Done(Decision::TooLarge),
        // Each order alone is valid, so the message was too slow or has too many values.
        StatusCode::REQUEST_TIMEOUT | StatusCode::BAD_REQUEST if orders > 1 => {
            NextAction::Done(Decision::TooLarge)
        }
        StatusCode::UNAUTHORIZED => NextAction::RefreshToken,
        StatusCode::TOO_MANY_REQUESTS => {
            NextAction::Pause(retry_after.unwrap_or(DEFAULT_RETRY_AFTER))
        }
        status if status.is_server_error() || status == StatusCode::REQUEST_TIMEOUT => {
            NextAction::Retry(anyhow!("the order intake responded with {status}"), retry_after)
        }
        status => {
            let message = response.json::<ErrorBody>().await.map(|body| body.message);
            let message = one_line(&message.unwrap_or_default());
            bail!("the order intake responded with {status}: {message}");
        }
    })
}

fn unreadable(status: StatusCode, error: reqwest::Error) -> NextAction {
    let context = format!("the order intake responded with {status} and an unreadable body");
    NextAction::Retry(anyhow::Error::new(error.without_url()).context(context), None)
}

#[cfg(test)]
impl IntakeClient {
    /// A client with short delays, for one server that issues tokens and takes orders.
    pub(crate) fn for_test(url: &Url) -> Self {
        let backoff = (Duration::from_millis(1), Duration::from_millis(5));
        Self { backoff, ..Self::new(url.clone(), TokenClient::for_test(url.clone())).unwrap() }
    }
}
