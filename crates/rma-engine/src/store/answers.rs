//! Requests that take effect once. The row is written at the head of the transaction that does the
//! work: whoever sends the same again meanwhile waits for it, and then finds the answer.

use diesel::QueryableByName;
use diesel::sql_types::{Binary, Text, Timestamptz};
use diesel_async::{AsyncPgConnection, RunQueryDsl as _};
use domain::access::MerchantId;
use domain::order::Digest;
use platform::Timestamp;
use platform::database::{DatabaseError, Pool, prepared};

/// A request that its caller gave a key.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Keyed<'a> {
    pub(crate) merchant: &'a MerchantId,
    pub(crate) operation: &'static str,
    pub(crate) key: &'a str,
    /// What the caller knows the key as.
    pub(crate) name: &'static str,
    /// Of what was asked.
    pub(crate) request: Digest,
}

/// What is known of a key.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Known {
    /// Nothing: the caller does the work and then calls [`answer`].
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

/// Takes a key, or says what became of it.
pub(crate) async fn take(
    conn: &mut AsyncPgConnection,
    keyed: &Keyed<'_>,
    now: Timestamp,
) -> Result<Known, DatabaseError> {
    let statement = diesel::sql_query(
        "INSERT INTO answered_requests (merchant, operation, key, request, answer, answered_at) \
         VALUES ($1, $2, $3, $4, '', $5) \
         ON CONFLICT ON CONSTRAINT answered_requests_pkey DO NOTHING",
    )
    .bind::<Text, _>(keyed.merchant.as_str())
    .bind::<Text, _>(keyed.operation)
    .bind::<Text, _>(keyed.key)
    .bind::<Binary, _>(&keyed.request.as_bytes()[..])
    .bind::<Timestamptz, _>(now);
    if prepared(statement).execute(conn).await? == 1 {
        return Ok(Known::New);
    }
    let query = diesel::sql_query(
        "SELECT request, answer FROM answered_requests \
         WHERE merchant = $1 AND operation = $2 AND key = $3",
    )
    .bind::<Text, _>(keyed.merchant.as_str())
    .bind::<Text, _>(keyed.operation)
    .bind::<Text, _>(keyed.key);
    let row: Row = prepared(query).get_result(conn).await?;
    let same = row.request == keyed.request.as_bytes();
    Ok(if same { Known::Answered(row.answer) } else { Known::OtherRequest })
}

/// Keeps what is answered to a request that [`take`] found to be new.
pub(crate) async fn answer(
    conn: &mut AsyncPgConnection,
    keyed: &Keyed<'_>,
    answer: &str,
) -> Result<(), DatabaseError> {
    let statement = diesel::sql_query(
        "UPDATE answered_requests SET answer = $4 \
         WHERE merchant = $1 AND operation = $2 AND key = $3",
    )
    .bind::<Text, _>(keyed.merchant.as_str())
    .bind::<Text, _>(keyed.operation)
    .bind::<Text, _>(keyed.key)
    .bind::<Text, _>(answer);
    prepared(statement).execute(conn).await?;
    Ok(())
}

/// Forgets what was answered before a time.
pub(crate) async fn forget(pool: &Pool, before: Timestamp) -> Result<(), DatabaseError> {
    let statement = diesel::sql_query("DELETE FROM answered_requests WHERE answered_at < $1")
        .bind::<Timestamptz, _>(before);
    statement.execute(&mut *pool.get().await?).await?;
    Ok(())
}
