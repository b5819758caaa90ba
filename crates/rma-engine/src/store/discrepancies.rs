//! Discrepancies. Those found in order snapshots are recorded once, because snapshots repeat them;
//! those caused by an event are recorded each time.

use chrono::{DateTime, Utc};
use diesel::sql_types::{Array, BigInt, Binary, Jsonb, Nullable, Text, Timestamptz};
use diesel::{OptionalExtension as _, QueryableByName};
use diesel_async::{AsyncPgConnection, RunQueryDsl as _};
use domain::access::MerchantId;
use domain::json::Digest;
use domain::returns::Discrepancy;
use platform::Timestamp;
use platform::database::{DatabaseError, prepared};
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

const COLUMNS: &str = "position, at, detail, resolved_at, resolved_by, resolution_note";

/// A recorded discrepancy.
#[derive(Debug)]
pub(crate) struct Recorded {
    pub(crate) position: i64,
    pub(crate) at: DateTime<Utc>,
    pub(crate) discrepancy: Discrepancy,
    /// `None` while the discrepancy is open.
    pub(crate) resolution: Option<DiscrepancyResolution>,
}

/// The end of a discrepancy.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct DiscrepancyResolution {
    pub(crate) at: DateTime<Utc>,
    /// The client, or the type of another service's event.
    pub(crate) by: String,
    pub(crate) note: String,
}

/// Records discrepancies that were not recorded before.
pub(crate) async fn record_once(
    conn: &mut AsyncPgConnection,
    found: &[(&MerchantId, Discrepancy)],
    now: Timestamp,
) -> Result<(), DatabaseError> {
    let fingerprint = |detail: &Value| Some(Digest::of_value(detail).as_bytes().to_vec());
    insert(conn, found, fingerprint, now).await
}

/// Records discrepancies of one event.
pub(crate) async fn record(
    conn: &mut AsyncPgConnection,
    merchant: &MerchantId,
    found: &[Discrepancy],
    now: Timestamp,
) -> Result<(), DatabaseError> {
    let found: Vec<_> = found.iter().map(|it| (merchant, it.clone())).collect();
    insert(conn, &found, |_| None, now).await
}

/// Rows without a fingerprint are always inserted.
async fn insert(
    conn: &mut AsyncPgConnection,
    found: &[(&MerchantId, Discrepancy)],
    fingerprint: impl Fn(&Value) -> Option<Vec<u8>>,
    now: Timestamp,
) -> Result<(), DatabaseError> {
    if found.is_empty() {
        return Ok(());
    }
    let details: Result<Vec<_>, _> =
        found.iter().map(|(_, discrepancy)| serde_json::to_value(discrepancy)).collect();
    let details =
        details.map_err(|error| diesel::result::Error::SerializationError(error.into()))?;
    let fingerprints: Vec<_> = details.iter().map(fingerprint).collect();
    let each = |field: fn(&Discrepancy) -> Option<&str>| {
        found.iter().map(|(_, it)| field(it)).collect::<Vec<_>>()
    };
    let statement = diesel::sql_query(
        "INSERT INTO discrepancies (merchant, at, kind, order_identifier, rma_identifier, detail, \
             fingerprint) \
         SELECT merchant, $7, kind, order_identifier, rma_identifier, detail, fingerprint \
         FROM unnest($1, $2, $3, $4, $5, $6) AS new (merchant, kind, order_identifier, \
             rma_identifier, detail, fingerprint) \
         ON CONFLICT ON CONSTRAINT discrepancies_once DO NOTHING",
    )
    .bind::<Array<Text>, _>(found.iter().map(|(id, _)| id.as_str()).collect::<Vec<_>>())
    .bind::<Array<Text>, _>(found.iter().map(|(_, it)| it.kind()).collect::<Vec<_>>())
    .bind::<Array<Nullable<Text>>, _>(each(Discrepancy::order_identifier))
    .bind::<Array<Nullable<Text>>, _>(each(Discrepancy::rma_identifier))
    .bind::<Array<Jsonb>, _>(&details)
    .bind::<Array<Nullable<Binary>>, _>(fingerprints)
    .bind::<Timestamptz, _>(now);
    prepared(statement).execute(conn).await?;
    Ok(())
}

#[derive(QueryableByName)]
struct Row {
    #[diesel(sql_type = BigInt)]
    position: i64,
    #[diesel(sql_type = Timestamptz)]
    at: Timestamp,
    #[diesel(sql_type = Jsonb)]
    detail: Value,
    #[diesel(sql_type = Nullable<Timestamptz>)]
    resolved_at: Option<Timestamp>,
    #[diesel(sql_type = Nullable<Text>)]
    resolved_by: Option<String>,
    #[diesel(sql_type = Nullable<Text>)]
    resolution_note: Option<String>,
}

impl Row {
    fn read(self) -> Result<Recorded, DatabaseError> {
        let discrepancy = serde_json::from_value(self.detail)
            .map_err(|error| diesel::result::Error::DeserializationError(error.into()))?;
        let resolution = self.resolved_at.map(|at| DiscrepancyResolution {
            at,
            by: self.resolved_by.unwrap_or_default(),
            note: self.resolution_note.unwrap_or_default(),
        });
        Ok(Recorded { position: self.position, at: self.at, discrepancy, resolution })
    }
}

/// Filters; `None` matches every discrepancy.
#[derive(Debug, Default)]
pub(crate) struct Search {
    pub(crate) kind: Option<String>,
    pub(crate) order_identifier: Option<String>,
    pub(crate) rma_identifier: Option<String>,
    /// Only open discrepancies.
    pub(crate) is_open: bool,
    /// Only positions before this one.
    pub(crate) before: Option<i64>,
}

/// Finds discrepancies, newest first.
pub(crate) async fn search(
    conn: &mut AsyncPgConnection,
    merchant: &MerchantId,
    search: &Search,
    most: i64,
) -> Result<Vec<Recorded>, DatabaseError> {
    let mut query = diesel::sql_query(format!(
        "SELECT {COLUMNS} FROM discrepancies WHERE merchant = $1 AND position < $2"
    ))
    .into_boxed()
    .bind::<Text, _>(merchant.as_str())
    .bind::<BigInt, _>(search.before.unwrap_or(i64::MAX));
    let mut bound = 2;
    // Unused filters are not in the query, so that PostgreSQL picks the right index.
    let texts = [
        (search.kind.as_deref(), "kind"),
        (search.order_identifier.as_deref(), "order_identifier"),
        (search.rma_identifier.as_deref(), "rma_identifier"),
    ];
    for (value, column) in texts {
        let Some(value) = value else { continue };
        bound += 1;
        query = query.sql(format!(" AND {column} = ${bound}")).bind::<Text, _>(value);
    }
    if search.is_open {
        query = query.sql(" AND resolved_at IS NULL");
    }
    query =
        query.sql(format!(" ORDER BY position DESC LIMIT ${}", bound + 1)).bind::<BigInt, _>(most);
    let rows: Vec<Row> = prepared(query).load(conn).await?;
    rows.into_iter().map(Row::read).collect()
}

/// Finds one of a merchant's discrepancies.
pub(crate) async fn find(
    conn: &mut AsyncPgConnection,
    merchant: &MerchantId,
    position: i64,
) -> Result<Option<Recorded>, DatabaseError> {
    let query = diesel::sql_query(format!(
        "SELECT {COLUMNS} FROM discrepancies WHERE merchant = $1 AND position = $2"
    ))
    .bind::<Text, _>(merchant.as_str())
    .bind::<BigInt, _>(position);
    let row: Option<Row> = prepared(query).get_result(conn).await.optional()?;
    row.map(Row::read).transpose()
}

/// Resolves a discrepancy that is open.
pub(crate) async fn resolve(
    conn: &mut AsyncPgConnection,
    merchant: &MerchantId,
    position: i64,
    resolution: &DiscrepancyResolution,
) -> Result<(), DatabaseError> {
    let statement = diesel::sql_query(
        "UPDATE discrepancies SET resolved_at = $3, resolved_by = $4, resolution_note = $5 \
         WHERE merchant = $1 AND position = $2 AND resolved_at IS NULL",
    )
    .bind::<Text, _>(merchant.as_str())
    .bind::<BigInt, _>(position)
    .bind::<Timestamptz, _>(resolution.at)
    .bind::<Text, _>(&resolution.by)
    .bind::<Text, _>(&resolution.note);
    prepared(statement).execute(conn).await?;
    Ok(())
}

/// Resolves the open discrepancies of a refund that named an unknown return.
pub(crate) async fn resolve_refund(
    conn: &mut AsyncPgConnection,
    merchant: &MerchantId,
    order_identifier: &str,
    refund_identifier: &str,
    resolution: &DiscrepancyResolution,
) -> Result<(), DatabaseError> {
    let statement = diesel::sql_query(
        "UPDATE discrepancies SET resolved_at = $4, resolved_by = $5, resolution_note = $6 \
         WHERE merchant = $1 AND order_identifier = $2 AND kind = 'refund_of_unknown_return' \
             AND detail->>'refund_identifier' = $3 AND resolved_at IS NULL",
    )
    .bind::<Text, _>(merchant.as_str())
    .bind::<Text, _>(order_identifier)
    .bind::<Text, _>(refund_identifier)
    .bind::<Timestamptz, _>(resolution.at)
    .bind::<Text, _>(&resolution.by)
    .bind::<Text, _>(&resolution.note);
    prepared(statement).execute(conn).await?;
    Ok(())
}
