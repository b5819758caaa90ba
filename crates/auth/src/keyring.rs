//! The keys that sign tokens.
//!
//! A key is made and published, then signs, then stays published until the last token it signed
//! has expired. So whoever checks tokens always has the key, however old its copy of the list is
//! allowed to be, and rotation is an event nobody notices.

use std::{sync::Arc, time::Duration};

use arc_swap::ArcSwap;
use aws_lc_rs::signature::Ed25519KeyPair;
use base64::{
    Engine,
    engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD},
};
use chrono::TimeDelta;
use diesel_async::{AsyncConnection as _, AsyncPgConnection};
use jsonwebtoken::{
    Algorithm, EncodingKey, Header,
    jwk::{Jwk, JwkSet, PublicKeyUse, ThumbprintHash},
};
use platform::{
    Clock, Process, Timestamp, chain,
    database::Pool,
    identity::{Claims, TOKEN_TYPE, Verifier},
    sealing::{SealError, Sealer},
};
use secrecy::ExposeSecret;
use serde_json::Value;

use crate::{
    error::Error,
    settings::{Keys, LONGEST_LIFETIME},
    store::{
        audit::{self, Entry},
        keys::{self, StoredKey},
    },
};

/// How often a replica looks whether another one made a key.
const LOOK_EVERY: Duration = Duration::from_secs(2);
/// Who makes and removes keys when it is time.
const ITSELF: &str = "keyring";
/// Clocks differ, caches linger: published keys stay a little longer than they must.
const MARGIN: TimeDelta = TimeDelta::minutes(10);

struct Key {
    /// The token's first part, which is always the same.
    header: String,
    private: Ed25519KeyPair,
    public: Jwk,
    activates_at: Timestamp,
}

impl Key {
    /// A token in its compact form (RFC 7515). The library would read the private key anew for
    /// every token, at more than the cost of the signature itself.
    fn sign(&self, claims: &Claims) -> Result<String, Error> {
        let mut token = format!("{}.", self.header);
        URL_SAFE_NO_PAD.encode_string(serde_json::to_vec(claims)?, &mut token);
        let signature = self.private.sign(token.as_bytes());
        token.push('.');
        URL_SAFE_NO_PAD.encode_string(signature, &mut token);
        Ok(token)
    }
}

/// The keys in this process.
pub(crate) struct Keyring {
    keys: ArcSwap<Vec<Key>>,
    pool: Pool,
    clock: Clock,
    sealer: Arc<Sealer>,
    verifier: Arc<Verifier>,
    settings: Keys,
}

impl Keyring {
    /// Makes the first key when there is none, and every later one when it is time.
    pub(crate) fn start(
        process: &Process,
        settings: &Keys,
        sealer: Arc<Sealer>,
        verifier: Arc<Verifier>,
    ) -> Arc<Self> {
        let keyring = Arc::new(Self {
            keys: ArcSwap::default(),
            pool: process.pool.clone(),
            clock: process.clock.clone(),
            sealer,
            verifier,
            settings: settings.clone(),
        });
        let same = keyring.clone();
        process.health.add("signing keys", move || {
            let missing = same.keys.load().is_empty();
            async move { if missing { Err("there is none yet".to_owned()) } else { Ok(()) } }
        });
        let same = keyring.clone();
        process.tasks.spawn_interval("keyring", LOOK_EVERY, move || {
            let keyring = same.clone();
            async move {
                if let Err(error) = keyring.refresh().await {
                    tracing::warn!(error = chain(&error), "the signing keys are not up to date");
                }
            }
        });
        keyring
    }

    /// Signs with the newest key that may sign; `None` before the first one is there.
    pub(crate) fn sign(&self, claims: &Claims, now: Timestamp) -> Result<Option<String>, Error> {
        let keys = self.keys.load();
        let Some(key) = keys.iter().rev().find(|key| key.activates_at <= now) else {
            return Ok(None);
        };
        key.sign(claims).map(Some)
    }

    /// Every key that anyone may still need.
    pub(crate) fn published(&self) -> JwkSet {
        JwkSet { keys: self.keys.load().iter().map(|key| key.public.clone()).collect() }
    }

    /// Makes a key now. It signs once every copy of the published keys has had time to be renewed.
    pub(crate) async fn rotate(&self, actor: &str) -> Result<(String, Timestamp), Error> {
        let now = self.clock.now();
        let mut conn = self.pool.get().await?;
        let made = conn
            .transaction(async |conn| {
                keys::lock(conn).await?;
                self.make(conn, actor, now + self.ahead()).await
            })
            .await?;
        drop(conn);
        self.refresh().await?;
        Ok(made)
    }

    async fn refresh(&self) -> Result<(), Error> {
        let now = self.clock.now();
        let mut conn = self.pool.get().await?;
        let mut stored = keys::all(&mut conn).await?;
        if self.is_due(&stored, now) || !outlived(&stored, now).is_empty() {
            stored = conn.transaction(async |conn| self.tend(conn, now).await).await?;
        }
        let keys = stored.into_iter().map(|key| self.open(key)).collect::<Result<Vec<_>, _>>()?;
        self.keys.store(Arc::new(keys));
        self.verifier.set_keys(&self.published());
        Ok(())
    }

    /// With every other replica kept out: makes the key that is due, removes those nobody needs.
    async fn tend(
        &self,
        conn: &mut AsyncPgConnection,
        now: Timestamp,
    ) -> Result<Vec<StoredKey>, Error> {
        keys::lock(conn).await?;
        let stored = keys::all(conn).await?;
        if self.is_due(&stored, now) {
            let activates_at = if stored.is_empty() { now } else { now + self.ahead() };
            self.make(conn, ITSELF, activates_at).await?;
        }
        let outlived = outlived(&stored, now);
        keys::remove(conn, &outlived).await?;
        for id in outlived {
            let detail = serde_json::json!({});
            audit::write(conn, entry(ITSELF, "signing_key.removed", &id, detail), now).await?;
        }
        keys::all(conn).await
    }

    /// Makes a key, on record.
    async fn make(
        &self,
        conn: &mut AsyncPgConnection,
        actor: &str,
        activates_at: Timestamp,
    ) -> Result<(String, Timestamp), Error> {
        let pair = Ed25519KeyPair::generate()?;
        let document = pair.to_pkcs8v1()?;
        let private = EncodingKey::from_ed_der(document.as_ref());
        let mut public = Jwk::from_encoding_key(&private, Algorithm::EdDSA)?;
        let id = public.thumbprint(ThumbprintHash::SHA256)?;
        public.common.key_id = Some(id.clone());
        public.common.public_key_use = Some(PublicKeyUse::Signature);
        let private_key =
            self.sealer.seal(&sealing_context(&id), &STANDARD.encode(document.as_ref()))?;
        let created_at = self.clock.now();
        keys::insert(
            conn,
            &StoredKey {
                id: id.clone(),
                private_key,
                public_key: public,
                created_at,
                activates_at,
            },
        )
        .await?;
        let detail = serde_json::json!({ "activates_at": activates_at });
        audit::write(conn, entry(actor, "signing_key.made", &id, detail), created_at).await?;
        tracing::info!(key.id = id, %activates_at, "made signing key {id}");
        Ok((id, activates_at))
    }

    fn open(&self, stored: StoredKey) -> Result<Key, Error> {
        let secret = self.sealer.open(&sealing_context(&stored.id), &stored.private_key)?;
        let der = STANDARD.decode(secret.expose_secret()).map_err(|_damaged| SealError::Damaged)?;
        let private = Ed25519KeyPair::from_pkcs8(&der).map_err(|_rejected| SealError::Damaged)?;
        let mut header = Header::new(Algorithm::EdDSA);
        header.typ = Some(TOKEN_TYPE.to_owned());
        header.kid = Some(stored.id);
        Ok(Key {
            header: URL_SAFE_NO_PAD.encode(serde_json::to_vec(&header)?),
            private,
            public: stored.public_key,
            activates_at: stored.activates_at,
        })
    }

    fn is_due(&self, stored: &[StoredKey], now: Timestamp) -> bool {
        let lifetime = TimeDelta::from_std(self.settings.rotate_every).unwrap_or(TimeDelta::MAX);
        stored.last().is_none_or(|newest| now - newest.activates_at > lifetime)
    }

    fn ahead(&self) -> TimeDelta {
        TimeDelta::from_std(self.settings.publish_ahead).unwrap_or(TimeDelta::MAX)
    }
}

/// Keys whose successor has been signing for longer than any token lives.
fn outlived(stored: &[StoredKey], now: Timestamp) -> Vec<String> {
    let gone = |successor: &StoredKey| now - successor.activates_at > LONGEST_LIFETIME + MARGIN;
    let pairs = stored.iter().zip(stored.iter().skip(1));
    pairs.filter(|(_, successor)| gone(successor)).map(|(key, _)| key.id.clone()).collect()
}

fn entry<'a>(actor: &'a str, action: &'static str, id: &str, detail: Value) -> Entry<'a> {
    Entry { actor, action, subject: format!("signing_key/{id}"), merchant: None, detail }
}

fn sealing_context(id: &str) -> String {
    format!("signing-key:{id}")
}
