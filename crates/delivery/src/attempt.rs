//! One attempt to hand a message to a merchant: sign, authenticate, POST, read the answer.
//!
//! The body goes out byte for byte as it was stored and the id stays the same; signature,
//! timestamp and token are fresh each time. An attempt ends by its deadline, whatever the
//! endpoint does, and always ends in an [`Outcome`]: there is no error beside it.

mod call;
#[cfg(test)]
mod tests;

use std::time::Duration;

use bytes::Bytes;
use chrono::{DateTime, TimeDelta, Utc};
use domain::message_kind::MessageKind;
use reqwest::header;
use reqwest::{Method, Response};
use tokio::time::Instant;

use self::call::Call;
use crate::ack_tracker::SLOW;
use crate::client::{End, Fault, GuardedClient, Read, read_body};
use crate::endpoint::Endpoint;
use crate::outcome::{self, Jitter, Outcome, Schedule, Signal, Step, TokenRefresh, decide};
use crate::tokens::{Generation, Token, Tokens};

/// A message as it was stored.
#[derive(Clone, Debug)]
pub struct Message {
    /// The `webhook-id`, the same for every attempt.
    pub id: String,
    pub merchant: String,
    pub kind: MessageKind,
    /// For example `rma.created`.
    pub event: String,
    pub sequence: i64,
    pub traceparent: Option<String>,
    pub body: Bytes,
    pub reply: Reply,
}

/// Whether we want to know more than the answer's status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reply {
    /// A 2xx is all that counts: a body that breaks off or never ends does not undo it.
    Ignored,
    /// The body is part of the answer: if it breaks off the attempt failed. One that is too long
    /// to be read says no more than its status, which is enough for a message.
    Needed,
}

/// Something we want to know from a merchant, such as the variants of a product.
#[derive(Clone, Debug)]
pub struct Query {
    pub merchant: String,
    pub api_version: &'static str,
    pub traceparent: Option<String>,
    /// A longer answer is [`Outcome::AnswerTooLarge`].
    pub longest_answer: usize,
}

/// One request and what came of it.
#[derive(Clone, Debug)]
pub struct Try {
    pub outcome: Outcome,
    pub signal: Signal,
    pub at: DateTime<Utc>,
    pub latency: Duration,
    /// What was read of the answer.
    pub answer: Bytes,
}

/// All requests of one counted attempt, and what follows.
#[derive(Clone, Debug)]
pub struct Attempted {
    /// A 401 that was answered with a new token; it does not count.
    pub refused: Option<Try>,
    pub last: Try,
    pub step: Step,
}

/// Makes attempts. Cheap to clone.
#[derive(Clone, Debug)]
pub struct EndpointClient {
    pub client: GuardedClient,
    pub tokens: Tokens,
    pub schedule: Schedule,
    /// From the first byte to the last, getting a token included.
    pub deadline: Duration,
}

impl EndpointClient {
    /// Makes attempt `number` (1 is the first), with at most one more try after a 401.
    pub async fn attempt(
        &self,
        message: &Message,
        endpoint: &Endpoint,
        number: u32,
        now: DateTime<Utc>,
        roll: Jitter,
    ) -> Attempted {
        let begun = Instant::now();
        let mut renewal = endpoint.renewal();
        let (mut stale, mut refused) = (None, None);
        loop {
            let at = later(now, begun);
            let deadline = Instant::now() + self.deadline;
            let call = Call::Deliver(message);
            let (tried, generation) =
                self.try_once(call, endpoint, stale, at, deadline, roll).await;
            let facts = outcome::Attempt { number, renewal, now: later(now, begun), roll };
            match decide(&self.schedule, &tried.outcome, facts) {
                Step::RefreshToken => {
                    refused = Some(tried);
                    stale = generation;
                    renewal = TokenRefresh::Spent;
                }
                step => return Attempted { refused, last: tried, step },
            }
        }
    }

    /// Asks an endpoint for something instead of telling it. One deadline for everything, a new
    /// token after a 401 included; whether to ask again is the caller's business.
    pub async fn ask(
        &self,
        question: &Query,
        endpoint: &Endpoint,
        now: DateTime<Utc>,
        roll: Jitter,
    ) -> Try {
        let begun = Instant::now();
        let deadline = begun + self.deadline;
        let call = Call::Ask(question);
        let (first, generation) = self.try_once(call, endpoint, None, now, deadline, roll).await;
        if first.outcome != Outcome::Unauthorized || endpoint.renewal() == TokenRefresh::Spent {
            return first;
        }
        let at = later(now, begun);
        self.try_once(call, endpoint, generation, at, deadline, roll).await.0
    }

    async fn try_once(
        &self,
        call: Call<'_>,
        endpoint: &Endpoint,
        stale: Option<Generation>,
        at: DateTime<Utc>,
        deadline: Instant,
        roll: Jitter,
    ) -> (Try, Option<Generation>) {
        let started = Instant::now();
        let mut generation = None;
        let answered = match self.token(endpoint, stale, deadline, roll).await {
            Err(outcome) => Err(outcome),
            Ok(token) => {
                generation = token.as_ref().map(|token| token.generation);
                self.send(call, endpoint, token, at, deadline).await.map_err(Outcome::from)
            }
        };
        let (outcome, signal, answer) = match answered {
            Err(outcome) => (outcome.clone(), outcome.signal(), Bytes::new()),
            Ok(answer) => judge(call, answer, at, started, deadline).await,
        };
        (Try { outcome, signal, at, latency: started.elapsed(), answer }, generation)
    }

    async fn token(
        &self,
        endpoint: &Endpoint,
        stale: Option<Generation>,
        deadline: Instant,
        roll: Jitter,
    ) -> Result<Option<Token>, Outcome> {
        let Some(credentials) = endpoint.credentials() else { return Ok(None) };
        let getting = self.tokens.get(credentials, stale, Instant::now(), roll);
        match tokio::time::timeout_at(deadline, getting).await {
            Ok(Ok(token)) => Ok(Some(token)),
            Ok(Err(error)) => Err(Outcome::TokenRefused(error.to_string())),
            Err(_) => Err(Outcome::TokenRefused("no token within the deadline".to_owned())),
        }
    }

    async fn send(
        &self,
        call: Call<'_>,
        endpoint: &Endpoint,
        token: Option<Token>,
        at: DateTime<Utc>,
        deadline: Instant,
    ) -> Result<Response, Fault> {
        let mut headers = call.headers(endpoint, at).map_err(unsendable)?;
        if let Some(token) = token {
            headers.insert(header::AUTHORIZATION, token.authorization);
        }
        let url = endpoint.url().clone();
        let request = match call {
            Call::Deliver(message) => {
                self.client.request(Method::POST, url)?.body(message.body.clone())
            }
            Call::Ask(_) => self.client.request(Method::GET, url)?,
        };
        match tokio::time::timeout_at(deadline, request.headers(headers).send()).await {
            Ok(answer) => Ok(answer?),
            Err(_) => Err(Fault::TimedOut),
        }
    }
}

fn later(then: DateTime<Utc>, since: Instant) -> DateTime<Utc> {
    then + TimeDelta::from_std(since.elapsed()).unwrap_or_default()
}

/// The status decides; the body matters only where we need it.
async fn judge(
    call: Call<'_>,
    answer: Response,
    at: DateTime<Utc>,
    started: Instant,
    deadline: Instant,
) -> (Outcome, Signal, Bytes) {
    let status = answer.status().as_u16();
    let retry_after =
        answer.headers().get(header::RETRY_AFTER).and_then(|value| value.to_str().ok());
    let outcome = Outcome::of_status(status, retry_after, later(at, started));
    let Read { body, end } = read_body(answer, call.longest_answer(), deadline).await;
    let outcome = match (&outcome, call, &end) {
        (Outcome::Delivered { .. }, Call::Ask(_), End::TooLarge) => {
            Outcome::AnswerTooLarge { status }
        }
        (Outcome::Delivered { .. }, _, End::Broken(fault)) if call.reply() == Reply::Needed => {
            fault.clone().into()
        }
        _ => outcome,
    };
    // An endpoint that never finishes its answers holds a place as long as one that hangs, and one
    // that breaks them off late nearly as long.
    let signal = match end {
        End::Broken(Fault::TimedOut) => Signal::Shrink,
        End::Broken(_) if started.elapsed() >= SLOW => Signal::Shrink,
        End::Broken(_) | End::Complete | End::TooLarge => outcome.signal(),
    };
    (outcome, signal, body)
}

fn unsendable(error: header::InvalidHeaderValue) -> Fault {
    Fault::Unreachable(error.to_string())
}
