//! The parts of outbound shipments: the messages that a shipment is split into.

use diesel_async::{AsyncPgConnection, RunQueryDsl as _};
use domain::access::MerchantId;
use domain::warehouse::AsnPart;
use platform::database::{DatabaseError, prepared, sql};

use super::count;
use super::outbound::NewShipment;

/// Locks the splitting of a merchant's shipments until the end of the transaction. Two concurrent
/// transactions would not see the numbers that the other one uses for its parts.
pub(crate) async fn lock(
    conn: &mut AsyncPgConnection,
    merchant: &MerchantId,
) -> Result<(), DatabaseError> {
    const SPLIT_LOCK: i32 = i32::from_be_bytes(*b"\0cut");
    let lock =
        sql("SELECT pg_advisory_xact_lock($1, hashtext($2))", (SPLIT_LOCK, merchant.as_str()));
    prepared(lock).execute(conn).await?;
    Ok(())
}

/// Stores the parts of a shipment. Returns false if a number is already used by a part or a shipment.
pub(crate) async fn insert(
    conn: &mut AsyncPgConnection,
    new: &NewShipment<'_>,
) -> Result<bool, DatabaseError> {
    let numbers: Vec<_> = new.parts.iter().map(|part| part.asn_number.as_str()).collect();
    let positions: Vec<_> = (0..new.parts.len()).map(count).collect();
    let units: Vec<_> = new.parts.iter().map(|part| count(part.units)).collect();
    let cartons: Vec<_> = new.parts.iter().map(|part| part.cartons.as_str()).collect();
    let statement = sql(
        include_str!("insert_shipment_parts.sql"),
        (new.merchant.as_str(), &new.header.asn_number, numbers, positions, units, cartons),
    );
    Ok(prepared(statement).execute(conn).await? == new.parts.len())
}

platform::rows! {
    struct PartRow {
        asn_number: String,
        units: i32,
        cartons: String,
    }
}

/// Loads the parts of a shipment in order, with their cartons.
pub(crate) async fn load(
    conn: &mut AsyncPgConnection,
    merchant: &MerchantId,
    shipment: &str,
) -> Result<Vec<AsnPart>, DatabaseError> {
    let columns = "asn_number, units, cartons";
    load_parts(conn, merchant, shipment, columns).await
}

/// Loads the parts of a shipment in order, without their cartons.
pub(crate) async fn load_numbers(
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
    let query = sql(
        format!(
            "SELECT {columns} FROM outbound_parts WHERE merchant = $1 AND shipment = $2 ORDER BY position"
        ),
        (merchant.as_str(), shipment),
    );
    let rows: Vec<PartRow> = prepared(query).load(conn).await?;
    let part = |PartRow { asn_number, units, cartons }| AsnPart {
        asn_number,
        units: usize::try_from(units).unwrap_or_default(),
        cartons,
    };
    Ok(rows.into_iter().map(part).collect())
}
