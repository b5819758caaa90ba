//! Receipts.

use std::collections::{BTreeSet, HashSet};

use diesel_async::{AsyncPgConnection, RunQueryDsl as _};
use domain::access::MerchantId;
use domain::warehouse::{InboundHeader, InboundLine};
use platform::Timestamp;
use platform::batching::Processing;
use platform::database::{DatabaseError, Each, IndexRange, column, prepared, sql};
use uuid::Uuid;

use crate::error::Error;

/// A receipt to be stored.
#[derive(Debug)]
pub(crate) struct NewReceipt {
    pub(crate) merchant: MerchantId,
    pub(crate) id: Uuid,
    pub(crate) asn_number: String,
    pub(crate) line_identifier: String,
    pub(crate) unit_identifier: String,
    pub(crate) message: String,
    pub(crate) rejected: bool,
    pub(crate) received_at: Timestamp,
}

impl NewReceipt {
    pub(crate) fn key(&self) -> UnitKey<'_> {
        (self.merchant.as_str(), &self.asn_number, &self.unit_identifier)
    }
}

platform::rows! {
    #[derive(Debug, Clone)]
    pub(crate) struct StoredReceipt {
        pub(crate) merchant: String,
        pub(crate) id: Uuid,
        pub(crate) asn_number: String,
        pub(crate) line_identifier: String,
        pub(crate) unit_identifier: String,
        pub(crate) message: String,
        pub(crate) received_at: Timestamp,
    }
}

impl StoredReceipt {
    pub(crate) fn key(&self) -> UnitKey<'_> {
        (&self.merchant, &self.asn_number, &self.unit_identifier)
    }
}

/// The merchant and the number of an ASN.
pub(crate) type AsnKey = (String, String);
/// The merchant, the number of the ASN and the identifier of a unit.
pub(crate) type UnitKey<'a> = (&'a str, &'a str, &'a str);

platform::rows! {
    struct HeaderRow {
        merchant: String,
        asn_number: String,
        header: String,
    }
}

/// Loads ASNs without their lines, and locks them against changes until the end of the transaction. In a
/// batch, ASNs that another transaction has locked are skipped. Each ASN is looked up by its key, so that a
/// plan that was cached while the table was empty stays good. `(SELECT $1)` hides the length of the arrays
/// from the planner, which would otherwise make a new plan for each execution: a plan for one ASN looks
/// cheaper than the plan for any number.
pub(crate) async fn headers(
    mut conn: &AsyncPgConnection,
    asns: &BTreeSet<&AsnKey>,
    processing: Processing,
) -> Result<Vec<(AsnKey, InboundHeader)>, Error> {
    let skip_locked = match processing {
        Processing::Batch => " SKIP LOCKED",
        Processing::Alone => "",
    };
    let (merchants, numbers): (Vec<_>, Vec<_>) =
        asns.iter().map(|(merchant, number)| (merchant.as_str(), number.as_str())).unzip();
    let query = sql(
        format!(
            "SELECT stored.* FROM unnest((SELECT $1), $2) AS requested (merchant, asn_number), LATERAL ( \
             SELECT merchant, asn_number, header FROM inbound_asns AS own \
             WHERE own.merchant = requested.merchant AND own.asn_number = requested.asn_number \
             FOR KEY SHARE{skip_locked} \
         ) AS stored"
        ),
        (merchants, numbers),
    );
    let rows: Vec<HeaderRow> = prepared(query).load(&mut conn).await?;
    let header =
        |row: HeaderRow| Ok(((row.merchant, row.asn_number), serde_json::from_str(&row.header)?));
    rows.into_iter().map(header).collect()
}

platform::rows! {
    struct LineRow {
        merchant: String,
        asn_number: String,
        line_identifier: String,
        line: String,
    }
}

/// Loads lines of ASNs with their identifiers. `LIMIT 1` makes PostgreSQL look up each line by its key
/// instead of joining the tables. See [`headers`] for `(SELECT $1)`.
pub(crate) async fn lines(
    mut conn: &AsyncPgConnection,
    wanted: &BTreeSet<(AsnKey, String)>,
) -> Result<Vec<(AsnKey, String, InboundLine)>, Error> {
    let wanted: Vec<_> = wanted.iter().collect();
    let query = sql(
        include_str!("receipt_lines.sql"),
        (
            column(&wanted, |((merchant, _), _)| merchant),
            column(&wanted, |((_, number), _)| number),
            column(&wanted, |(_, identifier)| identifier),
        ),
    );
    let rows: Vec<LineRow> = prepared(query).load(&mut conn).await?;
    let line = |row: LineRow| {
        let key = (row.merchant, row.asn_number);
        Ok((key, row.line_identifier, serde_json::from_str(&row.line)?))
    };
    rows.into_iter().map(line).collect()
}

platform::rows! { struct Inserted { id: Uuid } }

/// Stores receipts of new units and returns the ids of the stored receipts. A receipt replaces an earlier
/// rejection of the same unit. The connection is shared, so that the caller can send the statement together
/// with others.
pub(crate) async fn insert(
    mut conn: &AsyncPgConnection,
    new: &[&NewReceipt],
) -> Result<HashSet<Uuid>, DatabaseError> {
    if new.is_empty() {
        return Ok(HashSet::new());
    }
    // Rows are inserted in key order, so that two transactions with the same units do not deadlock.
    let statement = sql(
        include_str!("insert_receipts.sql"),
        (
            column(new, |receipt| receipt.merchant.as_str()),
            column(new, |receipt| receipt.asn_number.as_str()),
            column(new, |receipt| receipt.unit_identifier.as_str()),
            column(new, |receipt| receipt.id),
            column(new, |receipt| receipt.line_identifier.as_str()),
            column(new, |receipt| receipt.message.as_str()),
            column(new, |receipt| receipt.rejected),
            column(new, |receipt| receipt.received_at),
        ),
    );
    let stored: Vec<Inserted> = prepared(statement).load(&mut conn).await?;
    Ok(stored.into_iter().map(|row| row.id).collect())
}

/// Finds receipts by their keys, each with its own lookup as in [`lines`].
pub(crate) async fn find(
    conn: &mut AsyncPgConnection,
    keys: &[UnitKey<'_>],
) -> Result<Vec<StoredReceipt>, DatabaseError> {
    if keys.is_empty() {
        return Ok(Vec::new());
    }
    let query = sql(
        include_str!("find_receipts.sql"),
        (
            column(keys, |(merchant, ..)| *merchant),
            column(keys, |(_, number, _)| *number),
            column(keys, |(.., unit)| *unit),
        ),
    );
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
    let query = sql(
        format!(
            "SELECT merchant, id, asn_number, line_identifier, unit_identifier, message, received_at \
         FROM receipts WHERE {} ORDER BY {} LIMIT $2",
            range.condition(None, Some(("<", "$1"))),
            range.order("DESC")
        ),
        (before.unwrap_or(Uuid::max()), limit, Each(column(&fixed, |(value, _)| *value))),
    );
    Ok(prepared(query).load(conn).await?)
}
