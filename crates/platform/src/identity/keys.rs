//! The copy of auth's public keys.

use std::{sync::Arc, time::Duration};

use jsonwebtoken::jwk::{Jwk, JwkSet};
use serde::Deserialize;
use tokio::time::Instant;
use url::Url;

use super::Verifier;
use crate::{
    Tasks,
    config::{
        base_url, http_url,
        range::{self, DAY, SECOND},
    },
    http_client,
    retry::Backoff,
};

/// Time that a request with an unknown key id waits for new keys.
pub(super) const REFRESH_WAIT: Duration = Duration::from_secs(2);
/// Least time between two requests to auth, however many unknown key ids arrive.
const MIN_INTERVAL: Duration = Duration::from_secs(1);

/// `[identity]` of every service but auth.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// The `iss` that tokens must carry.
    #[serde(deserialize_with = "base_url")]
    pub issuer: String,
    #[serde(deserialize_with = "http_url")]
    pub jwks_url: Url,
    #[serde(deserialize_with = "range::time::<SECOND, DAY, _>")]
    pub jwks_refresh_interval: Duration,
}

impl Verifier {
    /// Fetches the keys now, then every `jwks_refresh_interval`, and when a token has an unknown key id.
    pub fn start_refreshing_keys(
        self: &Arc<Self>,
        settings: &Settings,
        tasks: &Tasks,
    ) -> anyhow::Result<()> {
        let client = http_client(Duration::from_secs(5))?;
        let verifier = self.clone();
        let settings = settings.clone();
        tasks.spawn("keys", |stop| async move {
            let mut backoff = Backoff::new(Duration::from_millis(200), Duration::from_secs(10));
            loop {
                let requested_at = Instant::now();
                let pause = match fetch(&client, &settings.jwks_url).await {
                    // auth is just starting; the keys that we have stay in use.
                    Ok(set) if set.keys.is_empty() => {
                        tracing::debug!("{} has no keys yet", settings.jwks_url);
                        backoff.pause()
                    }
                    Ok(set) => {
                        verifier.set_keys(&set);
                        backoff.reset();
                        settings.jwks_refresh_interval
                    }
                    Err(error) => {
                        tracing::warn!(%error, "cannot fetch keys from {}", settings.jwks_url);
                        backoff.pause()
                    }
                };
                tokio::select! {
                    () = stop.cancelled() => return,
                    () = tokio::time::sleep(pause) => {}
                    () = verifier.refresh_requested.notified() => tokio::time::sleep_until(requested_at + MIN_INTERVAL).await,
                }
            }
        });
        Ok(())
    }
}

/// Fetches the keys that we can read. A key of another type must not hide the others.
async fn fetch(client: &reqwest::Client, url: &Url) -> reqwest::Result<JwkSet> {
    #[derive(Deserialize)]
    struct Published {
        keys: Vec<serde_json::Value>,
    }
    let response = client.get(url.clone()).send().await?.error_for_status()?;
    let Published { keys } = response.json().await?;
    let readable = keys.into_iter().filter_map(|key| serde_json::from_value::<Jwk>(key).ok());
    Ok(JwkSet { keys: readable.collect() })
}
