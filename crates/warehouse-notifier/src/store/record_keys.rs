//! The keys of records, for searches in the records of one merchant or of all.

use diesel::QueryableByName;
use diesel::sql_types::{Array, BigInt, Binary, Text, Timestamptz};
use diesel_async::{AsyncPgConnection, RunQueryDsl as _};
use domain::access::MerchantId;
use platform::Timestamp;
use platform::database::{DatabaseError, prepared};

use super::unreadable;
use crate::record_keys::{Key, Record, RecordKeys, RecordKind};

/// Stores the keys that are new.
pub(crate) async fn insert(
    conn: &mut AsyncPgConnection,
    merchant: &MerchantId,
    keys: &RecordKeys,
    at: Timestamp,
) -> Result<(), DatabaseError> {
    if keys.is_empty() {
        return Ok(());
    }
    let digests: Vec<_> = keys.iter().map(|(_, key)| key.digest().as_bytes().to_vec()).collect();
    let kinds: Vec<&'static str> = keys.iter().map(|(record, _)| record.kind.into()).collect();
    let numbers: Vec<_> = keys.iter().map(|(record, _)| record.number.as_str()).collect();
    let statement = diesel::sql_query(
        "INSERT INTO record_keys (key, merchant, kind, number, created_at) \
         SELECT key, $1, kind, number, $2 FROM unnest($3, $4, $5) AS new (key, kind, number) \
         ON CONFLICT ON CONSTRAINT record_keys_pkey DO NOTHING",
    )
    .bind::<Text, _>(merchant.as_str())
    .bind::<Timestamptz, _>(at)
    .bind::<Array<Binary>, _>(digests)
    .bind::<Array<Text>, _>(kinds)
    .bind::<Array<Text>, _>(numbers);
    prepared(statement).execute(conn).await?;
    Ok(())
}

/// A record that was found.
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

#[derive(QueryableByName)]
struct RecordRow {
    #[diesel(sql_type = Text)]
    merchant: String,
    #[diesel(sql_type = Text)]
    kind: String,
    #[diesel(sql_type = Text)]
    number: String,
    #[diesel(sql_type = Timestamptz)]
    created_at: Timestamp,
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
    let query = diesel::sql_query(format!(
        "SELECT merchant, kind, number, created_at FROM record_keys \
         WHERE key = $1 AND {condition} \
         ORDER BY merchant, kind, number LIMIT $5"
    ))
    .bind::<Binary, _>(key.digest().as_bytes().to_vec())
    .bind::<Text, _>(merchant.map_or(after.merchant.as_str(), MerchantId::as_str))
    .bind::<Text, _>(&after.kind)
    .bind::<Text, _>(&after.number)
    .bind::<BigInt, _>(limit);
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
