//! Bearer tokens, verified with the public keys of auth.
//!
//! A request needs no call to auth. Keys are cached, and so are verified tokens, because clients use one
//! token for a day. Revocations are checked on every request, after the cache.
//!
//! See docs/decisions/tokens.md.

mod caller;
mod keys;
mod revocations;

use std::{borrow::Cow, collections::HashMap, sync::Arc, time::Duration};

use arc_swap::ArcSwapOption;
use aws_lc_rs::digest::{SHA256, digest};
use domain::access::{MerchantId, Scopes};
use jsonwebtoken::{
    Algorithm, DecodingKey, Validation,
    jwk::{Jwk, JwkSet, KeyOperations, PublicKeyUse},
};
use serde::{Deserialize, Deserializer, Serialize};
use tokio::sync::{Notify, watch};
use uuid::Uuid;

pub use caller::{Access, Caller};
pub use keys::Settings;
pub use revocations::Revocations;

use crate::{Clock, ErrorKind, Failure};

/// Defaults of `[identity]`, for services that check tokens.
pub const DEFAULTS: &str = include_str!("../identity.toml");
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
    #[serde(deserialize_with = "known_scopes")]
    pub scope: Scopes,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub merchant: Option<MerchantId>,
    /// The session of the person to whom the token belongs. A client's token has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sid: Option<Uuid>,
}

/// The claims that only the check of a token needs.
#[derive(Deserialize)]
struct CheckedClaims {
    #[serde(flatten)]
    claims: Claims,
    nbf: Option<i64>,
}

/// During a roll-out, auth may know a scope that this service does not know yet.
fn known_scopes<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Scopes, D::Error> {
    let text = Cow::<'_, str>::deserialize(deserializer)?;
    Ok(Scopes::known(&text))
}

/// The reason why a token was not accepted.
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
    #[error("there are no signing keys yet")]
    NoKeys,
    #[error("the revocations are not loaded yet")]
    NoRevocations,
}

impl Failure for TokenError {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::NoKeys | Self::NoRevocations => ErrorKind::Unavailable,
            _ => ErrorKind::Unauthenticated,
        }
    }

    fn challenge(&self) -> Option<Cow<'static, str>> {
        match self {
            Self::Invalid | Self::Expired | Self::Revoked => {
                let challenge = "Bearer error=\"invalid_token\"";
                Some(format!("{challenge}, error_description=\"{self}\"").into())
            }
            Self::Absent | Self::NoKeys | Self::NoRevocations => None,
        }
    }
}

/// The public keys by id.
struct Keys(HashMap<String, DecodingKey>);

/// Checks tokens.
pub struct Verifier {
    issuer: String,
    clock: Clock,
    keys: ArcSwapOption<Keys>,
    loaded: watch::Sender<u64>,
    refresh_requested: Notify,
    revocations: Revocations,
    seen: moka::sync::Cache<[u8; 32], Arc<Claims>>,
}

impl Verifier {
    /// A verifier that has no keys yet: see [`Verifier::set_keys`] and [`Verifier::start_refreshing_keys`].
    pub fn new(issuer: impl Into<String>, clock: Clock) -> Self {
        Self {
            issuer: issuer.into(),
            clock,
            keys: ArcSwapOption::empty(),
            loaded: watch::Sender::new(0),
            refresh_requested: Notify::new(),
            revocations: Revocations::default(),
            seen: moka::sync::Cache::builder()
                .max_capacity(50_000)
                .time_to_live(Duration::from_secs(3600))
                .build(),
        }
    }

    /// A verifier that rejects every token, for a service whose operations need none.
    pub fn disabled(clock: Clock) -> Self {
        let verifier = Self::new("", clock);
        verifier.set_keys(&JwkSet { keys: Vec::new() });
        verifier.revocations.set_loaded();
        verifier
    }

    pub fn revocations(&self) -> &Revocations {
        &self.revocations
    }

    /// Replaces the keys. A token that was signed with a removed key is no longer accepted.
    pub fn set_keys(&self, set: &JwkSet) {
        let usable = set.keys.iter().filter(|key| verifies_signatures(key)).filter_map(|key| {
            let id = key.common.key_id.clone()?;
            Some((id, DecodingKey::from_jwk(key).ok()?))
        });
        let fresh = Keys(usable.collect());
        let is_any_removed = self
            .keys
            .load()
            .as_ref()
            .is_some_and(|old| old.0.keys().any(|id| !fresh.0.contains_key(id)));
        self.keys.store(Some(Arc::new(fresh)));
        if is_any_removed {
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
        if !self.revocations.are_loaded() {
            return Err(TokenError::NoRevocations);
        }
        let session_ended = claims.sid.is_some_and(|id| self.revocations.covers_session(id));
        if session_ended || self.revocations.covers(&claims.jti, &claims.client_id) {
            return Err(TokenError::Revoked);
        }
        Ok(claims)
    }

    /// Returns the claims of a valid token, even if the token was revoked.
    pub async fn read(&self, token: &str) -> Result<Arc<Claims>, TokenError> {
        let claims = match self.cached(token) {
            Some(claims) => claims,
            None => self.check(token).await?,
        };
        if claims.exp <= self.clock.now().timestamp() {
            return Err(TokenError::Expired);
        }
        Ok(claims)
    }

    /// The claims of a token whose signature was verified before.
    fn cached(&self, token: &str) -> Option<Arc<Claims>> {
        self.seen.get(&fingerprint(token))
    }

    async fn check(&self, token: &str) -> Result<Arc<Claims>, TokenError> {
        let header = jsonwebtoken::decode_header(token).map_err(|_garbage| TokenError::Invalid)?;
        let is_typed =
            header.typ.as_deref().is_some_and(|typ| typ.eq_ignore_ascii_case(TOKEN_TYPE));
        // An extension that the issuer declares critical, of which we know none (RFC 7515, 4.1.11).
        let is_plain = header.crit.is_none() && header.alg == Algorithm::EdDSA;
        let id = header.kid.filter(|_| is_typed && is_plain).ok_or(TokenError::Invalid)?;
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
        let decoded = jsonwebtoken::decode::<CheckedClaims>(token, &key, &rules)
            .map_err(|_forged| TokenError::Invalid)?;
        let CheckedClaims { claims, nbf } = decoded.claims;
        if nbf.is_some_and(|nbf| nbf > self.clock.now().timestamp()) {
            return Err(TokenError::Invalid);
        }
        let claims = Arc::new(claims);
        self.seen.insert(fingerprint(token), claims.clone());
        Ok(claims)
    }

    fn key(&self, id: &str) -> Result<Option<DecodingKey>, TokenError> {
        let keys = self.keys.load();
        let keys = keys.as_ref().ok_or(TokenError::NoKeys)?;
        Ok(keys.0.get(id).cloned())
    }

    /// Waits a little for new keys, because an unknown key may be newer than our copy.
    async fn key_after_refresh(&self, id: &str) -> Result<Option<DecodingKey>, TokenError> {
        let mut loaded = self.loaded.subscribe();
        self.refresh_requested.notify_one();
        let refreshed = tokio::time::timeout(keys::REFRESH_WAIT, loaded.changed()).await;
        if refreshed.is_err() {
            tracing::debug!(key.id = id, "no new keys for an unknown key id");
        }
        self.key(id)
    }
}

/// Whether a key is meant for signatures. A key without `use` and `key_ops` may be used for all.
fn verifies_signatures(key: &Jwk) -> bool {
    let allows = |use_: &PublicKeyUse| *use_ == PublicKeyUse::Signature;
    let operations = key.common.key_operations.as_ref();
    key.common.public_key_use.as_ref().is_none_or(allows)
        && operations.is_none_or(|operations| operations.contains(&KeyOperations::Verify))
}

fn fingerprint(token: &str) -> [u8; 32] {
    let mut bytes = [0; 32];
    bytes.copy_from_slice(digest(&SHA256, token.as_bytes()).as_ref());
    bytes
}
