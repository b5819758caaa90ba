//! Keeping a copy of auth's public keys.

use std::{sync::Arc, time::Duration};

use jsonwebtoken::jwk::JwkSet;
use serde::Deserialize;
use tokio::time::Instant;
use url::Url;

use super::Verifier;
use crate::{Tasks, http_client, retry::Backoff};

/// How long a request with an unknown key id waits for fresh keys.
pub(super) const REFRESH_WAIT: Duration = Duration::from_secs(2);
/// However many unknown key ids arrive, auth is asked at most this often.
const AT_MOST_EVERY: Duration = Duration::from_secs(1);

/// `[identity]` of every service but auth.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// The `iss` that tokens must carry.
    pub issuer: String,
    pub jwks_url: Url,
    #[serde(with = "humantime_serde")]
    pub refresh: Duration,
}

impl Verifier {
    /// Fetches the keys now, then every `refresh`, and when a token names a key we do not have.
    pub fn follow(self: &Arc<Self>, settings: &Settings, tasks: &Tasks) -> anyhow::Result<()> {
        let client = http_client(Duration::from_secs(5))?;
        let (verifier, settings) = (self.clone(), settings.clone());
        tasks.spawn("keys", |stop| async move {
            let mut backoff = Backoff::new(Duration::from_millis(200), Duration::from_secs(10));
            loop {
                let asked = Instant::now();
                let pause = match fetch(&client, &settings.jwks_url).await {
                    // A token service that is just starting; what we hold is better than nothing.
                    Ok(set) if set.keys.is_empty() => {
                        tracing::debug!("{} has no keys yet", settings.jwks_url);
                        backoff.pause()
                    }
                    Ok(set) => {
                        verifier.set_keys(&set);
                        backoff.reset();
                        settings.refresh
                    }
                    Err(error) => {
                        tracing::warn!(%error, "keys were not fetched from {}", settings.jwks_url);
                        backoff.pause()
                    }
                };
                tokio::select! {
                    () = stop.cancelled() => return,
                    () = tokio::time::sleep(pause) => {}
                    () = verifier.wanted.notified() => tokio::time::sleep_until(asked + AT_MOST_EVERY).await,
                }
            }
        });
        Ok(())
    }
}

async fn fetch(client: &reqwest::Client, url: &Url) -> reqwest::Result<JwkSet> {
    client.get(url.clone()).send().await?.error_for_status()?.json().await
}
