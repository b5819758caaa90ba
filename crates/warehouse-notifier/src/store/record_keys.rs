//! The keys of records, for searches in the records of one merchant or of all.

use std::collections::BTreeSet;

use api::warehouse::RecordKind;
use diesel_async::{AsyncPgConnection, RunQueryDsl as _};
use domain::access::MerchantId;
use platform::Timestamp;
use platform::database::{DatabaseError, prepared, sql};

use super::unreadable;
use crate::record_keys::{Key, Record, RecordKeys};

/// Stores the keys of merchants' records that are new, in order, so that two transactions with the same keys
/// do not deadlock. The connection is shared, so that the caller can send the statement together with others.
pub(crate) async fn insert(
    mut conn: &AsyncPgConnection,
    keys: &[(&MerchantId, &RecordKeys)],
    at: Timestamp,
) -> Result<(), DatabaseError> {
    let sorted: BTreeSet<_> =
        keys.iter().flat_map(|(merchant, keys)| keys.iter().map(|it| (*merchant, it))).collect();
    if sorted.is_empty() {
        return Ok(());
    }
    let digests: Vec<_> =
        sorted.iter().map(|(_, (_, key))| key.digest().as_bytes().to_vec()).collect();
    let merchants: Vec<_> = sorted.iter().map(|(merchant, _)| merchant.as_str()).collect();
    let kinds: Vec<&'static str> =
        sorted.iter().map(|(_, (record, _))| record.kind.into()).collect();
    let numbers: Vec<_> = sorted.iter().map(|(_, (record, _))| record.number.as_str()).collect();
    let statement = sql(
        "INSERT INTO record_keys (key, merchant, kind, number, created_at) \
         SELECT key, merchant, kind, number, $1 \
         FROM unnest((SELECT $2), $3, $4, $5) AS new (key, merchant, kind, number) \
         ON CONFLICT ON CONSTRAINT record_keys_pkey DO NOTHING",
        (at, digests, merchants, kinds, numbers),
    );
    prepared(statement).execute(&mut conn).await?;
    Ok(())
}

pub(crate) struct FoundRecord {
    pub(crate) merchant: MerchantId,
    pub(crate) record: Record,
    /// The time at which the key was stored.
    pub(crate) created_at: Timestamp,
}

/// The records of a page are sorted after this position. The default is the start of the list.
#[derive(Debug, Default)]
pub(crate) struct RecordPosition {
    pub(crate) merchant: String,
    pub(crate) kind: String,
    pub(crate) number: String,
}

platform::rows! {
    struct RecordRow {
        merchant: String,
        kind: String,
        number: String,
        created_at: Timestamp,
    }
}

/// Finds the records with a key, at most `limit`, sorted by merchant, kind and number.
pub(crate) async fn find(
    conn: &mut AsyncPgConnection,
    merchant: Option<&MerchantId>,
    key: &Key,
    after: &RecordPosition,
    limit: i64,
) -> Result<Vec<FoundRecord>, DatabaseError> {
    // Beside an equality of the merchant, a comparison with it would read the pages before, too.
    let condition = match merchant {
        Some(_) => "merchant = $2 AND (kind, number) > ($3, $4)",
        None => "(merchant, kind, number) > ($2, $3, $4)",
    };
    let query = sql(
        format!(
            "SELECT merchant, kind, number, created_at FROM record_keys \
         WHERE key = $1 AND {condition} \
         ORDER BY merchant, kind, number LIMIT $5"
        ),
        (
            key.digest().as_bytes().to_vec(),
            merchant.map_or(after.merchant.as_str(), MerchantId::as_str),
            &after.kind,
            &after.number,
            limit,
        ),
    );
    let rows: Vec<RecordRow> = prepared(query).load(conn).await?;
    rows.into_iter().map(FoundRecord::try_from).collect()
}

impl TryFrom<RecordRow> for FoundRecord {
    type Error = DatabaseError;

    fn try_from(row: RecordRow) -> Result<Self, DatabaseError> {
        let RecordRow { merchant, kind, number, created_at } = row;
        let merchant = merchant.parse().map_err(unreadable)?;
        let kind: RecordKind = kind.parse().map_err(unreadable)?;
        Ok(Self { merchant, record: Record { kind, number }, created_at })
    }
}
