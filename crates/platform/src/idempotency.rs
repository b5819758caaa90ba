//! Requests that take effect once per `Idempotency-Key`, also when they are sent in parallel.
//!
//! [`run`] inserts the key first and stores the response last, in the transaction that does the work. A repeated
//! request waits for that transaction and returns the stored response; work that failed leaves its key unused.
//! A batch locks rows first and inserts its keys last, see [`find_all`] and [`insert_all`]. Services that use
//! this run [`MIGRATIONS`].
//!
//! See docs/decisions/idempotency.md.

mod batch;
mod erase;

use std::time::Duration;

use actix_web::{FromRequest, HttpRequest, dev::Payload};
use chrono::TimeDelta;
use diesel::OptionalExtension as _;
use diesel_async::{AsyncPgConnection, RunQueryDsl as _};
use diesel_migrations::{EmbeddedMigrations, embed_migrations};
use domain::{
    access::MerchantId,
    json::Digest,
    json::{FieldError, ValidationError},
};
use serde::{Deserialize, Serialize};

use crate::{
    ErrorKind, Failure, Problem, Process, Timestamp, chain,
    config::range::{self, CENTURY, HOUR},
    database::{DatabaseError, delete_older_than, prepared, sql},
};

pub use batch::{find_all, insert_all, next_state};
pub use erase::erase_responses;

/// The table `idempotency_keys`.
pub const MIGRATIONS: EmbeddedMigrations = embed_migrations!("../../migrations/idempotency");
/// The request header with the key.
pub const HEADER: &str = "Idempotency-Key";

pub(crate) const MAX_KEY_LENGTH: usize = 255;
const CLEANUP_INTERVAL: Duration = Duration::from_secs(600);

/// `[idempotency]`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    #[serde(deserialize_with = "range::time::<HOUR, CENTURY, _>")]
    pub retention: Duration,
}

/// The `Idempotency-Key` header of a request, if it has one.
#[derive(Debug, Clone)]
pub struct KeyHeader(pub Option<String>);

#[derive(Debug, thiserror::Error)]
#[error("{HEADER} must have 1 to {MAX_KEY_LENGTH} visible characters")]
pub struct BadKey;

impl Failure for BadKey {
    fn kind(&self) -> ErrorKind {
        ErrorKind::Malformed
    }
}

impl KeyHeader {
    /// Combines the header with the merchant, the operation and the digest of the request. `None` if the
    /// request has no header.
    pub fn key_for<'a>(
        &'a self,
        merchant: impl Into<Option<&'a MerchantId>>,
        operation: &'static str,
        request: Digest,
    ) -> Option<IdempotencyKey<'a>> {
        let key = self.0.as_deref()?;
        Some(IdempotencyKey { merchant: merchant.into(), operation, key, name: HEADER, request })
    }
}

impl FromRequest for KeyHeader {
    type Error = Problem;
    type Future = std::future::Ready<Result<Self, Problem>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        let Some(value) = request.headers().get(HEADER) else {
            return std::future::ready(Ok(Self(None)));
        };
        let key = value.to_str().ok().filter(|key| (1..=MAX_KEY_LENGTH).contains(&key.len()));
        let key = key.map(|key| Self(Some(key.to_owned())));
        std::future::ready(key.ok_or_else(|| BadKey.into()))
    }
}

/// The idempotency key of one request.
#[derive(Debug, Clone, Copy)]
pub struct IdempotencyKey<'a> {
    /// `None` for a caller that belongs to no merchant.
    pub merchant: Option<&'a MerchantId>,
    /// Keys of different operations are different keys.
    pub operation: &'static str,
    pub key: &'a str,
    /// The name of the field or header with the key, for error messages.
    pub name: &'static str,
    /// The digest of the request: a key belongs to one request.
    pub request: Digest,
}

/// A key without its merchant, which can outlive the request.
#[derive(Debug)]
pub struct OwnedKey {
    operation: &'static str,
    key: String,
    name: &'static str,
    request: Digest,
}

impl OwnedKey {
    pub fn of<'a>(&'a self, merchant: &'a MerchantId) -> IdempotencyKey<'a> {
        let Self { operation, key, name, request } = self;
        IdempotencyKey { merchant: Some(merchant), operation, key, name, request: *request }
    }
}

impl From<IdempotencyKey<'_>> for OwnedKey {
    fn from(key: IdempotencyKey<'_>) -> Self {
        let IdempotencyKey { operation, key, name, request, .. } = key;
        Self { operation, key: key.to_owned(), name, request }
    }
}

#[derive(Debug, PartialEq, Eq)]
pub enum KeyState {
    New,
    /// The same request was completed with this response.
    Completed(String),
    /// The key belongs to a different request.
    OtherRequest,
}

/// Does the work and returns its response as JSON, or returns the stored response when the same
/// request was completed before. Must run in a transaction. Without a key the work is always done.
pub async fn run<T: Serialize, E>(
    conn: &mut AsyncPgConnection,
    key: Option<&IdempotencyKey<'_>>,
    now: Timestamp,
    work: impl AsyncFnOnce(&mut AsyncPgConnection) -> Result<T, E>,
) -> Result<String, E>
where
    E: From<DatabaseError> + From<ValidationError> + From<serde_json::Error>,
{
    if let Some(key) = key
        && let Some(response) = key.completed(key.insert(conn, now).await?)?
    {
        return Ok(response);
    }
    let response = serde_json::to_string(&work(conn).await?)?;
    if let Some(key) = key {
        key.complete(conn, &response).await?;
    }
    Ok(response)
}

/// The stored response, if the same request was completed before. A request that would no longer be
/// valid, because the merchant's settings changed since, still gets its first response.
pub async fn find<E>(
    conn: &mut AsyncPgConnection,
    key: &IdempotencyKey<'_>,
) -> Result<Option<String>, E>
where
    E: From<DatabaseError> + From<ValidationError>,
{
    Ok(key.completed(key.load(conn).await?)?)
}

crate::rows! {
    struct Row {
        request: Vec<u8>,
        response: String,
    }
}

impl IdempotencyKey<'_> {
    /// The merchant in the table. No merchant has an empty identifier.
    fn merchant_name(&self) -> &str {
        self.merchant.map_or("", MerchantId::as_str)
    }

    /// Inserts the key, or returns its state. Waits for a transaction that is inserting it.
    pub async fn insert(
        &self,
        conn: &mut AsyncPgConnection,
        now: Timestamp,
    ) -> Result<KeyState, DatabaseError> {
        let statement = sql(
            "INSERT INTO idempotency_keys \
               (merchant, operation, key, request_digest, response, completed_at) \
             VALUES ($1, $2, $3, $4, '', $5) \
             ON CONFLICT ON CONSTRAINT idempotency_keys_pkey DO NOTHING",
            (self.merchant_name(), self.operation, self.key, &self.request.as_bytes()[..], now),
        );
        if prepared(statement).execute(conn).await? == 1 {
            Ok(KeyState::New)
        } else {
            self.load(conn).await
        }
    }

    async fn load(&self, conn: &mut AsyncPgConnection) -> Result<KeyState, DatabaseError> {
        let query = sql(
            "SELECT request_digest AS request, response FROM idempotency_keys \
             WHERE merchant = $1 AND operation = $2 AND key = $3",
            (self.merchant_name(), self.operation, self.key),
        );
        let row: Option<Row> = prepared(query).get_result(conn).await.optional()?;
        Ok(match row {
            None => KeyState::New,
            Some(row) if row.request == self.request.as_bytes() => {
                KeyState::Completed(row.response)
            }
            Some(_) => KeyState::OtherRequest,
        })
    }

    async fn complete(
        &self,
        conn: &mut AsyncPgConnection,
        response: &str,
    ) -> Result<(), DatabaseError> {
        let statement = sql(
            "UPDATE idempotency_keys SET response = $4 \
             WHERE merchant = $1 AND operation = $2 AND key = $3",
            (self.merchant_name(), self.operation, self.key, response),
        );
        prepared(statement).execute(conn).await?;
        Ok(())
    }

    /// The first response of the request, if it was completed before.
    pub fn completed(&self, state: KeyState) -> Result<Option<String>, ValidationError> {
        match state {
            KeyState::New => Ok(None),
            KeyState::Completed(response) => Ok(Some(response)),
            KeyState::OtherRequest => {
                let detail = format!("this {} was used for a different request", self.name);
                Err(FieldError::invalid("$", detail).into())
            }
        }
    }
}

/// Deletes expired keys periodically.
pub fn delete_expired(process: &Process, settings: &Settings) {
    let pool = process.pool.clone();
    let clock = process.clock.clone();
    let retention = settings.retention;
    process.tasks.spawn_interval("idempotency keys", CLEANUP_INTERVAL, move || {
        let pool = pool.clone();
        let now = clock.now();
        async move {
            let age = TimeDelta::from_std(retention).unwrap_or(TimeDelta::MAX);
            let deleted =
                delete_older_than(&pool, "idempotency_keys", "completed_at", now, age).await;
            if let Err(error) = deleted {
                tracing::warn!(error = chain(&error), "expired idempotency keys were not deleted");
            }
        }
    });
}
