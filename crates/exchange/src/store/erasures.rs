//! Replaces a shopper's data in confirmations and exchange orders. Most statements are planned each time,
//! because they run rarely and the tables grow.

use diesel::sql_types::{Array, BigInt, Text};
use diesel::{OptionalExtension as _, QueryableByName};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use domain::access::MerchantId;
use domain::erasure::{erase, erase_text};
use domain::returns::ReturnConfirmed;
use platform::database::{DatabaseError, prepared};
use serde_json::Value;

use super::{from_json, to_json};

/// Records that the confirmations of these orders before this sequence number are erased.
pub(crate) async fn add_erased_orders(
    conn: &mut AsyncPgConnection,
    merchant: &MerchantId,
    orders: &[String],
    sequence: i64,
) -> Result<(), DatabaseError> {
    let insert = diesel::sql_query(
        "INSERT INTO erased_orders AS stored (merchant, original_order_id, sequence) \
         SELECT $1, name, $3 FROM unnest($2) AS new (name) ORDER BY name \
         ON CONFLICT ON CONSTRAINT erased_orders_pkey DO UPDATE \
         SET sequence = greatest(stored.sequence, excluded.sequence)",
    )
    .bind::<Text, _>(merchant.as_str())
    .bind::<Array<Text>, _>(orders)
    .bind::<BigInt, _>(sequence);
    prepared(insert).execute(conn).await?;
    Ok(())
}

#[derive(QueryableByName)]
struct Sequence {
    #[diesel(sql_type = BigInt)]
    sequence: i64,
}

/// The sequence number before which confirmations of an order are erased, if it was erased.
pub(crate) async fn erased_before(
    conn: &mut AsyncPgConnection,
    merchant: &MerchantId,
    order: &str,
) -> Result<Option<i64>, DatabaseError> {
    let query = diesel::sql_query(
        "SELECT sequence FROM erased_orders WHERE merchant = $1 AND original_order_id = $2",
    )
    .bind::<Text, _>(merchant.as_str())
    .bind::<Text, _>(order);
    let row: Option<Sequence> = prepared(query).get_result(conn).await.optional()?;
    Ok(row.map(|row| row.sequence))
}

/// A confirmed return without personal data.
pub(crate) fn erased_confirmation(
    confirmed: &ReturnConfirmed,
) -> Result<ReturnConfirmed, DatabaseError> {
    let document = to_json(confirmed)?;
    from_json(&erase_text(&document, erase).unwrap_or(document))
}

#[derive(QueryableByName)]
struct Name {
    #[diesel(sql_type = Text)]
    name: String,
}

/// The orders of these returns.
pub(crate) async fn orders_of(
    conn: &mut AsyncPgConnection,
    merchant: &MerchantId,
    returns: &[String],
) -> Result<Vec<String>, DatabaseError> {
    let query = diesel::sql_query(
        "SELECT DISTINCT original_order_id AS name FROM confirmations \
         WHERE merchant = $1 AND rma_identifier = ANY ($2)",
    )
    .bind::<Text, _>(merchant.as_str())
    .bind::<Array<Text>, _>(returns);
    let rows: Vec<Name> = query.load(conn).await?;
    Ok(rows.into_iter().map(|row| row.name).collect())
}

#[derive(QueryableByName)]
struct Row {
    #[diesel(sql_type = BigInt)]
    position: i64,
    #[diesel(sql_type = Text)]
    document: String,
}

const CONFIRMATIONS: &str = "SELECT position, document FROM confirmations \
     WHERE merchant = $1 AND original_order_id = ANY ($2) ORDER BY position FOR UPDATE";
const UPDATE_CONFIRMATIONS: &str = "UPDATE confirmations SET document = new.document, erased = true \
     FROM unnest($1, $2) AS new (position, document) WHERE confirmations.position = new.position";
const MESSAGES: &str = "SELECT confirmation AS position, message AS document FROM exchange_orders \
     WHERE merchant = $1 AND original_order_id = ANY ($2) FOR UPDATE";
const UPDATE_MESSAGES: &str = "UPDATE exchange_orders SET message = new.message, \
         abandon_note = CASE WHEN abandon_note IS NOT NULL THEN 'erased' END \
     FROM unnest($1, $2) AS new (confirmation, message) \
     WHERE exchange_orders.confirmation = new.confirmation";

/// Applies `erase` to the confirmations and exchange orders of these orders, and returns the number of those
/// that changed.
pub(crate) async fn erase_orders(
    conn: &mut AsyncPgConnection,
    merchant: &MerchantId,
    orders: &[String],
    erase: impl Fn(&mut Value),
) -> Result<usize, DatabaseError> {
    let mut changed = 0;
    for (select, update) in [(CONFIRMATIONS, UPDATE_CONFIRMATIONS), (MESSAGES, UPDATE_MESSAGES)] {
        let query = diesel::sql_query(select)
            .bind::<Text, _>(merchant.as_str())
            .bind::<Array<Text>, _>(orders);
        let found: Vec<Row> = query.load(conn).await?;
        let erased = |row: Row| Some((row.position, erase_text(&row.document, &erase)?));
        let (positions, documents): (Vec<_>, Vec<_>) = found.into_iter().filter_map(erased).unzip();
        let statement = diesel::sql_query(update)
            .bind::<Array<BigInt>, _>(positions)
            .bind::<Array<Text>, _>(documents);
        changed += statement.execute(conn).await?;
    }
    Ok(changed)
}
