//! What happened to returns; only ever added to.

use chrono::{DateTime, Utc};
use diesel::QueryableByName;
use diesel::sql_types::{BigInt, Jsonb, Nullable, Text, Timestamptz};
use diesel_async::{AsyncPgConnection, RunQueryDsl as _};
use domain::access::MerchantId;
use platform::Timestamp;
use platform::database::{DatabaseError, is_truncated, limit_page_bytes, prepared};
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;
use uuid::Uuid;

/// What is about to be noted.
#[derive(Debug)]
pub(crate) struct Note<'a> {
    /// The client or the service that caused it.
    pub(crate) actor: &'a str,
    pub(crate) event: &'a str,
    pub(crate) detail: Value,
    /// The message that tells the merchant, if one does.
    pub(crate) delivery: Option<Uuid>,
}

/// One thing that happened.
#[derive(Debug, Serialize, ToSchema, QueryableByName)]
pub(crate) struct TimelineEntry {
    #[diesel(sql_type = BigInt)]
    pub(crate) position: i64,
    #[diesel(sql_type = Timestamptz)]
    pub(crate) at: DateTime<Utc>,
    /// The client that caused it, or the event that another service sent.
    #[diesel(sql_type = Text)]
    pub(crate) actor: String,
    /// What happened; the name of the message, when there is one.
    #[diesel(sql_type = Text)]
    #[schema(example = "rma.created")]
    pub(crate) event: String,
    #[diesel(sql_type = Jsonb)]
    pub(crate) detail: Value,
    /// The message that told the merchant: its `webhook-id`.
    #[diesel(sql_type = Nullable<diesel::sql_types::Uuid>)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) delivery: Option<Uuid>,
}

pub(crate) async fn add(
    conn: &mut AsyncPgConnection,
    merchant: &MerchantId,
    rma_identifier: &str,
    note: &Note<'_>,
    now: Timestamp,
) -> Result<(), DatabaseError> {
    let statement = diesel::sql_query(
        "INSERT INTO timeline (merchant, rma_identifier, at, actor, event, detail, delivery) \
         VALUES ($1, $2, $3, $4, $5, $6, $7)",
    )
    .bind::<Text, _>(merchant.as_str())
    .bind::<Text, _>(rma_identifier)
    .bind::<Timestamptz, _>(now)
    .bind::<Text, _>(note.actor)
    .bind::<Text, _>(note.event)
    .bind::<Jsonb, _>(&note.detail)
    .bind::<Nullable<diesel::sql_types::Uuid>, _>(note.delivery);
    prepared(statement).execute(conn).await?;
    Ok(())
}

#[derive(QueryableByName)]
struct Row {
    #[diesel(embed)]
    entry: TimelineEntry,
    #[diesel(sql_type = BigInt)]
    found: i64,
}

/// What happened to a return after a position, oldest first: up to `most` entries, fewer when they
/// are heavy, and whether that was not all of them.
pub(crate) async fn page(
    conn: &mut AsyncPgConnection,
    merchant: &MerchantId,
    rma_identifier: &str,
    after: i64,
    most: i64,
) -> Result<(Vec<TimelineEntry>, bool), DatabaseError> {
    let (weighing, cutting) = limit_page_bytes("position");
    let query = diesel::sql_query(format!(
        "{weighing}SELECT position, at, actor, event, detail, delivery, \
             octet_length(detail::text) AS weight FROM timeline \
         WHERE merchant = $1 AND rma_identifier = $2 AND position > $3 \
         ORDER BY position LIMIT $4{cutting}"
    ))
    .bind::<Text, _>(merchant.as_str())
    .bind::<Text, _>(rma_identifier)
    .bind::<BigInt, _>(after)
    .bind::<BigInt, _>(most);
    let rows: Vec<Row> = prepared(query).load(conn).await?;
    let is_truncated = is_truncated(&rows, |row| row.found);
    Ok((rows.into_iter().map(|row| row.entry).collect(), is_truncated))
}
