//! The portal's own token, with the scope `shopper`.
//!
//! The token is kept for nine tenths of its lifetime. Requests that need a new one at the same time wait
//! for one call to auth.

use std::{
    net::{IpAddr, Ipv4Addr},
    time::{Duration, Instant},
};

use moka::{Expiry, future::Cache};
use pages::api::{Api, ApiError, Caller, Service};
use reqwest::Method;
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;
use serde_json::json;

/// The portal's client of auth.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Client {
    id: String,
    secret: SecretString,
}

/// Calls to the services on behalf of shoppers.
pub(crate) struct Access {
    api: Api,
    client: Client,
    tokens: Cache<(), Token>,
}

#[derive(Clone, Deserialize)]
struct Token {
    access_token: String,
    /// Seconds.
    expires_in: u64,
}

/// Renews a token before it expires.
struct BeforeExpiry;

impl Expiry<(), Token> for BeforeExpiry {
    fn expire_after_create(&self, (): &(), token: &Token, _: Instant) -> Option<Duration> {
        Some(Duration::from_secs(token.expires_in) / 10 * 9)
    }
}

impl Access {
    pub(crate) fn new(api: Api, client: Client) -> Self {
        Self { api, client, tokens: tokens() }
    }

    /// Calls on behalf of a browser at `address`, with the portal's token.
    pub(crate) async fn caller(&self, address: IpAddr) -> Result<Caller, ApiError> {
        let token = current(&self.tokens, self.request()).await?;
        Ok(self.api.caller(address, Some(token.access_token)))
    }

    /// Removes a token that a service rejected from the cache.
    pub(crate) async fn invalidate(&self) {
        self.tokens.invalidate(&()).await;
    }

    /// Requests the portal's own token from auth, so failures do not count for a shopper's address.
    async fn request(&self) -> Result<Token, ApiError> {
        let body = json!({
            "grant_type": "client_credentials", "client_id": self.client.id,
            "client_secret": self.client.secret.expose_secret(), "scope": "shopper",
        });
        let own = self.api.caller(IpAddr::V4(Ipv4Addr::LOCALHOST), None);
        let token = own.send_json(Service::Auth, Method::POST, None, "oauth/token", &body).await;
        token.inspect_err(|error| tracing::error!(%error, "the portal gets no token from auth"))
    }
}

fn tokens() -> Cache<(), Token> {
    Cache::builder().max_capacity(1).expire_after(BeforeExpiry).build()
}

/// The kept token, or a new one.
async fn current(
    tokens: &Cache<(), Token>,
    request: impl Future<Output = Result<Token, ApiError>>,
) -> Result<Token, ApiError> {
    tokens.try_get_with((), request).await.map_err(|error| ApiError::clone(&error))
}

#[cfg(test)]
pub(crate) mod tests {
    use std::{
        collections::BTreeMap,
        sync::atomic::{AtomicU32, Ordering},
    };

    use futures_util::future::join_all;
    use url::Url;

    use super::*;

    /// Calls with a token, while no service responds.
    pub(crate) async fn without_services() -> Access {
        with_services(BTreeMap::new()).await
    }

    /// Calls with a token to the services at these URLs.
    pub(crate) async fn with_services(urls: BTreeMap<Service, Url>) -> Access {
        let client = serde_json::from_value(json!({ "id": "cl_1", "secret": "s" })).unwrap();
        let access = Access::new(Api::new(urls).unwrap(), client);
        access.tokens.insert((), Token { access_token: "t".to_owned(), expires_in: 3600 }).await;
        access
    }

    /// Asks for a token ten times at once and returns the number of calls to auth.
    async fn calls(tokens: &Cache<(), Token>, expires_in: u64) -> u32 {
        let calls = AtomicU32::new(0);
        let request = async || {
            calls.fetch_add(1, Ordering::SeqCst);
            tokio::task::yield_now().await;
            Ok(Token { access_token: "t".to_owned(), expires_in })
        };
        let waiting = (0..10).map(|_| current(tokens, request()));
        for token in join_all(waiting).await {
            assert_eq!(token.unwrap().access_token, "t");
        }
        calls.into_inner()
    }

    #[tokio::test]
    async fn requests_that_wait_share_one_call() {
        let tokens = tokens();
        assert_eq!(calls(&tokens, 3600).await, 1);
        assert_eq!(calls(&tokens, 3600).await, 0);
        tokens.invalidate(&()).await;
        assert_eq!(calls(&tokens, 3600).await, 1);
    }

    #[tokio::test]
    async fn a_failure_is_not_kept() {
        let tokens = tokens();
        let failure = async { Err(ApiError::Unauthenticated { service: Service::Auth }) };
        assert!(current(&tokens, failure).await.is_err());
        assert_eq!(calls(&tokens, 3600).await, 1);
    }
}
