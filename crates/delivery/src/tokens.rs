//! OAuth 2.0 access tokens for merchants' endpoints (client credentials grant).
//!
//! Concurrent callers that need a token share one request to the token server and its result. A
//! token is refreshed in the background before it expires. Tokens have a generation: a caller whose
//! token was rejected gets a newer one, which may be there already.

mod request;
#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use aws_lc_rs::digest;
use futures_util::FutureExt;
use futures_util::future::{BoxFuture, Shared, WeakShared};
use reqwest::header::HeaderValue;
use secrecy::{ExposeSecret, SecretString};
use tokio::runtime::Handle;
use tokio::time::Instant;
use url::Url;

use self::request::request_token;
use crate::client::{GuardedClient, RequestError};
use crate::guard::GuardError;
use crate::outcome::Jitter;

/// A token is refreshed between these percentages of its lifetime.
const REFRESH_PERCENT: (u32, u32) = (80, 90);
/// Delay before a failed refresh is repeated. The token is used meanwhile.
const REFRESH_RETRY_DELAY: Duration = Duration::from_secs(30);
/// Tokens that are unused for this long leave the cache.
const CACHE_IDLE_TIME: Duration = Duration::from_secs(26 * 3600);
const MAX_CACHED_TOKENS: u64 = 100_000;

/// Our credentials at a merchant's token server.
#[derive(Clone, Debug)]
pub struct ClientCredentials {
    pub token_url: Url,
    pub client_id: String,
    pub client_secret: SecretString,
    pub scope: Option<String>,
    pub placement: Placement,
}

/// Part of the token request that contains the credentials.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    Body,
    Basic,
}

/// Number of a token among those issued for the same credentials.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Generation(u64);

#[derive(Clone, Debug)]
pub struct Token {
    /// Value of the `Authorization` header, marked as sensitive.
    pub authorization: HeaderValue,
    pub generation: Generation,
}

/// A token request that failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TokenError {
    #[error("the request to the token server failed: {0}")]
    Request(#[from] RequestError),
    #[error("the token server refused: {0}")]
    Refused(String),
    #[error("the response of the token server is invalid: {0}")]
    InvalidResponse(String),
}

impl From<GuardError> for TokenError {
    fn from(error: GuardError) -> Self {
        Self::Request(RequestError::AddressRefused(error))
    }
}

/// A request to the token server that is in flight, shared by all callers that wait for it.
type TokenRefresh = Shared<BoxFuture<'static, Result<Token, TokenError>>>;

/// Cache of tokens. Cheap to clone.
#[derive(Clone)]
pub struct Tokens {
    client: GuardedClient,
    timeout: Duration,
    entries: moka::sync::Cache<Fingerprint, Arc<Mutex<Entry>>>,
}

#[derive(Default)]
struct Entry {
    /// Tokens issued so far.
    issued: u64,
    cached: Option<CachedToken>,
    /// Weak, so that it ends with its task and its callers even if they panic.
    refresh: Option<WeakShared<BoxFuture<'static, Result<Token, TokenError>>>>,
}

struct CachedToken {
    token: Token,
    refresh_at: Instant,
    expires_at: Instant,
}

impl Tokens {
    pub fn new(client: GuardedClient, timeout: Duration) -> Self {
        let entries = moka::sync::Cache::builder()
            .max_capacity(MAX_CACHED_TOKENS)
            .time_to_idle(CACHE_IDLE_TIME)
            .build();
        Self { client, timeout, entries }
    }

    /// Returns a token for these credentials, newer than `stale` if that one was rejected.
    pub async fn get(
        &self,
        credentials: &Arc<ClientCredentials>,
        stale: Option<Generation>,
        now: Instant,
        jitter: Jitter,
    ) -> Result<Token, TokenError> {
        let shared_entry = self.entries.get_with(Fingerprint::of(credentials), Arc::default);
        let refresh = {
            let mut entry = lock(&shared_entry);
            let in_flight = entry.refresh.as_ref().and_then(WeakShared::upgrade);
            let usable = entry
                .cached
                .as_mut()
                .filter(|cached| now < cached.expires_at)
                .filter(|cached| stale.is_none_or(|stale| cached.token.generation > stale));
            if let Some(cached) = usable {
                let token = cached.token.clone();
                if in_flight.is_none() && cached.refresh_at <= now {
                    cached.refresh_at = now + REFRESH_RETRY_DELAY;
                    let refresh = self.refresh(credentials, &shared_entry, now, jitter);
                    entry.refresh = refresh.downgrade();
                    Handle::current().spawn(log_failure(refresh));
                }
                return Ok(token);
            }
            in_flight.unwrap_or_else(|| {
                let refresh = self.refresh(credentials, &shared_entry, now, jitter);
                entry.refresh = refresh.downgrade();
                // The task completes the request even if all callers stop waiting.
                Handle::current().spawn(refresh.clone());
                refresh
            })
        };
        refresh.await
    }

    /// Requests a token. The future stores its result before any caller sees it, so no caller can
    /// join a request that has ended.
    fn refresh(
        &self,
        credentials: &Arc<ClientCredentials>,
        entry: &Arc<Mutex<Entry>>,
        started_at: Instant,
        jitter: Jitter,
    ) -> TokenRefresh {
        let client = self.client.clone();
        let timeout = self.timeout;
        let credentials = Arc::clone(credentials);
        let entry = Arc::clone(entry);
        async move {
            let deadline = Instant::now() + timeout;
            let request = request_token(&client, &credentials, deadline);
            let issued = match tokio::time::timeout_at(deadline, request).await {
                Ok(issued) => issued,
                Err(_) => Err(RequestError::TimedOut.into()),
            };
            let mut entry = lock(&entry);
            entry.refresh = None;
            let (authorization, lifetime) = issued?;
            entry.issued += 1;
            let token = Token { authorization, generation: Generation(entry.issued) };
            let (earliest, latest) = REFRESH_PERCENT;
            let refresh_after = jitter.between(lifetime * earliest / 100, lifetime * latest / 100);
            entry.cached = Some(CachedToken {
                token: token.clone(),
                refresh_at: started_at + refresh_after,
                expires_at: started_at + lifetime,
            });
            Ok(token)
        }
        .boxed()
        .shared()
    }
}

async fn log_failure(refresh: TokenRefresh) {
    if let Err(error) = refresh.await {
        tracing::warn!(%error, "token refresh failed");
    }
}

impl fmt::Debug for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tokens").field("timeout", &self.timeout).finish_non_exhaustive()
    }
}

/// Cache key: a hash of the credentials, so that changed credentials get their own token.
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
        let mut hash = [0; digest::SHA256_OUTPUT_LEN];
        hash.copy_from_slice(context.finish().as_ref());
        Self(hash)
    }
}

/// Locks an entry. A poisoned lock is safe: no write leaves an entry inconsistent.
fn lock(entry: &Mutex<Entry>) -> MutexGuard<'_, Entry> {
    entry.lock().unwrap_or_else(PoisonError::into_inner)
}
