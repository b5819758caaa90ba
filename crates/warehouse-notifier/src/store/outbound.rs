//! Outbound shipments.

use diesel::QueryableByName;
use diesel_async::{AsyncPgConnection, RunQueryDsl as _};
use domain::access::MerchantId;
use domain::json::Digest;
use domain::warehouse::{AsnPart, OutboundHeader, ShipmentType};
use platform::Timestamp;
use platform::database::{is_truncated, limit_page_bytes, prepared, sql};

use super::{count, page_condition, unreadable};
use crate::error::Error;
use crate::list_position::ListPosition;

/// A shipment to be stored.
pub(crate) struct NewShipment<'a> {
    pub(crate) merchant: &'a MerchantId,
    pub(crate) shipment_type: ShipmentType,
    pub(crate) header: &'a OutboundHeader,
    pub(crate) parts: &'a [AsnPart],
    pub(crate) digest: Digest,
    pub(crate) at: Timestamp,
}

#[derive(Debug)]
pub(crate) struct StoredShipment {
    pub(crate) merchant: MerchantId,
    pub(crate) asn_number: String,
    pub(crate) shipment_type: String,
    pub(crate) header: OutboundHeader,
    pub(crate) units: i32,
    pub(crate) digest: Vec<u8>,
    pub(crate) created_at: Timestamp,
    pub(crate) updated_at: Timestamp,
}

platform::rows! {
    struct ShipmentRow {
        merchant: String,
        asn_number: String,
        shipment_type: String,
        header: String,
        units: i32,
        digest: Vec<u8>,
        created_at: Timestamp,
        updated_at: Timestamp,
    }
}

/// Stores a shipment, unless its number is already used by a shipment or a part.
pub(crate) async fn insert(
    conn: &mut AsyncPgConnection,
    new: &NewShipment<'_>,
) -> Result<bool, Error> {
    let units: usize = new.parts.iter().map(|part| part.units).sum();
    let statement = sql(
        include_str!("insert_shipment.sql"),
        (
            new.merchant.as_str(),
            &new.header.asn_number,
            new.shipment_type.as_str(),
            serde_json::to_string(new.header)?,
            count(units),
            new.digest.as_bytes().as_slice(),
            new.at,
        ),
    );
    Ok(prepared(statement).execute(conn).await? == 1)
}

/// Finds a shipment by its number.
pub(crate) async fn find(
    conn: &mut AsyncPgConnection,
    merchant: &MerchantId,
    number: &str,
    lock: Lock,
) -> Result<Option<StoredShipment>, Error> {
    let query = sql(
        format!(
            "SELECT merchant, asn_number, shipment_type, header, units, digest, created_at, updated_at \
         FROM outbound_shipments WHERE merchant = $1 AND asn_number = $2{}",
            match lock {
                Lock::None => "",
                Lock::Update => " FOR UPDATE",
            }
        ),
        (merchant.as_str(), number),
    );
    let found: Vec<ShipmentRow> = prepared(query).load(conn).await?;
    found.into_iter().next().map(StoredShipment::try_from).transpose()
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum Lock {
    None,
    Update,
}

platform::rows! {
    struct PageRow {
        #[diesel(embed)]
        shipment: ShipmentRow,
        found: i64,
    }
}

/// Loads a page of the shipments of a merchant or of all merchants, sorted by merchant and number, and
/// returns whether it was truncated. A tracking number may be as long as a request, so the size of a page
/// is limited in bytes too.
pub(crate) async fn page(
    conn: &mut AsyncPgConnection,
    merchant: Option<&MerchantId>,
    after: &ListPosition,
    limit: i64,
) -> Result<(Vec<StoredShipment>, bool), Error> {
    let (prefix, suffix) = limit_page_bytes("merchant, asn_number");
    let condition = page_condition(merchant.is_some());
    let query = sql(
        format!(
            "{prefix}SELECT merchant, asn_number, shipment_type, header, units, digest, created_at, \
             updated_at, octet_length(header) AS weight \
         FROM outbound_shipments WHERE {condition} \
         ORDER BY merchant, asn_number LIMIT $3{suffix}"
        ),
        (merchant.map_or(after.merchant.as_str(), MerchantId::as_str), &after.number, limit),
    );
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
    let statement = sql(
        "UPDATE outbound_shipments SET header = $3, updated_at = $4 \
         WHERE merchant = $1 AND asn_number = $2",
        (merchant.as_str(), &header.asn_number, serde_json::to_string(header)?, at),
    );
    prepared(statement).execute(conn).await?;
    Ok(())
}

impl TryFrom<ShipmentRow> for StoredShipment {
    type Error = Error;

    fn try_from(row: ShipmentRow) -> Result<Self, Error> {
        let ShipmentRow { asn_number, shipment_type, header, units, digest, .. } = row;
        let merchant = row.merchant.parse().map_err(unreadable)?;
        let header = serde_json::from_str(&header)?;
        let created_at = row.created_at;
        let updated_at = row.updated_at;
        Ok(Self {
            merchant,
            asn_number,
            shipment_type,
            header,
            units,
            digest,
            created_at,
            updated_at,
        })
    }
}
