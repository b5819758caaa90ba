//! The keys that sign tokens, and their rotation.
//!
//! A key is published before it signs, and stays published until the last token that it signed has
//! expired. A service with a cached key set can therefore verify every valid token. Only a key without a
//! predecessor signs at once.

use std::{sync::Arc, time::Duration};

use arc_swap::ArcSwap;
use aws_lc_rs::signature::Ed25519KeyPair;
use base64::{
    Engine,
    engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD},
};
use chrono::{DateTime, TimeDelta, Utc};
use diesel_async::AsyncPgConnection;
use jsonwebtoken::{
    Algorithm, EncodingKey, Header,
    jwk::{Jwk, JwkSet, PublicKeyUse, ThumbprintHash},
};
use platform::{
    Clock, Process, Timestamp, chain,
    database::{Pool, agreed_time},
    identity::{Claims, TOKEN_TYPE, Verifier},
    sealing::{SealError, Sealer},
};
use secrecy::ExposeSecret;
use serde::Serialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

use crate::{
    audit::NewAuditRecord,
    error::Error,
    settings::Keys,
    store::{
        audit,
        signing_keys::{self, StoredKey},
    },
    token_lifetimes::MAX_TOKEN_LIFETIME,
};

/// How often a replica reads the keys that other replicas created.
const POLL_INTERVAL: Duration = Duration::from_secs(2);
/// Author of automatic changes in the audit log.
const AUTOMATIC_ROTATION: &str = "key_rotation";
/// Keys stay published a little longer than necessary, because clocks differ and caches are stale.
const RETIREMENT_MARGIN: TimeDelta = TimeDelta::minutes(10);

/// A new signing key.
#[derive(Serialize, ToSchema)]
pub(crate) struct SigningKeyView {
    id: String,
    /// The key is already published, and signs from this time on.
    activates_at: DateTime<Utc>,
}

struct SigningKey {
    /// The encoded JWT header, which is the same for every token.
    header: String,
    private: Ed25519KeyPair,
    public: Jwk,
    activates_at: Timestamp,
}

impl SigningKey {
    /// A signed JWT in compact form (RFC 7515). `jsonwebtoken::encode` would parse the private key
    /// for every token, which takes longer than signing.
    fn sign(&self, claims: &Claims) -> Result<String, Error> {
        let mut token = format!("{}.", self.header);
        URL_SAFE_NO_PAD.encode_string(serde_json::to_vec(claims)?, &mut token);
        let signature = self.private.sign(token.as_bytes());
        token.push('.');
        URL_SAFE_NO_PAD.encode_string(signature, &mut token);
        Ok(token)
    }
}

/// The published keys, oldest first.
pub(crate) struct SigningKeys {
    keys: ArcSwap<Vec<SigningKey>>,
    pool: Pool,
    clock: Clock,
    sealer: Arc<Sealer>,
    verifier: Arc<Verifier>,
    settings: Keys,
}

impl SigningKeys {
    /// Starts the task that reads, creates and deletes keys.
    pub(crate) fn start(
        process: &Process,
        settings: &Keys,
        sealer: Arc<Sealer>,
        verifier: Arc<Verifier>,
    ) -> Arc<Self> {
        let signing_keys = Arc::new(Self {
            keys: ArcSwap::default(),
            pool: process.pool.clone(),
            clock: process.clock.clone(),
            sealer,
            verifier,
            settings: settings.clone(),
        });
        let checked = signing_keys.clone();
        process.health.add("signing keys", move || {
            let missing = checked.keys.load().is_empty();
            async move { if missing { Err("none created yet".to_owned()) } else { Ok(()) } }
        });
        let refreshed = signing_keys.clone();
        process.tasks.spawn_interval("signing keys", POLL_INTERVAL, move || {
            let signing_keys = refreshed.clone();
            async move {
                if let Err(error) = signing_keys.refresh().await {
                    tracing::warn!(error = chain(&error), "refreshing the signing keys failed");
                }
            }
        });
        signing_keys
    }

    /// Signs with the newest active key; `None` if there is no active key yet.
    pub(crate) fn sign(&self, claims: &Claims, now: Timestamp) -> Result<Option<String>, Error> {
        let keys = self.keys.load();
        let Some(key) = keys.iter().rev().find(|key| key.activates_at <= now) else {
            return Ok(None);
        };
        key.sign(claims).map(Some)
    }

    pub(crate) fn public_keys(&self) -> JwkSet {
        JwkSet { keys: self.keys.load().iter().map(|key| key.public.clone()).collect() }
    }

    /// Creates a key now. It signs after `publish_ahead`.
    pub(crate) async fn rotate(&self, actor: &str) -> Result<SigningKeyView, Error> {
        let now = self.clock.now();
        let mut conn = self.pool.get().await?;
        let created = conn
            .transaction(async |conn| {
                signing_keys::lock(conn).await?;
                self.create(conn, actor, now + self.publish_ahead()).await
            })
            .await?;
        drop(conn);
        self.refresh().await?;
        Ok(created)
    }

    async fn refresh(&self) -> Result<(), Error> {
        let now = self.clock.now();
        let mut conn = self.pool.get().await?;
        let mut stored = signing_keys::all(&mut conn).await?;
        if self.is_rotation_due(&stored, now) || !retired(&stored, now).is_empty() {
            stored = conn.transaction(async |conn| self.rotate_due(conn, now).await).await?;
        }
        let keys =
            stored.into_iter().map(|key| self.decrypt(key)).collect::<Result<Vec<_>, _>>()?;
        self.keys.store(Arc::new(keys));
        self.verifier.set_keys(&self.public_keys());
        Ok(())
    }

    /// Creates the next key if it is due and deletes retired keys, while other replicas wait.
    async fn rotate_due(
        &self,
        conn: &mut AsyncPgConnection,
        now: Timestamp,
    ) -> Result<Vec<StoredKey>, Error> {
        signing_keys::lock(conn).await?;
        let stored = signing_keys::all(conn).await?;
        if self.is_rotation_due(&stored, now) {
            let activates_at = if stored.is_empty() { now } else { now + self.publish_ahead() };
            self.create(conn, AUTOMATIC_ROTATION, activates_at).await?;
        }
        // A key that is deleted too early ends valid tokens, so the database's clock decides.
        let agreed = agreed_time(conn, now).await?;
        let retired = agreed.map_or_else(Vec::new, |now| retired(&stored, now));
        signing_keys::delete(conn, &retired).await?;
        for id in retired {
            let record = record(AUTOMATIC_ROTATION, "signing_key.deleted", &id, json!({}));
            audit::insert(conn, record, now).await?;
        }
        signing_keys::all(conn).await
    }

    async fn create(
        &self,
        conn: &mut AsyncPgConnection,
        actor: &str,
        activates_at: Timestamp,
    ) -> Result<SigningKeyView, Error> {
        let pair = Ed25519KeyPair::generate()?;
        let document = pair.to_pkcs8v1()?;
        let private = EncodingKey::from_ed_der(document.as_ref());
        let mut public = Jwk::from_encoding_key(&private, Algorithm::EdDSA)?;
        let id = public.thumbprint(ThumbprintHash::SHA256)?;
        public.common.key_id = Some(id.clone());
        public.common.public_key_use = Some(PublicKeyUse::Signature);
        let private_key =
            self.sealer.seal(&sealing_context(&id), &STANDARD.encode(document.as_ref()))?;
        let now = self.clock.now();
        let stored = StoredKey {
            id: id.clone(),
            private_key,
            public_key: public,
            created_at: now,
            activates_at,
        };
        signing_keys::insert(conn, &stored).await?;
        let detail = json!({ "activates_at": activates_at });
        audit::insert(conn, record(actor, "signing_key.created", &id, detail), now).await?;
        tracing::info!(key.id = id, %activates_at, "created signing key {id}");
        Ok(SigningKeyView { id, activates_at })
    }

    fn decrypt(&self, stored: StoredKey) -> Result<SigningKey, Error> {
        let secret = self.sealer.open(&sealing_context(&stored.id), &stored.private_key)?;
        let der = STANDARD.decode(secret.expose_secret()).map_err(|_damaged| SealError::Damaged)?;
        let private = Ed25519KeyPair::from_pkcs8(&der).map_err(|_rejected| SealError::Damaged)?;
        let mut header = Header::new(Algorithm::EdDSA);
        header.typ = Some(TOKEN_TYPE.to_owned());
        header.kid = Some(stored.id);
        Ok(SigningKey {
            header: URL_SAFE_NO_PAD.encode(serde_json::to_vec(&header)?),
            private,
            public: stored.public_key,
            activates_at: stored.activates_at,
        })
    }

    fn is_rotation_due(&self, stored: &[StoredKey], now: Timestamp) -> bool {
        let interval = TimeDelta::from_std(self.settings.rotate_every).unwrap_or(TimeDelta::MAX);
        stored.last().is_none_or(|newest| now - newest.activates_at > interval)
    }

    fn publish_ahead(&self) -> TimeDelta {
        TimeDelta::from_std(self.settings.publish_ahead).unwrap_or(TimeDelta::MAX)
    }
}

/// Ids of the keys whose tokens have all expired: their successor has been signing for longer than a
/// token lives.
fn retired(stored: &[StoredKey], now: Timestamp) -> Vec<String> {
    let is_old = |key: &StoredKey| now - key.activates_at > MAX_TOKEN_LIFETIME + RETIREMENT_MARGIN;
    let pairs = stored.iter().zip(stored.iter().skip(1));
    pairs.filter(|(_, successor)| is_old(successor)).map(|(key, _)| key.id.clone()).collect()
}

fn record<'a>(actor: &'a str, action: &'static str, id: &str, detail: Value) -> NewAuditRecord<'a> {
    let subject = format!("signing_key/{id}");
    NewAuditRecord { actor, action, subject, merchant: None, detail }
}

fn sealing_context(id: &str) -> String {
    format!("signing-key:{id}")
}
