//! The timelines of returns; append-only.

use chrono::{DateTime, Utc};
use diesel::QueryableByName;
use diesel::sql_types::{BigInt, Jsonb, Nullable, Text, Timestamptz};
use diesel_async::{AsyncPgConnection, RunQueryDsl as _};
use domain::access::MerchantId;
use platform::Timestamp;
use platform::database::{
    DatabaseError, SqlStatement, column, is_truncated, limit_page_bytes, prepared, sql,
};
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;
use uuid::Uuid;

#[derive(Debug)]
pub(crate) struct NewEntry {
    pub(crate) merchant: MerchantId,
    pub(crate) rma_identifier: String,
    pub(crate) at: Timestamp,
    /// The client or the event type that caused the entry.
    pub(crate) actor: String,
    pub(crate) event: String,
    pub(crate) detail: Value,
    /// The message to the merchant, if there is one.
    pub(crate) delivery: Option<Uuid>,
}

/// An entry of a return's timeline.
#[derive(Debug, Serialize, ToSchema, QueryableByName)]
pub(crate) struct TimelineEntry {
    #[diesel(sql_type = BigInt)]
    pub(crate) position: i64,
    #[diesel(sql_type = Timestamptz)]
    pub(crate) at: DateTime<Utc>,
    /// The person, the client or the event type that caused the entry.
    #[diesel(sql_type = Text)]
    pub(crate) actor: String,
    /// Event of the message, or the action if there is no message.
    #[diesel(sql_type = Text)]
    #[schema(example = "rma.created")]
    pub(crate) event: String,
    #[diesel(sql_type = Jsonb)]
    pub(crate) detail: Value,
    /// The message to the merchant, sent as `webhook-id`; `/v1/deliveries/{id}` shows whether it arrived.
    #[diesel(sql_type = Nullable<diesel::sql_types::Uuid>)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) delivery: Option<Uuid>,
}

/// Adds entries to timelines, in the order given.
pub(crate) async fn add(
    mut conn: &AsyncPgConnection,
    entries: &[NewEntry],
) -> Result<(), DatabaseError> {
    if !entries.is_empty() {
        prepared(append_to_sql("", entries)).execute(&mut conn).await?;
    }
    Ok(())
}

/// Returns one statement that runs the caller's `WITH` clause and adds the entries. The caller binds its own
/// parameters from `$8` on.
pub(super) fn append_to_sql<'a>(with: &str, entries: &'a [NewEntry]) -> SqlStatement<'a> {
    sql(
        format!(
            "{with} INSERT INTO timeline \
             (merchant, rma_identifier, at, actor, event, detail, delivery) \
         SELECT * FROM unnest((SELECT $1), $2, $3, $4, $5, $6, $7)"
        ),
        (
            column(entries, |entry| entry.merchant.as_str()),
            column(entries, |entry| entry.rma_identifier.as_str()),
            column(entries, |entry| entry.at),
            column(entries, |entry| entry.actor.as_str()),
            column(entries, |entry| entry.event.as_str()),
            column(entries, |entry| &entry.detail),
            column(entries, |entry| entry.delivery),
        ),
    )
}

platform::rows! {
    struct EntryRow {
        #[diesel(embed)]
        entry: TimelineEntry,
        found: i64,
    }
}

/// Entries after a position, oldest first: up to `most`, fewer if they are large. The flag says
/// whether the byte limit cut the page.
pub(crate) async fn page(
    conn: &mut AsyncPgConnection,
    merchant: &MerchantId,
    rma_identifier: &str,
    after: i64,
    most: i64,
) -> Result<(Vec<TimelineEntry>, bool), DatabaseError> {
    let (prefix, suffix) = limit_page_bytes("position");
    let query = sql(
        format!(
            "{prefix}SELECT position, at, actor, event, detail, delivery, \
             octet_length(detail::text) AS weight FROM timeline \
         WHERE merchant = $1 AND rma_identifier = $2 AND position > $3 \
         ORDER BY position LIMIT $4{suffix}"
        ),
        (merchant.as_str(), rma_identifier, after, most),
    );
    let rows: Vec<EntryRow> = prepared(query).load(conn).await?;
    let is_truncated = is_truncated(&rows, |row| row.found);
    Ok((rows.into_iter().map(|row| row.entry).collect(), is_truncated))
}
