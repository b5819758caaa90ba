//! Receipts.

use std::collections::{BTreeSet, HashMap, HashSet};

use diesel::QueryableByName;
use diesel::sql_types::{Array, BigInt, Bool, Text, Timestamptz};
use diesel_async::{AsyncPgConnection, RunQueryDsl as _};
use domain::access::MerchantId;
use domain::warehouse::{InboundHeader, InboundLine};
use platform::Timestamp;
use platform::database::{DatabaseError, IndexRange, prepared};
use uuid::Uuid;

use crate::error::Error;

/// A receipt to be stored.
#[derive(Debug)]
pub(crate) struct NewReceipt {
    pub(crate) id: Uuid,
    pub(crate) asn_number: String,
    pub(crate) line_identifier: String,
    pub(crate) unit_identifier: String,
    pub(crate) message: String,
    pub(crate) rejected: bool,
}

/// A stored receipt.
#[derive(Debug, Clone, QueryableByName)]
pub(crate) struct StoredReceipt {
    #[diesel(sql_type = Text)]
    pub(crate) merchant: String,
    #[diesel(sql_type = diesel::sql_types::Uuid)]
    pub(crate) id: Uuid,
    #[diesel(sql_type = Text)]
    pub(crate) asn_number: String,
    #[diesel(sql_type = Text)]
    pub(crate) line_identifier: String,
    #[diesel(sql_type = Text)]
    pub(crate) unit_identifier: String,
    #[diesel(sql_type = Text)]
    pub(crate) message: String,
    #[diesel(sql_type = Timestamptz)]
    pub(crate) received_at: Timestamp,
}

/// The number of an ASN and the identifier of a line.
pub(crate) type Key = (String, String);

#[derive(QueryableByName)]
struct HeaderRow {
    #[diesel(sql_type = Text)]
    asn_number: String,
    #[diesel(sql_type = Text)]
    header: String,
}

/// Loads ASNs without their lines, and locks them against changes until the end of the transaction.
/// `(SELECT $2)` hides the length of the array from the planner, which would otherwise make a new plan for each
/// execution: a plan for one ASN looks cheaper than the plan for any number.
pub(crate) async fn headers(
    mut conn: &AsyncPgConnection,
    merchant: &MerchantId,
    numbers: &BTreeSet<&str>,
) -> Result<HashMap<String, InboundHeader>, Error> {
    let query = diesel::sql_query(
        "SELECT asn_number, header FROM inbound_asns \
         WHERE merchant = $1 AND asn_number = ANY ((SELECT $2)::text[]) FOR KEY SHARE",
    )
    .bind::<Text, _>(merchant.as_str())
    .bind::<Array<Text>, _>(numbers.iter().copied().collect::<Vec<_>>());
    let rows: Vec<HeaderRow> = prepared(query).load(&mut conn).await?;
    rows.into_iter().map(|row| Ok((row.asn_number, serde_json::from_str(&row.header)?))).collect()
}

#[derive(QueryableByName)]
struct LineRow {
    #[diesel(sql_type = Text)]
    asn_number: String,
    #[diesel(sql_type = Text)]
    line_identifier: String,
    #[diesel(sql_type = Text)]
    line: String,
}

/// Loads lines of ASNs. `LIMIT 1` makes PostgreSQL look up each line by its key instead of joining the
/// tables, so that a plan that was cached while the table was empty stays good. See [`headers`] for
/// `(SELECT $2)`.
pub(crate) async fn lines(
    mut conn: &AsyncPgConnection,
    merchant: &MerchantId,
    keys: &BTreeSet<(&str, &str)>,
) -> Result<HashMap<Key, InboundLine>, Error> {
    let (numbers, names): (Vec<_>, Vec<_>) = keys.iter().copied().unzip();
    let query = diesel::sql_query(
        "SELECT stored.* FROM unnest((SELECT $2), $3) AS requested (asn_number, line_identifier), LATERAL ( \
             SELECT asn_number, line_identifier, line FROM inbound_lines AS own \
             WHERE own.merchant = $1 AND own.asn_number = requested.asn_number \
             AND own.line_identifier = requested.line_identifier LIMIT 1 \
         ) AS stored",
    )
    .bind::<Text, _>(merchant.as_str())
    .bind::<Array<Text>, _>(numbers)
    .bind::<Array<Text>, _>(names);
    let rows: Vec<LineRow> = prepared(query).load(&mut conn).await?;
    let line = |row: LineRow| {
        Ok(((row.asn_number, row.line_identifier), serde_json::from_str(&row.line)?))
    };
    rows.into_iter().map(line).collect()
}

#[derive(QueryableByName)]
struct Inserted {
    #[diesel(sql_type = diesel::sql_types::Uuid)]
    id: Uuid,
}

/// Stores receipts of new units and returns the ids of the stored receipts. A receipt replaces an earlier
/// rejection of the same unit.
pub(crate) async fn insert(
    conn: &mut AsyncPgConnection,
    merchant: &MerchantId,
    new: &[NewReceipt],
    at: Timestamp,
) -> Result<HashSet<Uuid>, DatabaseError> {
    let each = |text: fn(&NewReceipt) -> &str| new.iter().map(text).collect::<Vec<_>>();
    let ids: Vec<_> = new.iter().map(|receipt| receipt.id).collect();
    let rejected: Vec<_> = new.iter().map(|receipt| receipt.rejected).collect();
    // Rows are inserted in key order, so that two transactions with the same units do not deadlock.
    let statement = diesel::sql_query(
        "INSERT INTO receipts AS stored (merchant, asn_number, unit_identifier, id, \
             line_identifier, message, rejected, received_at) \
         SELECT DISTINCT ON (asn_number, unit_identifier) \
             $1, asn_number, unit_identifier, id, line_identifier, message, rejected, $2 \
         FROM unnest($3, $4, $5, $6, $7, $8) WITH ORDINALITY \
             AS new (asn_number, unit_identifier, id, line_identifier, message, rejected, position) \
         ORDER BY asn_number, unit_identifier, rejected, position \
         ON CONFLICT ON CONSTRAINT receipts_pkey DO UPDATE SET id = excluded.id, \
             line_identifier = excluded.line_identifier, message = excluded.message, \
             rejected = excluded.rejected, received_at = excluded.received_at \
         WHERE stored.rejected AND NOT excluded.rejected RETURNING id",
    )
    .bind::<Text, _>(merchant.as_str())
    .bind::<Timestamptz, _>(at)
    .bind::<Array<Text>, _>(each(|receipt| &receipt.asn_number))
    .bind::<Array<Text>, _>(each(|receipt| &receipt.unit_identifier))
    .bind::<Array<diesel::sql_types::Uuid>, _>(ids)
    .bind::<Array<Text>, _>(each(|receipt| &receipt.line_identifier))
    .bind::<Array<Text>, _>(each(|receipt| &receipt.message))
    .bind::<Array<Bool>, _>(rejected);
    let stored: Vec<Inserted> = prepared(statement).load(conn).await?;
    Ok(stored.into_iter().map(|row| row.id).collect())
}

/// Finds receipts by their keys, each with its own lookup as in [`lines`].
pub(crate) async fn find(
    conn: &mut AsyncPgConnection,
    merchant: &MerchantId,
    keys: &[(&str, &str)],
) -> Result<Vec<StoredReceipt>, DatabaseError> {
    let (numbers, units): (Vec<_>, Vec<_>) = keys.iter().copied().unzip();
    let query = diesel::sql_query(
        "SELECT stored.* FROM unnest($2, $3) AS requested (asn_number, unit_identifier), LATERAL ( \
             SELECT merchant, id, asn_number, line_identifier, unit_identifier, '' AS message, \
                 received_at \
             FROM receipts AS own WHERE own.merchant = $1 AND own.asn_number = requested.asn_number \
             AND own.unit_identifier = requested.unit_identifier LIMIT 1 \
         ) AS stored",
    )
    .bind::<Text, _>(merchant.as_str())
    .bind::<Array<Text>, _>(numbers)
    .bind::<Array<Text>, _>(units);
    Ok(prepared(query).load(conn).await?)
}

/// Loads a page of receipts, newest first: of all merchants, of one merchant, or of one of its ASNs.
pub(crate) async fn page(
    conn: &mut AsyncPgConnection,
    merchant: Option<&MerchantId>,
    asn_number: Option<&str>,
    before: Option<Uuid>,
    limit: i64,
) -> Result<Vec<StoredReceipt>, DatabaseError> {
    let fixed = [(merchant.map(MerchantId::as_str), "merchant"), (asn_number, "asn_number")];
    let fixed: Vec<_> =
        fixed.into_iter().filter_map(|(value, column)| Some((value?, column))).collect();
    let columns: Vec<_> =
        (3..).zip(&fixed).map(|(place, (_, column))| (*column, format!("${place}"))).collect();
    let range = IndexRange { fixed: &columns, sorted: &["id"] };
    let query = diesel::sql_query(format!(
        "SELECT merchant, id, asn_number, line_identifier, unit_identifier, message, received_at \
         FROM receipts WHERE {} ORDER BY {} LIMIT $2",
        range.condition(None, Some(("<", "$1"))),
        range.order("DESC")
    ))
    .into_boxed()
    .bind::<diesel::sql_types::Uuid, _>(before.unwrap_or(Uuid::max()))
    .bind::<BigInt, _>(limit);
    let query = fixed.into_iter().fold(query, |query, (value, _)| query.bind::<Text, _>(value));
    Ok(prepared(query).load(conn).await?)
}
