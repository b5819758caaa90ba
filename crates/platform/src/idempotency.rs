//! Requests that take effect once, however often and however parallel they are sent.
//!
//! A key is taken at the head of the transaction that does the work and gets its answer at the end
//! of it. Whoever sends the same again meanwhile waits, and then finds the answer; work that failed
//! leaves its key free. The table is in the database of every service that runs [`MIGRATIONS`].

use std::time::Duration;

use actix_web::{FromRequest, HttpRequest, dev::Payload};
use diesel::{
    OptionalExtension as _, QueryableByName,
    sql_types::{Binary, Text, Timestamptz},
};
use diesel_async::{AsyncPgConnection, RunQueryDsl as _};
use diesel_migrations::{EmbeddedMigrations, embed_migrations};
use domain::{
    access::MerchantId,
    json::Digest,
    json::{FieldError, ValidationError},
};

use crate::{
    ErrorKind, Failure, Problem, Process, Timestamp, chain,
    database::{DatabaseError, delete_older_than, prepared},
};

/// The table behind this.
pub const MIGRATIONS: EmbeddedMigrations = embed_migrations!("../../migrations/once");
/// The header in which a caller names its key.
pub const HEADER: &str = "Idempotency-Key";

const LONGEST_KEY: usize = 255;
const FORGET_EVERY: Duration = Duration::from_secs(600);

/// The `Idempotency-Key` of a request, if it has one.
#[derive(Debug, Clone)]
pub struct Key(pub Option<String>);

#[derive(Debug, thiserror::Error)]
#[error("an {HEADER} has 1 to {LONGEST_KEY} visible characters")]
pub struct BadKey;

impl Failure for BadKey {
    fn kind(&self) -> ErrorKind {
        ErrorKind::Malformed
    }
}

impl FromRequest for Key {
    type Error = Problem;
    type Future = std::future::Ready<Result<Self, Problem>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        let key = key_of(request).map(|key| Self(key.map(str::to_owned)));
        std::future::ready(key.map_err(Problem::from))
    }
}

/// The key of a request, if it has one.
pub fn key_of(request: &HttpRequest) -> Result<Option<&str>, BadKey> {
    let Some(value) = request.headers().get(HEADER) else { return Ok(None) };
    let key = value.to_str().ok().filter(|key| (1..=LONGEST_KEY).contains(&key.len()));
    key.map(Some).ok_or(BadKey)
}

/// A request that its caller gave a key.
#[derive(Debug, Clone, Copy)]
pub struct IdempotencyKey<'a> {
    pub merchant: &'a MerchantId,
    /// A key belongs to what was asked for.
    pub operation: &'static str,
    pub key: &'a str,
    /// What the caller knows the key as.
    pub name: &'static str,
    /// Of what was asked.
    pub request: Digest,
}

/// What is known of a key.
#[derive(Debug, PartialEq, Eq)]
pub enum KeyState {
    /// Nothing: whoever took it does the work and then calls [`IdempotencyKey::answer`].
    New,
    /// The same was asked before, and this is what was answered.
    Answered(String),
    /// Something else was asked under this key.
    OtherRequest,
}

#[derive(QueryableByName)]
struct Row {
    #[diesel(sql_type = Binary)]
    request: Vec<u8>,
    #[diesel(sql_type = Text)]
    answer: String,
}

impl IdempotencyKey<'_> {
    /// Takes the key, or says what became of it. Waits for whoever is about to take it.
    pub async fn take(
        &self,
        conn: &mut AsyncPgConnection,
        now: Timestamp,
    ) -> Result<KeyState, DatabaseError> {
        let statement = diesel::sql_query(
            "INSERT INTO answered_requests (merchant, operation, key, request, answer, answered_at) \
             VALUES ($1, $2, $3, $4, '', $5) \
             ON CONFLICT ON CONSTRAINT answered_requests_pkey DO NOTHING",
        )
        .bind::<Text, _>(self.merchant.as_str())
        .bind::<Text, _>(self.operation)
        .bind::<Text, _>(self.key)
        .bind::<Binary, _>(&self.request.as_bytes()[..])
        .bind::<Timestamptz, _>(now);
        if prepared(statement).execute(conn).await? == 1 {
            Ok(KeyState::New)
        } else {
            self.find(conn).await
        }
    }

    /// What is known of the key, without taking it.
    pub async fn find(&self, conn: &mut AsyncPgConnection) -> Result<KeyState, DatabaseError> {
        let query = diesel::sql_query(
            "SELECT request, answer FROM answered_requests \
             WHERE merchant = $1 AND operation = $2 AND key = $3",
        )
        .bind::<Text, _>(self.merchant.as_str())
        .bind::<Text, _>(self.operation)
        .bind::<Text, _>(self.key);
        let row: Option<Row> = prepared(query).get_result(conn).await.optional()?;
        Ok(match row {
            None => KeyState::New,
            Some(row) if row.request == self.request.as_bytes() => KeyState::Answered(row.answer),
            Some(_) => KeyState::OtherRequest,
        })
    }

    /// Keeps what is answered to a request that [`IdempotencyKey::take`] found to be new.
    pub async fn answer(
        &self,
        conn: &mut AsyncPgConnection,
        answer: &str,
    ) -> Result<(), DatabaseError> {
        let statement = diesel::sql_query(
            "UPDATE answered_requests SET answer = $4 \
             WHERE merchant = $1 AND operation = $2 AND key = $3",
        )
        .bind::<Text, _>(self.merchant.as_str())
        .bind::<Text, _>(self.operation)
        .bind::<Text, _>(self.key)
        .bind::<Text, _>(answer);
        prepared(statement).execute(conn).await?;
        Ok(())
    }

    /// What is told to whoever sends something else under the key.
    pub fn misused(&self) -> ValidationError {
        let detail = format!("another request was sent under this {}", self.name);
        FieldError::invalid("$", detail).into()
    }
}

/// Forgets answers past their time, now and then.
pub fn forget_answers(process: &Process, retention: Duration) {
    let (pool, clock) = (process.pool.clone(), process.clock.clone());
    process.tasks.spawn_interval("answers", FORGET_EVERY, move || {
        let (pool, before) = (pool.clone(), clock.now() - retention);
        async move {
            let forgotten =
                delete_older_than(&pool, "answered_requests", "answered_at", before).await;
            if let Err(error) = forgotten {
                tracing::warn!(error = chain(&error), "old answers were not forgotten");
            }
        }
    });
}
