//! Outbound shipments and their parts: the messages that a shipment is split into.

use diesel::QueryableByName;
use diesel::sql_types::{Array, BigInt, Binary, Integer, Text, Timestamptz};
use diesel_async::{AsyncPgConnection, RunQueryDsl as _};
use domain::access::MerchantId;
use domain::json::Digest;
use domain::warehouse::{AsnPart, OutboundHeader, ShipmentType};
use platform::Timestamp;
use platform::database::{DatabaseError, is_truncated, limit_page_bytes, prepared};

use super::count;
use crate::error::Error;

/// A shipment to be stored.
pub(crate) struct NewShipment<'a> {
    pub(crate) merchant: &'a MerchantId,
    pub(crate) shipment_type: ShipmentType,
    pub(crate) header: &'a OutboundHeader,
    pub(crate) parts: &'a [AsnPart],
    pub(crate) digest: Digest,
    pub(crate) at: Timestamp,
}

/// A stored shipment.
#[derive(Debug)]
pub(crate) struct StoredShipment {
    pub(crate) asn_number: String,
    pub(crate) shipment_type: String,
    pub(crate) header: OutboundHeader,
    pub(crate) units: i32,
    pub(crate) digest: Vec<u8>,
    pub(crate) created_at: Timestamp,
    pub(crate) updated_at: Timestamp,
}

#[derive(QueryableByName)]
struct ShipmentRow {
    #[diesel(sql_type = Text)]
    asn_number: String,
    #[diesel(sql_type = Text)]
    shipment_type: String,
    #[diesel(sql_type = Text)]
    header: String,
    #[diesel(sql_type = Integer)]
    units: i32,
    #[diesel(sql_type = Binary)]
    digest: Vec<u8>,
    #[diesel(sql_type = Timestamptz)]
    created_at: Timestamp,
    #[diesel(sql_type = Timestamptz)]
    updated_at: Timestamp,
}

/// Locks the splitting of a merchant's shipments until the end of the transaction. Two concurrent
/// transactions would not see the numbers that the other one uses for its parts.
pub(crate) async fn lock_splitting(
    conn: &mut AsyncPgConnection,
    merchant: &MerchantId,
) -> Result<(), DatabaseError> {
    const SPLIT_LOCK: i32 = 0x0063_7574;
    let lock = diesel::sql_query("SELECT pg_advisory_xact_lock($1, hashtext($2))")
        .bind::<Integer, _>(SPLIT_LOCK)
        .bind::<Text, _>(merchant.as_str());
    prepared(lock).execute(conn).await?;
    Ok(())
}

/// Stores a shipment, unless its number is already used by a shipment or a part.
pub(crate) async fn insert(
    conn: &mut AsyncPgConnection,
    new: &NewShipment<'_>,
) -> Result<bool, Error> {
    let units: usize = new.parts.iter().map(|part| part.units).sum();
    let statement = diesel::sql_query(
        "INSERT INTO outbound_shipments \
             (merchant, asn_number, shipment_type, header, units, digest, created_at, updated_at) \
         SELECT $1, $2, $3, $4, $5, $6, $7, $7 \
         WHERE NOT EXISTS (SELECT FROM outbound_parts WHERE merchant = $1 AND asn_number = $2) \
         ON CONFLICT ON CONSTRAINT outbound_shipments_pkey DO NOTHING",
    )
    .bind::<Text, _>(new.merchant.as_str())
    .bind::<Text, _>(&new.header.asn_number)
    .bind::<Text, _>(new.shipment_type.as_str())
    .bind::<Text, _>(serde_json::to_string(new.header)?)
    .bind::<Integer, _>(count(units))
    .bind::<Binary, _>(new.digest.as_bytes().as_slice())
    .bind::<Timestamptz, _>(new.at);
    Ok(prepared(statement).execute(conn).await? == 1)
}

/// Stores the parts of a shipment. Returns false if a number is already used by a part or a shipment.
pub(crate) async fn insert_parts(
    conn: &mut AsyncPgConnection,
    new: &NewShipment<'_>,
) -> Result<bool, DatabaseError> {
    let numbers: Vec<_> = new.parts.iter().map(|part| part.asn_number.as_str()).collect();
    let positions: Vec<_> = (0..new.parts.len()).map(count).collect();
    let units: Vec<_> = new.parts.iter().map(|part| count(part.units)).collect();
    let cartons: Vec<_> = new.parts.iter().map(|part| part.cartons.as_str()).collect();
    let statement = diesel::sql_query(
        "INSERT INTO outbound_parts (merchant, asn_number, shipment, position, units, cartons) \
         SELECT $1, asn_number, $2, position, units, cartons \
         FROM unnest($3, $4, $5, $6) AS new (asn_number, position, units, cartons) \
         WHERE asn_number = $2 OR NOT EXISTS ( \
             SELECT FROM outbound_shipments AS other \
             WHERE other.merchant = $1 AND other.asn_number = new.asn_number \
         ) \
         ORDER BY asn_number \
         ON CONFLICT ON CONSTRAINT outbound_parts_pkey DO NOTHING",
    )
    .bind::<Text, _>(new.merchant.as_str())
    .bind::<Text, _>(&new.header.asn_number)
    .bind::<Array<Text>, _>(numbers)
    .bind::<Array<Integer>, _>(positions)
    .bind::<Array<Integer>, _>(units)
    .bind::<Array<Text>, _>(cartons);
    Ok(prepared(statement).execute(conn).await? == new.parts.len())
}

/// Finds a shipment by its number.
pub(crate) async fn find(
    conn: &mut AsyncPgConnection,
    merchant: &MerchantId,
    number: &str,
    lock: Lock,
) -> Result<Option<StoredShipment>, Error> {
    let query = diesel::sql_query(format!(
        "SELECT asn_number, shipment_type, header, units, digest, created_at, updated_at \
         FROM outbound_shipments WHERE merchant = $1 AND asn_number = $2{}",
        match lock {
            Lock::None => "",
            Lock::Update => " FOR UPDATE",
        }
    ))
    .bind::<Text, _>(merchant.as_str())
    .bind::<Text, _>(number);
    let found: Vec<ShipmentRow> = prepared(query).load(conn).await?;
    found.into_iter().next().map(StoredShipment::try_from).transpose()
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum Lock {
    None,
    Update,
}

#[derive(QueryableByName)]
struct PageRow {
    #[diesel(embed)]
    shipment: ShipmentRow,
    #[diesel(sql_type = BigInt)]
    found: i64,
}

/// Loads a page of a merchant's shipments, sorted by number, and returns whether it was truncated. A
/// tracking number may be as long as a request, so the size of a page is limited in bytes too.
pub(crate) async fn page(
    conn: &mut AsyncPgConnection,
    merchant: &MerchantId,
    after: &str,
    limit: i64,
) -> Result<(Vec<StoredShipment>, bool), Error> {
    let (prefix, suffix) = limit_page_bytes("asn_number");
    let query = diesel::sql_query(format!(
        "{prefix}SELECT asn_number, shipment_type, header, units, digest, created_at, \
             updated_at, octet_length(header) AS weight \
         FROM outbound_shipments WHERE merchant = $1 AND asn_number > $2 \
         ORDER BY asn_number LIMIT $3{suffix}"
    ))
    .bind::<Text, _>(merchant.as_str())
    .bind::<Text, _>(after)
    .bind::<BigInt, _>(limit);
    let found: Vec<PageRow> = prepared(query).load(conn).await?;
    let is_truncated = is_truncated(&found, |row| row.found);
    let page: Result<_, _> = found.into_iter().map(|row| row.shipment.try_into()).collect();
    Ok((page?, is_truncated))
}

/// Stores a changed header.
pub(crate) async fn change(
    conn: &mut AsyncPgConnection,
    merchant: &MerchantId,
    header: &OutboundHeader,
    at: Timestamp,
) -> Result<(), Error> {
    let statement = diesel::sql_query(
        "UPDATE outbound_shipments SET header = $3, updated_at = $4 \
         WHERE merchant = $1 AND asn_number = $2",
    )
    .bind::<Text, _>(merchant.as_str())
    .bind::<Text, _>(&header.asn_number)
    .bind::<Text, _>(serde_json::to_string(header)?)
    .bind::<Timestamptz, _>(at);
    prepared(statement).execute(conn).await?;
    Ok(())
}

#[derive(QueryableByName)]
struct PartRow {
    #[diesel(sql_type = Text)]
    asn_number: String,
    #[diesel(sql_type = Integer)]
    units: i32,
    #[diesel(sql_type = Text)]
    cartons: String,
}

/// Loads the parts of a shipment in order, with their cartons.
pub(crate) async fn parts(
    conn: &mut AsyncPgConnection,
    merchant: &MerchantId,
    shipment: &str,
) -> Result<Vec<AsnPart>, DatabaseError> {
    let columns = "asn_number, units, cartons";
    load_parts(conn, merchant, shipment, columns).await
}

/// Loads the parts of a shipment in order, without their cartons.
pub(crate) async fn part_numbers(
    conn: &mut AsyncPgConnection,
    merchant: &MerchantId,
    shipment: &str,
) -> Result<Vec<AsnPart>, DatabaseError> {
    let columns = "asn_number, units, '' AS cartons";
    load_parts(conn, merchant, shipment, columns).await
}

async fn load_parts(
    conn: &mut AsyncPgConnection,
    merchant: &MerchantId,
    shipment: &str,
    columns: &'static str,
) -> Result<Vec<AsnPart>, DatabaseError> {
    let query = diesel::sql_query(format!(
        "SELECT {columns} FROM outbound_parts WHERE merchant = $1 AND shipment = $2 ORDER BY position"
    ))
    .bind::<Text, _>(merchant.as_str())
    .bind::<Text, _>(shipment);
    let rows: Vec<PartRow> = prepared(query).load(conn).await?;
    let part = |PartRow { asn_number, units, cartons }| AsnPart {
        asn_number,
        units: usize::try_from(units).unwrap_or_default(),
        cartons,
    };
    Ok(rows.into_iter().map(part).collect())
}

impl TryFrom<ShipmentRow> for StoredShipment {
    type Error = Error;

    fn try_from(row: ShipmentRow) -> Result<Self, Error> {
        let ShipmentRow { asn_number, shipment_type, header, units, digest, .. } = row;
        let header = serde_json::from_str(&header)?;
        let (created_at, updated_at) = (row.created_at, row.updated_at);
        Ok(Self { asn_number, shipment_type, header, units, digest, created_at, updated_at })
    }
}
