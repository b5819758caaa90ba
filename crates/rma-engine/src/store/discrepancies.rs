//! Discrepancies. Those found in order snapshots are recorded once, because snapshots repeat them;
//! those caused by an event are recorded each time.

use chrono::{DateTime, Utc};
use diesel::QueryableByName;
use diesel::sql_types::{Array, BigInt, Binary, Jsonb, Nullable, Text, Timestamptz};
use diesel_async::{AsyncPgConnection, RunQueryDsl as _};
use domain::access::MerchantId;
use domain::json::Digest;
use domain::returns::Discrepancy;
use platform::Timestamp;
use platform::database::{DatabaseError, prepared};
use serde_json::Value;

/// A recorded discrepancy.
#[derive(Debug)]
pub(crate) struct Noted {
    pub(crate) position: i64,
    pub(crate) at: DateTime<Utc>,
    pub(crate) discrepancy: Discrepancy,
}

/// Records discrepancies that were not recorded before.
pub(crate) async fn note_once(
    conn: &mut AsyncPgConnection,
    found: &[(&MerchantId, Discrepancy)],
    now: Timestamp,
) -> Result<(), DatabaseError> {
    let fingerprint = |detail: &Value| Some(Digest::of_value(detail).as_bytes().to_vec());
    insert(conn, found, fingerprint, now).await
}

/// Records discrepancies of one event.
pub(crate) async fn note(
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
}

/// Filters; `None` matches every discrepancy.
#[derive(Debug, Default)]
pub(crate) struct Search {
    pub(crate) kind: Option<String>,
    pub(crate) order_identifier: Option<String>,
    pub(crate) rma_identifier: Option<String>,
    /// Only positions before this one.
    pub(crate) before: Option<i64>,
}

/// Finds discrepancies, newest first.
pub(crate) async fn search(
    conn: &mut AsyncPgConnection,
    merchant: &MerchantId,
    search: &Search,
    most: i64,
) -> Result<Vec<Noted>, DatabaseError> {
    let mut query = diesel::sql_query(
        "SELECT position, at, detail FROM discrepancies \
         WHERE merchant = $1 AND position < $2",
    )
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
    query =
        query.sql(format!(" ORDER BY position DESC LIMIT ${}", bound + 1)).bind::<BigInt, _>(most);
    let rows: Vec<Row> = prepared(query).load(conn).await?;
    let noted = |row: Row| {
        let discrepancy = serde_json::from_value(row.detail)
            .map_err(|error| diesel::result::Error::DeserializationError(error.into()))?;
        Ok(Noted { position: row.position, at: row.at, discrepancy })
    };
    rows.into_iter().map(noted).collect()
}
