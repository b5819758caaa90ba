//! Replaces a shopper's data in shipments and receipts. Statements are planned each time, because they run
//! rarely and the tables grow.

use diesel::QueryableByName;
use diesel::sql_types::{Array, Binary, Text};
use diesel_async::{AsyncPgConnection, RunQueryDsl as _};
use domain::access::MerchantId;
use domain::erasure::erase_text;
use domain::json::Digest;
use platform::database::DatabaseError;
use serde_json::Value;
use uuid::Uuid;

use super::unreadable;
use crate::record_keys::RecordKind;

#[derive(QueryableByName)]
struct RecordRow {
    #[diesel(sql_type = Text)]
    kind: String,
    #[diesel(sql_type = Text)]
    number: String,
}

/// The kinds and numbers of a merchant's records with these keys.
pub(crate) async fn numbers(
    conn: &mut AsyncPgConnection,
    merchant: &MerchantId,
    keys: &[Digest],
) -> Result<Vec<(RecordKind, String)>, DatabaseError> {
    let query = diesel::sql_query(
        "SELECT DISTINCT kind, number FROM record_keys WHERE key = ANY ($2) AND merchant = $1",
    )
    .bind::<Text, _>(merchant.as_str())
    .bind::<Array<Binary>, _>(keys.iter().map(|key| key.as_bytes().to_vec()).collect::<Vec<_>>());
    let rows: Vec<RecordRow> = query.load(conn).await?;
    let read = |row: RecordRow| Ok((row.kind.parse().map_err(unreadable)?, row.number));
    rows.into_iter().map(read).collect()
}

#[derive(QueryableByName)]
struct ShipmentRow {
    #[diesel(sql_type = Text)]
    asn_number: String,
    #[diesel(sql_type = Text)]
    header: String,
}

/// Applies `erase` to outbound shipments and returns the number of those that changed.
pub(crate) async fn erase_shipments(
    conn: &mut AsyncPgConnection,
    merchant: &MerchantId,
    numbers: &[String],
    erase: impl Fn(&mut Value),
) -> Result<usize, DatabaseError> {
    let query = diesel::sql_query(
        "SELECT asn_number, header FROM outbound_shipments \
         WHERE merchant = $1 AND asn_number = ANY ($2) ORDER BY asn_number FOR UPDATE",
    )
    .bind::<Text, _>(merchant.as_str())
    .bind::<Array<Text>, _>(numbers);
    let found: Vec<ShipmentRow> = query.load(conn).await?;
    let erased = |row: ShipmentRow| Some((row.asn_number, erase_text(&row.header, &erase)?));
    let (numbers, headers): (Vec<_>, Vec<_>) = found.into_iter().filter_map(erased).unzip();
    let statement = diesel::sql_query(
        "UPDATE outbound_shipments AS own SET header = new.header \
         FROM unnest($2, $3) AS new (asn_number, header) \
         WHERE own.merchant = $1 AND own.asn_number = new.asn_number",
    )
    .bind::<Text, _>(merchant.as_str())
    .bind::<Array<Text>, _>(numbers)
    .bind::<Array<Text>, _>(headers);
    Ok(statement.execute(conn).await?)
}

#[derive(QueryableByName)]
struct ReceiptRow {
    #[diesel(sql_type = diesel::sql_types::Uuid)]
    id: Uuid,
    #[diesel(sql_type = Text)]
    message: String,
}

/// Applies `erase` to the receipts of inbound ASNs and returns the number of those that changed.
pub(crate) async fn erase_receipts(
    conn: &mut AsyncPgConnection,
    merchant: &MerchantId,
    numbers: &[String],
    erase: impl Fn(&mut Value),
) -> Result<usize, DatabaseError> {
    let query = diesel::sql_query(
        "SELECT id, message FROM receipts WHERE merchant = $1 AND asn_number = ANY ($2) \
         ORDER BY asn_number, unit_identifier FOR UPDATE",
    )
    .bind::<Text, _>(merchant.as_str())
    .bind::<Array<Text>, _>(numbers);
    let found: Vec<ReceiptRow> = query.load(conn).await?;
    let erased = |row: ReceiptRow| Some((row.id, erase_text(&row.message, &erase)?));
    let (ids, messages): (Vec<_>, Vec<_>) = found.into_iter().filter_map(erased).unzip();
    let statement = diesel::sql_query(
        "UPDATE receipts SET message = new.message FROM unnest($1, $2) AS new (id, message) \
         WHERE receipts.id = new.id",
    )
    .bind::<Array<diesel::sql_types::Uuid>, _>(ids)
    .bind::<Array<Text>, _>(messages);
    Ok(statement.execute(conn).await?)
}
