//! A request that comes again with the same `Idempotency-Key` gets the same answer and changes
//! nothing.
//!
//! The key is claimed at the beginning of the transaction that does the work and gets its answer at
//! the end of it. So two requests with one key come one after the other, and a request that failed
//! leaves its key free.

use std::time::Duration;

use actix_web::dev::Payload;
use actix_web::{FromRequest, HttpRequest};
use diesel_async::AsyncPgConnection;
use domain::access::MerchantId;
use domain::order::Digest;
use platform::{Failure, Kind, Problem, Process, Timestamp, chain};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::Error;
use crate::store::idempotency as store;

const TIDY_EVERY: Duration = Duration::from_secs(600);
const LONGEST_KEY: usize = 255;

/// The `Idempotency-Key` of a request, if it has one.
#[derive(Debug, Clone)]
pub(crate) struct Key(Option<String>);

#[derive(Debug, thiserror::Error)]
#[error("an Idempotency-Key has 1 to {LONGEST_KEY} visible characters")]
struct BadKey;

impl Failure for BadKey {
    fn kind(&self) -> Kind {
        Kind::Malformed
    }
}

impl FromRequest for Key {
    type Error = Problem;
    type Future = std::future::Ready<Result<Self, Problem>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        let key = match request.headers().get("idempotency-key") {
            None => Ok(Self(None)),
            Some(value) => match value.to_str() {
                Ok(key) if (1..=LONGEST_KEY).contains(&key.len()) => Ok(Self(Some(key.into()))),
                _ => Err(BadKey.into()),
            },
        };
        std::future::ready(key)
    }
}

/// A request as it is told from others.
#[derive(Debug)]
pub(crate) struct Request<'a> {
    pub(crate) merchant: &'a MerchantId,
    /// A key belongs to what was asked for.
    pub(crate) operation: &'static str,
    pub(crate) key: Key,
    /// Of the body.
    pub(crate) digest: Digest,
    pub(crate) at: Timestamp,
}

impl Request<'_> {
    /// The answer given before, if there is one.
    pub(crate) async fn begin<T: DeserializeOwned>(
        &self,
        conn: &mut AsyncPgConnection,
    ) -> Result<Option<T>, Error> {
        let Some(key) = &self.key.0 else { return Ok(None) };
        if store::claim(conn, self, key).await? {
            return Ok(None);
        }
        let (digest, answer) = store::remembered(conn, self, key).await?;
        if digest != self.digest.as_bytes() {
            return Err(Error::field("$", "this Idempotency-Key came with another body before"));
        }
        Ok(Some(serde_json::from_str(&answer)?))
    }

    /// Remembers the answer.
    pub(crate) async fn end(
        &self,
        conn: &mut AsyncPgConnection,
        answer: &impl Serialize,
    ) -> Result<(), Error> {
        match &self.key.0 {
            Some(key) => {
                Ok(store::remember(conn, self, key, &serde_json::to_string(answer)?).await?)
            }
            None => Ok(()),
        }
    }
}

/// Forgets answers past their time.
pub(crate) fn forget(process: &Process, retention: Duration) {
    let (pool, clock) = (process.pool.clone(), process.clock.clone());
    process.tasks.every("idempotency keys", TIDY_EVERY, move || {
        let (pool, before) = (pool.clone(), clock.now() - retention);
        async move {
            let forgotten = match pool.get().await {
                Ok(mut conn) => store::forget(&mut conn, before).await,
                Err(error) => Err(error),
            };
            if let Err(error) = forgotten {
                tracing::warn!(error = chain(&error), "old idempotency keys were not forgotten");
            }
        }
    });
}
