//! Inbound ASNs and their lines.

use diesel_async::{AsyncPgConnection, RunQueryDsl as _};
use domain::access::MerchantId;
use domain::json::Digest;
use domain::warehouse::{InboundHeader, InboundLine};
use platform::Timestamp;
use platform::database::{DatabaseError, prepared, sql};

use super::{count, page_condition, unreadable};
use crate::error::Error;
use crate::list_position::ListPosition;

/// An ASN to be stored.
pub(crate) struct NewAsn<'a> {
    pub(crate) merchant: &'a MerchantId,
    pub(crate) number: &'a str,
    pub(crate) header: &'a InboundHeader,
    pub(crate) lines: &'a [InboundLine],
    pub(crate) units: i64,
    pub(crate) digest: Digest,
    pub(crate) at: Timestamp,
}

/// A stored ASN without its lines.
#[derive(Debug)]
pub(crate) struct StoredAsn {
    pub(crate) merchant: MerchantId,
    pub(crate) header: InboundHeader,
    pub(crate) lines: i32,
    pub(crate) units: i64,
    pub(crate) received: i64,
    pub(crate) digest: Vec<u8>,
    pub(crate) created_at: Timestamp,
    pub(crate) updated_at: Timestamp,
}

platform::rows! {
    struct AsnRow {
        merchant: String,
        header: String,
        lines: i32,
        units: i64,
        received: i64,
        digest: Vec<u8>,
        created_at: Timestamp,
        updated_at: Timestamp,
    }
}

/// Units that a list counts for each ASN.
const MAX_LISTED_UNITS: i64 = 1000;

/// Selects ASNs, with the units received of each counted up to `most`.
fn select_asns(most: i64) -> String {
    format!(include_str!("select_asns.sql"), most = most)
}

/// Stores an ASN, unless its number is already used.
pub(crate) async fn insert(conn: &mut AsyncPgConnection, new: &NewAsn<'_>) -> Result<bool, Error> {
    let statement = sql(
        "INSERT INTO inbound_asns \
             (merchant, asn_number, header, lines, units, digest, created_at, updated_at) \
         VALUES ($1, $2, $3, $4, $5, $6, $7, $7) \
         ON CONFLICT ON CONSTRAINT inbound_asns_pkey DO NOTHING",
        (
            new.merchant.as_str(),
            new.number,
            serde_json::to_string(new.header)?,
            count(new.lines.len()),
            new.units,
            new.digest.as_bytes().as_slice(),
            new.at,
        ),
    );
    Ok(prepared(statement).execute(conn).await? == 1)
}

/// Replaces the ASN with the same number.
pub(crate) async fn replace(conn: &mut AsyncPgConnection, new: &NewAsn<'_>) -> Result<(), Error> {
    let statement = sql(
        "UPDATE inbound_asns SET header = $3, lines = $4, units = $5, digest = $6, updated_at = $7 \
         WHERE merchant = $1 AND asn_number = $2",
        (
            new.merchant.as_str(),
            new.number,
            serde_json::to_string(new.header)?,
            count(new.lines.len()),
            new.units,
            new.digest.as_bytes().as_slice(),
            new.at,
        ),
    );
    prepared(statement).execute(conn).await?;
    let statement = sql(
        "DELETE FROM inbound_lines WHERE merchant = $1 AND asn_number = $2",
        (new.merchant.as_str(), new.number),
    );
    prepared(statement).execute(conn).await?;
    insert_lines(conn, new).await
}

pub(crate) async fn insert_lines(
    conn: &mut AsyncPgConnection,
    new: &NewAsn<'_>,
) -> Result<(), Error> {
    let mut names = Vec::new();
    let mut lines = Vec::new();
    for line in new.lines {
        names.push(line.detail.line_identifier.to_string());
        lines.push(serde_json::to_string(line)?);
    }
    let positions: Vec<_> = (0..new.lines.len()).map(count).collect();
    let statement = sql(
        "INSERT INTO inbound_lines (merchant, asn_number, line_identifier, position, line) \
         SELECT $1, $2, * FROM unnest($3, $4, $5)",
        (new.merchant.as_str(), new.number, names, positions, lines),
    );
    prepared(statement).execute(conn).await?;
    Ok(())
}

pub(crate) async fn find(
    conn: &mut AsyncPgConnection,
    merchant: &MerchantId,
    number: &str,
) -> Result<Option<StoredAsn>, Error> {
    let asns = select_asns(i64::MAX);
    let query =
        sql(format!("{asns} WHERE merchant = $1 AND asn_number = $2"), (merchant.as_str(), number));
    let found: Vec<AsnRow> = prepared(query).load(conn).await?;
    found.into_iter().next().map(StoredAsn::try_from).transpose()
}

/// Locks an ASN until the end of the transaction, so that no units of it are received meanwhile.
pub(crate) async fn lock(
    conn: &mut AsyncPgConnection,
    merchant: &MerchantId,
    number: &str,
) -> Result<(), DatabaseError> {
    let query = sql(
        "SELECT 1 FROM inbound_asns WHERE merchant = $1 AND asn_number = $2 FOR UPDATE",
        (merchant.as_str(), number),
    );
    prepared(query).execute(conn).await?;
    Ok(())
}

/// Loads a page of the ASNs of a merchant or of all merchants, sorted by merchant and number. The units
/// received of each are counted up to [`MAX_LISTED_UNITS`].
pub(crate) async fn page(
    conn: &mut AsyncPgConnection,
    merchant: Option<&MerchantId>,
    after: &ListPosition,
    limit: i64,
) -> Result<Vec<StoredAsn>, Error> {
    let condition = page_condition(merchant.is_some());
    let asns = select_asns(MAX_LISTED_UNITS);
    let query = sql(
        format!(
            "{asns} WHERE {condition} \
         ORDER BY merchant, asn_number LIMIT $3"
        ),
        (merchant.map_or(after.merchant.as_str(), MerchantId::as_str), &after.number, limit),
    );
    let found: Vec<AsnRow> = prepared(query).load(conn).await?;
    found.into_iter().map(StoredAsn::try_from).collect()
}

platform::rows! { struct BytesRow { bytes: i64 } }

/// The size of all lines of an ASN.
pub(crate) async fn lines_bytes(
    conn: &mut AsyncPgConnection,
    merchant: &MerchantId,
    number: &str,
) -> Result<i64, DatabaseError> {
    let query = sql(
        "SELECT coalesce(sum(octet_length(line)), 0)::bigint AS bytes FROM inbound_lines \
         WHERE merchant = $1 AND asn_number = $2",
        (merchant.as_str(), number),
    );
    let BytesRow { bytes } = prepared(query).get_result(conn).await?;
    Ok(bytes)
}

platform::rows! {
    struct LineRow {
        line: String,
        received: i64,
    }
}

/// Loads the lines of an ASN in order, each with the number of units received.
pub(crate) async fn lines(
    conn: &mut AsyncPgConnection,
    merchant: &MerchantId,
    number: &str,
) -> Result<Vec<(InboundLine, i64)>, Error> {
    let query = sql(include_str!("inbound_lines.sql"), (merchant.as_str(), number));
    let rows: Vec<LineRow> = prepared(query).load(conn).await?;
    rows.into_iter().map(|row| Ok((serde_json::from_str(&row.line)?, row.received))).collect()
}

impl TryFrom<AsnRow> for StoredAsn {
    type Error = Error;

    fn try_from(row: AsnRow) -> Result<Self, Error> {
        let AsnRow { header, lines, units, received, digest, created_at, updated_at, .. } = row;
        let merchant = row.merchant.parse().map_err(unreadable)?;
        let header = serde_json::from_str(&header)?;
        Ok(Self { merchant, header, lines, units, received, digest, created_at, updated_at })
    }
}
