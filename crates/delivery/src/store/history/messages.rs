//! New messages of a merchant, for listeners.

use diesel_async::{AsyncPgConnection, RunQueryDsl};
use platform::{
    Timestamp,
    database::{DatabaseError, sql},
};
use uuid::Uuid;

platform::rows! {
    /// A message with its body.
    #[derive(Debug)]
    pub(crate) struct StoredMessage {
        pub(crate) id: Uuid,
        pub(crate) kind: String,
        pub(crate) version: i32,
        pub(crate) event: String,
        pub(crate) sequence: i64,
        pub(crate) body: Vec<u8>,
        pub(crate) traceparent: Option<String>,
        pub(crate) created_at: Timestamp,
    }
}

/// Returns the messages of a merchant with ids from `from` up to but without `until`, oldest first.
pub(crate) async fn messages_between(
    conn: &mut AsyncPgConnection,
    merchant: &str,
    (from, until): (Uuid, Uuid),
    limit: i64,
) -> Result<Vec<StoredMessage>, DatabaseError> {
    let statement = sql(
        "SELECT id, kind, version, event, sequence, body, traceparent, created_at \
         FROM delivery_messages \
         WHERE merchant = $1 AND merchant IS DISTINCT FROM '' AND id >= $2 AND id < $3 \
         ORDER BY id LIMIT $4",
        (merchant, from, until, limit),
    );
    Ok(statement.load(conn).await?)
}
