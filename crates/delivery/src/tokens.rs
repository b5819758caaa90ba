//! The tokens that merchants' token servers issue to us (OAuth 2.0 client credentials).
//!
//! However many messages need a token at once, one call is made for them: whoever comes while it
//! is under way waits for the same answer, good or bad; who holds a token that works does not wait.
//! A call goes on when nobody waits for it any more: whoever comes next finds its token. Every token
//! carries a generation, so a message that was refused with an old token takes the newer one that is
//! already there.

#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use aws_lc_rs::digest;
use futures_util::FutureExt;
use futures_util::future::{BoxFuture, Shared, WeakShared};
use oauth2::basic::{BasicClient, BasicErrorResponse};
use oauth2::{AuthType, ClientId, ClientSecret, HttpRequest, HttpResponse, RequestTokenError};
use oauth2::{Scope, TokenResponse, TokenUrl};
use reqwest::header::HeaderValue;
use secrecy::{ExposeSecret, SecretString};
use tokio::runtime::Handle;
use tokio::time::Instant;
use url::Url;

use crate::client::{ANSWER_LIMIT, End, Fault, GuardedClient, read_body};
use crate::guard::Refused;
use crate::outcome::{Jitter, brief};

/// A token server that names no lifetime is asked again after this.
const UNSTATED_LIFETIME: Duration = Duration::from_secs(3600);
const LONGEST_LIFETIME: Duration = Duration::from_secs(30 * 24 * 3600);
/// A token is renewed when this share of its lifetime is over, in percent.
const RENEW_BETWEEN: (u32, u32) = (80, 90);
/// How long a working token is used on before its renewal is tried again.
const RENEW_AGAIN: Duration = Duration::from_secs(30);
/// Credentials not used for this long are forgotten, and their token with them.
const FORGET_AFTER: Duration = Duration::from_secs(26 * 3600);
const MOST_CREDENTIALS: u64 = 100_000;

/// What we show a merchant's token server.
#[derive(Clone, Debug)]
pub struct ClientCredentials {
    pub token_url: Url,
    pub client_id: String,
    pub client_secret: SecretString,
    pub scope: Option<String>,
    pub placement: Placement,
}

/// Where the credentials stand in a token request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    Body,
    Basic,
}

/// Counts the tokens issued for the same credentials.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Generation(u64);

#[derive(Clone, Debug)]
pub struct Token {
    /// The whole `Authorization` value, marked as sensitive.
    pub authorization: HeaderValue,
    pub generation: Generation,
}

/// Why there is no token.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TokenError {
    #[error("the token server failed: {0}")]
    Fault(#[from] Fault),
    #[error("the token server refused: {0}")]
    Refused(String),
    #[error("the token server's answer cannot be used: {0}")]
    Unusable(String),
}

impl From<Refused> for TokenError {
    fn from(refused: Refused) -> Self {
        Self::Fault(Fault::AddressRefused(refused))
    }
}

type InFlight = Shared<BoxFuture<'static, Result<Token, TokenError>>>;

/// All tokens of a process. Cheap to clone.
#[derive(Clone)]
pub struct Tokens {
    client: GuardedClient,
    timeout: Duration,
    slots: moka::sync::Cache<Fingerprint, Arc<Mutex<Slot>>>,
}

#[derive(Default)]
struct Slot {
    issued: u64,
    held: Option<Held>,
    /// The call under way. Weak: it is gone with its task and those who wait, however they ended.
    flight: Option<WeakShared<BoxFuture<'static, Result<Token, TokenError>>>>,
}

struct Held {
    token: Token,
    renew_at: Instant,
    expires_at: Instant,
}

impl Tokens {
    pub fn new(client: GuardedClient, timeout: Duration) -> Self {
        let slots = moka::sync::Cache::builder()
            .max_capacity(MOST_CREDENTIALS)
            .time_to_idle(FORGET_AFTER)
            .build();
        Self { client, timeout, slots }
    }

    /// A token for these credentials; one that is newer than `stale`, if that was refused.
    pub async fn get(
        &self,
        credentials: &Arc<ClientCredentials>,
        stale: Option<Generation>,
        now: Instant,
        roll: Jitter,
    ) -> Result<Token, TokenError> {
        let slot = self.slots.get_with(Fingerprint::of(credentials), Arc::default);
        let flight = {
            let mut state = lock(&slot);
            let under_way = state.flight.as_ref().and_then(WeakShared::upgrade);
            let usable = state
                .held
                .as_mut()
                .filter(|held| now < held.expires_at)
                .filter(|held| stale.is_none_or(|stale| held.token.generation > stale));
            if let Some(held) = usable {
                let token = held.token.clone();
                if under_way.is_none() && held.renew_at <= now {
                    held.renew_at = now + RENEW_AGAIN;
                    let flight = self.take_off(credentials, &slot, now, roll);
                    state.flight = flight.downgrade();
                    Handle::current().spawn(renewal(flight));
                }
                return Ok(token);
            }
            under_way.unwrap_or_else(|| {
                let flight = self.take_off(credentials, &slot, now, roll);
                state.flight = flight.downgrade();
                Handle::current().spawn(flight.clone());
                flight
            })
        };
        flight.await
    }

    /// One call to the token server, shared by all who wait; it is over by its deadline. It writes
    /// its result down itself, before anyone sees it, so nobody can join a call that is over.
    fn take_off(
        &self,
        credentials: &Arc<ClientCredentials>,
        slot: &Arc<Mutex<Slot>>,
        started_at: Instant,
        roll: Jitter,
    ) -> InFlight {
        let (client, credentials, slot) =
            (self.client.clone(), Arc::clone(credentials), Arc::clone(slot));
        let timeout = self.timeout;
        async move {
            let deadline = Instant::now() + timeout;
            let issued = match tokio::time::timeout_at(
                deadline,
                request_token(&client, &credentials, deadline),
            )
            .await
            {
                Ok(issued) => issued,
                Err(_) => Err(Fault::TimedOut.into()),
            };
            let mut state = lock(&slot);
            state.flight = None;
            let (authorization, lifetime) = issued?;
            state.issued += 1;
            let token = Token { authorization, generation: Generation(state.issued) };
            let (earliest, latest) = RENEW_BETWEEN;
            let renew_after = roll.between(lifetime * earliest / 100, lifetime * latest / 100);
            state.held = Some(Held {
                token: token.clone(),
                renew_at: started_at + renew_after,
                expires_at: started_at + lifetime,
            });
            Ok(token)
        }
        .boxed()
        .shared()
    }
}

async fn renewal(flight: InFlight) {
    if let Err(error) = flight.await {
        tracing::warn!(%error, "could not renew a token ahead of time");
    }
}

impl fmt::Debug for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tokens").field("timeout", &self.timeout).finish_non_exhaustive()
    }
}

async fn request_token(
    client: &GuardedClient,
    credentials: &ClientCredentials,
    deadline: Instant,
) -> Result<(HeaderValue, Duration), TokenError> {
    let oauth = BasicClient::new(ClientId::new(credentials.client_id.clone()))
        .set_client_secret(ClientSecret::new(credentials.client_secret.expose_secret().into()))
        .set_token_uri(TokenUrl::from_url(credentials.token_url.clone()))
        .set_auth_type(match credentials.placement {
            Placement::Body => AuthType::RequestBody,
            Placement::Basic => AuthType::BasicAuth,
        });
    let scopes = credentials.scope.iter().flat_map(|scope| scope.split_whitespace());
    let answer = oauth
        .exchange_client_credentials()
        .add_scopes(scopes.map(|scope| Scope::new(scope.to_owned())))
        .request_async(&|request| call(client.clone(), request, deadline))
        .await
        .map_err(token_error)?;
    let mut authorization =
        HeaderValue::from_str(&format!("Bearer {}", answer.access_token().secret()))
            .map_err(|error| TokenError::Unusable(error.to_string()))?;
    authorization.set_sensitive(true);
    let lifetime = answer.expires_in().unwrap_or(UNSTATED_LIFETIME).min(LONGEST_LIFETIME);
    Ok((authorization, lifetime))
}

async fn call(
    client: GuardedClient,
    request: HttpRequest,
    deadline: Instant,
) -> Result<HttpResponse, TokenError> {
    let (parts, body) = request.into_parts();
    let url = Url::parse(&parts.uri.to_string())
        .map_err(|error| TokenError::Unusable(error.to_string()))?;
    let answer = client
        .request(parts.method, url)?
        .headers(parts.headers)
        .body(body)
        .send()
        .await
        .map_err(Fault::from)?;
    let mut response = HttpResponse::new(Vec::new());
    *response.status_mut() = answer.status();
    *response.headers_mut() = answer.headers().clone();
    let read = read_body(answer, ANSWER_LIMIT, deadline).await;
    match read.end {
        End::Complete => *response.body_mut() = read.body.to_vec(),
        End::TooLarge => return Err(TokenError::Unusable("it is too large".to_owned())),
        End::Broken(fault) => return Err(fault.into()),
    }
    Ok(response)
}

/// Keeps what helps an operator and leaves out anything the server sent back of our secrets. What is
/// wrong with an answer may be told by quoting all of it.
fn token_error(error: RequestTokenError<TokenError, BasicErrorResponse>) -> TokenError {
    match error {
        RequestTokenError::Request(error) => error,
        RequestTokenError::ServerResponse(answer) => {
            TokenError::Refused(brief(answer.error().as_ref().to_owned()))
        }
        RequestTokenError::Parse(error, _) => TokenError::Unusable(brief(error.to_string())),
        RequestTokenError::Other(why) => TokenError::Unusable(brief(why)),
    }
}

/// Names credentials without holding them: changed credentials are other credentials.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Fingerprint([u8; digest::SHA256_OUTPUT_LEN]);

impl Fingerprint {
    fn of(credentials: &ClientCredentials) -> Self {
        let mut context = digest::Context::new(&digest::SHA256);
        for part in [
            credentials.token_url.as_str(),
            &credentials.client_id,
            credentials.client_secret.expose_secret(),
            credentials.scope.as_deref().unwrap_or_default(),
            match credentials.placement {
                Placement::Body => "body",
                Placement::Basic => "basic",
            },
        ] {
            context.update(&part.len().to_le_bytes());
            context.update(part.as_bytes());
        }
        let mut name = [0; digest::SHA256_OUTPUT_LEN];
        name.copy_from_slice(context.finish().as_ref());
        Self(name)
    }
}

/// A panic while the lock was held cannot leave a slot half written: every write is one step.
fn lock(slot: &Mutex<Slot>) -> MutexGuard<'_, Slot> {
    slot.lock().unwrap_or_else(PoisonError::into_inner)
}
