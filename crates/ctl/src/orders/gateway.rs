//! The order intake as an import sees it: tokens, pauses and retries are dealt with here.
//!
//! A 429, also one of the token service, is waited out by everyone, for as long as it takes. Anything else that may pass (5xx, no
//! answer) is tried three times more, with growing pauses. A message that does not arrive in time, or
//! is refused as a whole, is better sent in parts, as long as it has any.

use std::sync::Mutex;
use std::time::Duration;

use anyhow::bail;
use clap::Args;
use domain::json::FieldError;
use domain::order::OrderOutcome;
use platform::http_client;
use platform::retry::Backoff;
use reqwest::header::CONTENT_TYPE;
use reqwest::{Client, Response, StatusCode};
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;
use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep, sleep_until};
use url::Url;

use super::journal::Target;
use crate::refusal::retry_after;
use crate::settings::{Setting, Settings};
use crate::tokens::{
    self, ClientFlags, Credentials, MERCHANT, NoToken, TokenService, address, below,
};

const RETRIES: u32 = 3;
const DEADLINE: Duration = Duration::from_secs(60);
/// Messages under way have so many bytes together: the intake has room for a little more of one
/// merchant, and refuses the rest.
const ROOM: u32 = 5 * 1024 * 1024;
/// How long to wait where a 429 does not say.
const PAUSE: Duration = Duration::from_secs(1);

const ORDERS_URL: Setting = Setting {
    name: "ORDERS_URL",
    flag: Some("--orders-url"),
    what: "the address of the order intake",
};

/// Where the intake is and who is calling.
#[derive(Args, Default)]
pub(crate) struct Connection {
    /// Address of the order intake [default: $ORDERS_URL]
    #[arg(long, value_name = "URL", help_heading = "Connection")]
    orders_url: Option<Url>,
    #[command(flatten)]
    place: tokens::Place,
    #[command(flatten)]
    client: ClientFlags,
}

/// What the intake said about a message.
#[derive(Debug)]
pub(crate) enum Verdict {
    Accepted(Vec<OrderOutcome>),
    Rejected(Vec<FieldError>),
    /// More than the intake takes at once.
    TooMuch,
}

/// Whether a message can be sent in parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Parts {
    One,
    Several,
}

pub(crate) struct Gateway {
    client: Client,
    url: Url,
    tokens: TokenService,
    token: tokio::sync::Mutex<Option<SecretString>>,
    /// Nobody sends before this.
    resume_at: Mutex<Option<Instant>>,
    /// For messages under way.
    room: Semaphore,
    pauses: (Duration, Duration),
}

#[derive(Deserialize)]
struct Stored {
    orders: Vec<StoredOrder>,
}

#[derive(Deserialize)]
struct StoredOrder {
    result: OrderOutcome,
}

#[derive(Deserialize)]
struct Refused {
    message: String,
    #[serde(default)]
    errors: Vec<FieldError>,
}

/// What to do about an answer.
enum Next {
    Done(Verdict),
    /// Try again with a new token.
    Renew,
    /// Try again after this pause; it does not count.
    Wait(Duration),
    /// Try again, if there are tries left.
    Again(anyhow::Error, Option<Duration>),
}

impl Gateway {
    pub(crate) fn connect(connection: &Connection, settings: &Settings) -> anyhow::Result<Self> {
        let Connection { orders_url, place, client } = connection;
        let url = address(orders_url.as_ref(), settings, ORDERS_URL)?;
        let credentials = client.credentials(settings, MERCHANT)?;
        Self::new(url, TokenService::new(place.url(settings)?, credentials))
    }

    /// The gateway for a command that has no flags for it.
    pub(crate) fn known(settings: &Settings) -> anyhow::Result<Self> {
        let url = address(None, settings, ORDERS_URL.without_flag())?;
        let credentials = Credentials::known(settings, MERCHANT)?;
        Self::new(url, TokenService::new(tokens::known_url(settings)?, credentials))
    }

    fn new(url: Url, tokens: TokenService) -> anyhow::Result<Self> {
        Ok(Self {
            client: http_client(DEADLINE)?,
            url,
            tokens,
            token: tokio::sync::Mutex::new(None),
            resume_at: Mutex::new(None),
            room: Semaphore::new(usize::try_from(ROOM)?),
            pauses: (Duration::from_secs(1), Duration::from_secs(30)),
        })
    }

    /// The intake's address and who sends, to tell one import from another.
    pub(crate) fn target(&self) -> Target {
        Target { intake: self.url.to_string(), client: self.tokens.client_id().to_owned() }
    }

    /// Sends a message until the intake has decided about it.
    pub(crate) async fn send(&self, message: &[u8], parts: Parts) -> anyhow::Result<Verdict> {
        let bytes = u32::try_from(message.len()).unwrap_or(u32::MAX).min(ROOM);
        let _room = self.room.acquire_many(bytes).await?;
        let mut backoff = Backoff::new(self.pauses.0, self.pauses.1);
        let (mut failures, mut renewed) = (0, false);
        loop {
            self.wait_for_turn().await;
            let token = self.token().await?;
            let next = match self.post(&token, message).await {
                Ok(answer) => read(answer, parts).await?,
                Err(error) => Next::Again(error.without_url().into(), None),
            };
            match next {
                Next::Done(verdict) => return Ok(verdict),
                Next::Renew if !renewed => {
                    renewed = true;
                    self.forget(&token).await;
                }
                Next::Renew => bail!("the intake does not accept the token it was given"),
                Next::Wait(pause) => self.pause_everyone(pause),
                Next::Again(error, _) if failures == RETRIES => {
                    return Err(error.context(format!("gave up after {RETRIES} retries")));
                }
                Next::Again(_, asked) => {
                    failures += 1;
                    sleep(backoff.pause().max(asked.unwrap_or_default())).await;
                }
            }
        }
    }

    async fn post(&self, token: &SecretString, message: &[u8]) -> reqwest::Result<Response> {
        let url = below(&self.url, ["returns_portal_orders"]);
        self.client
            .post(url)
            .bearer_auth(token.expose_secret())
            .header(CONTENT_TYPE, "application/json")
            .header("Accept", "application/json")
            .header("Api-Version", "3")
            .body(message.to_vec())
            .send()
            .await
    }

    async fn wait_for_turn(&self) {
        let resume_at = self.resume_at.lock().map(|at| *at).unwrap_or_default();
        if let Some(at) = resume_at {
            sleep_until(at).await;
        }
    }

    fn pause_everyone(&self, pause: Duration) {
        if let Ok(mut resume_at) = self.resume_at.lock() {
            let until = Instant::now() + pause;
            *resume_at = Some(resume_at.map_or(until, |already| already.max(until)));
        }
    }

    /// The token in use, or a new one; however many wait for it, it is asked for once.
    async fn token(&self) -> anyhow::Result<SecretString> {
        let mut token = self.token.lock().await;
        if let Some(token) = &*token {
            return Ok(token.clone());
        }
        let new = self.request_token().await?;
        *token = Some(new.clone());
        Ok(new)
    }

    async fn forget(&self, stale: &SecretString) {
        let mut token = self.token.lock().await;
        if token.as_ref().is_some_and(|it| it.expose_secret() == stale.expose_secret()) {
            *token = None;
        }
    }

    async fn request_token(&self) -> Result<SecretString, NoToken> {
        let mut backoff = Backoff::new(self.pauses.0, self.pauses.1);
        let mut failures = 0;
        loop {
            match self.tokens.request(&self.client, None).await {
                Ok(granted) => return Ok(granted.access_token),
                Err(NoToken::Unavailable { .. }) if failures < RETRIES => {
                    failures += 1;
                    sleep(backoff.pause()).await;
                }
                Err(NoToken::Busy { source, .. }) => {
                    sleep(source.retry_after.unwrap_or(PAUSE)).await;
                }
                Err(error) => return Err(error),
            }
        }
    }
}

async fn read(answer: Response, parts: Parts) -> anyhow::Result<Next> {
    let (status, asked) = (answer.status(), retry_after(answer.headers()));
    Ok(match status {
        StatusCode::OK => match answer.json::<Stored>().await {
            Ok(stored) => {
                Next::Done(Verdict::Accepted(stored.orders.iter().map(|it| it.result).collect()))
            }
            // It may have been stored; sending it again does no harm.
            Err(error) => unreadable(status, error),
        },
        StatusCode::UNPROCESSABLE_ENTITY => match answer.json::<Refused>().await {
            Ok(refused) => Next::Done(Verdict::Rejected(refused.errors)),
            Err(error) => unreadable(status, error),
        },
        StatusCode::PAYLOAD_TOO_LARGE => Next::Done(Verdict::TooMuch),
        // Each order of it could be read, so it was too slow, or has too many values.
        StatusCode::REQUEST_TIMEOUT | StatusCode::BAD_REQUEST if parts == Parts::Several => {
            Next::Done(Verdict::TooMuch)
        }
        StatusCode::UNAUTHORIZED => Next::Renew,
        StatusCode::TOO_MANY_REQUESTS => Next::Wait(asked.unwrap_or(PAUSE)),
        status if status.is_server_error() || status == StatusCode::REQUEST_TIMEOUT => {
            Next::Again(anyhow::anyhow!("the intake answers {status}"), asked)
        }
        status => {
            let said = answer.json::<Refused>().await.map(|refused| refused.message);
            bail!("the intake answers {status}: {}", said.unwrap_or_default());
        }
    })
}

fn unreadable(status: StatusCode, error: reqwest::Error) -> Next {
    let context = format!("the intake answers {status}, and not as it should");
    Next::Again(anyhow::Error::new(error.without_url()).context(context), None)
}

#[cfg(test)]
impl Gateway {
    /// One that finds everything at one address and hardly pauses.
    pub(crate) fn impatient(url: &Url) -> Self {
        let pauses = (Duration::from_millis(1), Duration::from_millis(5));
        Self { pauses, ..Self::new(url.clone(), TokenService::for_test(url.clone())).unwrap() }
    }
}
