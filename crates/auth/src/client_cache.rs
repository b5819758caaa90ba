//! A cache of clients with their secret hashes, so that most token requests need no database query.

use std::{sync::Arc, time::Duration};

use moka::future::Cache;
use platform::Timestamp;

use crate::{
    App, credentials,
    error::Error,
    store::clients::{self, Client, SecretHash},
};

/// Upper bound of the delay until a change made by another replica takes effect here.
const TTL: Duration = Duration::from_secs(2);
const MAX_CLIENTS: u64 = 50_000;

struct CachedClient {
    client: Client,
    secrets: Vec<SecretHash>,
}

impl CachedClient {
    /// The client, if it is not revoked and has this secret.
    fn authenticate(&self, secret: &str, now: Timestamp) -> Option<AuthenticatedClient> {
        let is_valid = |secret: &&SecretHash| secret.expires_at.is_none_or(|end| end > now);
        let valid: Vec<_> = self.secrets.iter().filter(is_valid).collect();
        let position = credentials::position(secret, valid.iter().map(|secret| &*secret.hash))?;
        let secret = (*valid.get(position)?).clone();
        let client = self.client.clone();
        client.revoked_at.is_none().then_some(AuthenticatedClient { client, secret })
    }
}

/// A client with the secret that it presented.
pub(crate) struct AuthenticatedClient {
    pub(crate) client: Client,
    pub(crate) secret: SecretHash,
}

/// Unknown ids are cached too, as `None`.
pub(crate) struct ClientCache(Cache<String, Option<Arc<CachedClient>>>);

impl ClientCache {
    pub(crate) fn new() -> Self {
        Self(Cache::builder().max_capacity(MAX_CLIENTS).time_to_live(TTL).build())
    }

    /// The client with this id, if the secret is valid and the client is not revoked.
    pub(crate) async fn authenticate(
        &self,
        app: &App,
        id: &str,
        secret: &str,
    ) -> Result<Option<AuthenticatedClient>, Arc<Error>> {
        let cached = self.get(app, id).await?;
        Ok(cached.and_then(|cached| cached.authenticate(secret, app.clock.now())))
    }

    /// The id if a client has it. Any other text may be a secret in the wrong field, so it is not logged.
    pub(crate) async fn known_id<'a>(&self, app: &App, id: &'a str) -> Option<&'a str> {
        self.get(app, id).await.ok().flatten().map(|_known| id)
    }

    async fn get(&self, app: &App, id: &str) -> Result<Option<Arc<CachedClient>>, Arc<Error>> {
        self.0.try_get_with_by_ref(id, load(app, id)).await
    }

    pub(crate) async fn remove(&self, id: &str) {
        self.0.invalidate(id).await;
    }
}

async fn load(app: &App, id: &str) -> Result<Option<Arc<CachedClient>>, Error> {
    let mut conn = app.pool.get().await?;
    let Some(client) = clients::find(&mut conn, id).await? else { return Ok(None) };
    let secrets = clients::valid_secrets(&mut conn, id, app.clock.now()).await?;
    Ok(Some(Arc::new(CachedClient { client, secrets })))
}
