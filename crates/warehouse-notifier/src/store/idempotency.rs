//! Answers to requests that named a key.

use diesel::QueryableByName;
use diesel::sql_types::{Binary, Text, Timestamptz};
use diesel_async::{AsyncPgConnection, RunQueryDsl as _};
use platform::Timestamp;
use platform::database::{DatabaseError, prepared};

use crate::idempotency::Request;

#[derive(QueryableByName)]
struct Remembered {
    #[diesel(sql_type = Binary)]
    digest: Vec<u8>,
    #[diesel(sql_type = Text)]
    answer: String,
}

/// Takes the key, unless it is taken. Waits for whoever is about to take it.
pub(crate) async fn claim(
    conn: &mut AsyncPgConnection,
    request: &Request<'_>,
    key: &str,
) -> Result<bool, DatabaseError> {
    let statement = diesel::sql_query(
        "INSERT INTO idempotency_keys (merchant, operation, key, digest, answer, created_at) \
         VALUES ($1, $2, $3, $4, '', $5) ON CONFLICT ON CONSTRAINT idempotency_keys_pkey DO NOTHING",
    )
    .bind::<Text, _>(request.merchant.as_str())
    .bind::<Text, _>(request.operation)
    .bind::<Text, _>(key)
    .bind::<Binary, _>(request.digest.as_bytes().as_slice())
    .bind::<Timestamptz, _>(request.at);
    Ok(prepared(statement).execute(conn).await? == 1)
}

/// The body's digest and the answer under a key that is taken.
pub(crate) async fn remembered(
    conn: &mut AsyncPgConnection,
    request: &Request<'_>,
    key: &str,
) -> Result<(Vec<u8>, String), DatabaseError> {
    let query = diesel::sql_query(
        "SELECT digest, answer FROM idempotency_keys \
         WHERE merchant = $1 AND operation = $2 AND key = $3",
    )
    .bind::<Text, _>(request.merchant.as_str())
    .bind::<Text, _>(request.operation)
    .bind::<Text, _>(key);
    let Remembered { digest, answer } = prepared(query).get_result(conn).await?;
    Ok((digest, answer))
}

pub(crate) async fn remember(
    conn: &mut AsyncPgConnection,
    request: &Request<'_>,
    key: &str,
    answer: &str,
) -> Result<(), DatabaseError> {
    let statement = diesel::sql_query(
        "UPDATE idempotency_keys SET answer = $4 \
         WHERE merchant = $1 AND operation = $2 AND key = $3",
    )
    .bind::<Text, _>(request.merchant.as_str())
    .bind::<Text, _>(request.operation)
    .bind::<Text, _>(key)
    .bind::<Text, _>(answer);
    prepared(statement).execute(conn).await?;
    Ok(())
}

pub(crate) async fn forget(
    conn: &mut AsyncPgConnection,
    before: Timestamp,
) -> Result<(), DatabaseError> {
    let statement = diesel::sql_query("DELETE FROM idempotency_keys WHERE created_at < $1");
    prepared(statement.bind::<Timestamptz, _>(before)).execute(conn).await?;
    Ok(())
}
