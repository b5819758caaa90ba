//! Bearer tokens, verified with the public keys of auth.
//!
//! A request needs no call to auth. Keys are cached, and so are verified tokens, because clients use one
//! token for a day. Revocations are checked on every request, after the cache.

mod caller;
mod keys;
mod revocations;

use std::{collections::HashMap, sync::Arc, time::Duration};

use arc_swap::ArcSwapOption;
use aws_lc_rs::digest::{SHA256, digest};
use domain::access::{MerchantId, Scopes};
use jsonwebtoken::{Algorithm, DecodingKey, Validation, jwk::JwkSet};
use serde::{Deserialize, Serialize};
use tokio::sync::{Notify, watch};

pub use caller::{Access, Caller};
pub use keys::Settings;
pub use revocations::Revocations;

use crate::{Clock, ErrorKind, Failure};

/// The audience of tokens (`aud`).
pub const AUDIENCE: &str = "backhaul";
/// The type in a token's header (RFC 9068).
pub const TOKEN_TYPE: &str = "at+jwt";

/// The claims of a token (RFC 9068), with the merchant of the client.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Claims {
    pub iss: String,
    pub sub: String,
    pub aud: String,
    pub client_id: String,
    pub jti: String,
    pub iat: i64,
    pub exp: i64,
    pub scope: Scopes,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub merchant: Option<MerchantId>,
}

/// Why a token was not accepted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TokenError {
    #[error("a bearer token is required")]
    Absent,
    #[error("the bearer token is not valid")]
    Invalid,
    #[error("the bearer token has expired")]
    Expired,
    #[error("the bearer token was revoked")]
    Revoked,
    #[error("no signing keys yet")]
    NoKeys,
    #[error("what was revoked is not known yet")]
    NoRevocations,
}

impl Failure for TokenError {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::NoKeys | Self::NoRevocations => ErrorKind::Unavailable,
            _ => ErrorKind::Unauthenticated,
        }
    }
}

/// The public keys in force, by id.
struct Keys(HashMap<String, DecodingKey>);

/// Checks tokens.
pub struct Verifier {
    issuer: String,
    clock: Clock,
    keys: ArcSwapOption<Keys>,
    loaded: watch::Sender<u64>,
    wanted: Notify,
    revocations: Revocations,
    seen: moka::sync::Cache<[u8; 32], Arc<Claims>>,
}

impl Verifier {
    /// A verifier that has no keys yet: see [`Verifier::set_keys`] and [`Verifier::follow`].
    pub fn new(issuer: impl Into<String>, clock: Clock) -> Self {
        Self {
            issuer: issuer.into(),
            clock,
            keys: ArcSwapOption::empty(),
            loaded: watch::Sender::new(0),
            wanted: Notify::new(),
            revocations: Revocations::default(),
            seen: moka::sync::Cache::builder()
                .max_capacity(50_000)
                .time_to_live(Duration::from_secs(3600))
                .build(),
        }
    }

    pub fn revocations(&self) -> &Revocations {
        &self.revocations
    }

    /// Replaces the keys in force; a token signed by a key that is gone is no longer accepted.
    pub fn set_keys(&self, set: &JwkSet) {
        let usable = set.keys.iter().filter_map(|key| {
            let id = key.common.key_id.clone()?;
            Some((id, DecodingKey::from_jwk(key).ok()?))
        });
        let fresh = Keys(usable.collect());
        let gone = self
            .keys
            .load()
            .as_ref()
            .is_some_and(|old| old.0.keys().any(|id| !fresh.0.contains_key(id)));
        self.keys.store(Some(Arc::new(fresh)));
        if gone {
            self.seen.invalidate_all();
        }
        self.loaded.send_modify(|generation| *generation += 1);
    }

    pub fn has_keys(&self) -> bool {
        self.keys.load().is_some()
    }

    /// Verifies a token and returns its claims.
    pub async fn verify(&self, token: &str) -> Result<Arc<Claims>, TokenError> {
        let claims = self.read(token).await?;
        if !self.revocations.are_known() {
            return Err(TokenError::NoRevocations);
        }
        if self.revocations.covers(&claims.jti, &claims.client_id) {
            return Err(TokenError::Revoked);
        }
        Ok(claims)
    }

    /// Returns the claims of a valid token, even if the token was revoked.
    pub async fn read(&self, token: &str) -> Result<Arc<Claims>, TokenError> {
        let claims = match self.remembered(token) {
            Some(claims) => claims,
            None => self.check(token).await?,
        };
        if claims.exp <= self.clock.now().timestamp() {
            return Err(TokenError::Expired);
        }
        Ok(claims)
    }

    fn remembered(&self, token: &str) -> Option<Arc<Claims>> {
        self.seen.get(&fingerprint(token))
    }

    async fn check(&self, token: &str) -> Result<Arc<Claims>, TokenError> {
        let header = jsonwebtoken::decode_header(token).map_err(|_garbage| TokenError::Invalid)?;
        let typed = header.typ.as_deref().is_some_and(|typ| typ.eq_ignore_ascii_case(TOKEN_TYPE));
        let id = header
            .kid
            .filter(|_| typed && header.alg == Algorithm::EdDSA)
            .ok_or(TokenError::Invalid)?;
        let key = match self.key(&id)? {
            Some(key) => key,
            None => self.key_after_refresh(&id).await?.ok_or(TokenError::Invalid)?,
        };
        let mut rules = Validation::new(Algorithm::EdDSA);
        rules.set_issuer(&[&self.issuer]);
        rules.set_audience(&[AUDIENCE]);
        rules.set_required_spec_claims(&["exp", "iss", "aud", "sub"]);
        // Expiry is checked against our own clock, on every use.
        rules.validate_exp = false;
        let decoded = jsonwebtoken::decode::<Claims>(token, &key, &rules)
            .map_err(|_forged| TokenError::Invalid)?;
        let claims = Arc::new(decoded.claims);
        self.seen.insert(fingerprint(token), claims.clone());
        Ok(claims)
    }

    fn key(&self, id: &str) -> Result<Option<DecodingKey>, TokenError> {
        let keys = self.keys.load();
        let keys = keys.as_ref().ok_or(TokenError::NoKeys)?;
        Ok(keys.0.get(id).cloned())
    }

    /// A key we have not seen may be newer than our copy: ask for a fresh one and wait a little.
    async fn key_after_refresh(&self, id: &str) -> Result<Option<DecodingKey>, TokenError> {
        let mut loaded = self.loaded.subscribe();
        self.wanted.notify_one();
        let fresh = tokio::time::timeout(keys::REFRESH_WAIT, loaded.changed()).await;
        if fresh.is_err() {
            tracing::debug!(key.id = id, "no fresh keys for an unknown key id");
        }
        self.key(id)
    }
}

fn fingerprint(token: &str) -> [u8; 32] {
    let mut bytes = [0; 32];
    bytes.copy_from_slice(digest(&SHA256, token.as_bytes()).as_ref());
    bytes
}
