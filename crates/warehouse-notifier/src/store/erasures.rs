//! Replaces a shopper's data in shipments and receipts. Statements are planned each time, because they run
//! rarely and the tables grow.

use api::warehouse::RecordKind;
use diesel_async::{AsyncPgConnection, RunQueryDsl as _};
use domain::access::MerchantId;
use domain::erasure::{erase_report, erase_text};
use domain::json::Digest;
use platform::Timestamp;
use platform::database::{DatabaseError, column, parts_by_bytes, sql};
use serde_json::Value;
use uuid::Uuid;

use super::unreadable;

platform::rows! {
    struct RecordRow {
        kind: String,
        number: String,
    }
}

/// The kinds and numbers of a merchant's records with these keys.
pub(crate) async fn numbers(
    conn: &mut AsyncPgConnection,
    merchant: &MerchantId,
    keys: &[Digest],
) -> Result<Vec<(RecordKind, String)>, DatabaseError> {
    let query = sql(
        "SELECT DISTINCT kind, number FROM record_keys WHERE key = ANY ($2) AND merchant = $1",
        (merchant.as_str(), column(keys, |key| key.as_bytes().to_vec())),
    );
    let rows: Vec<RecordRow> = query.load(conn).await?;
    let read = |row: RecordRow| Ok((row.kind.parse().map_err(unreadable)?, row.number));
    rows.into_iter().map(read).collect()
}

platform::rows! {
    pub(crate) struct LockedShipment {
        pub(crate) asn_number: String,
        header: String,
    }
}

/// Locks those of a merchant's outbound shipments that were reported before a time.
pub(crate) async fn lock_shipments(
    conn: &mut AsyncPgConnection,
    merchant: &MerchantId,
    numbers: &[String],
    before: Timestamp,
) -> Result<Vec<LockedShipment>, DatabaseError> {
    let query = sql(
        "SELECT asn_number, header FROM outbound_shipments \
         WHERE merchant = $1 AND asn_number = ANY ($2) AND created_at < $3 \
         ORDER BY asn_number FOR UPDATE",
        (merchant.as_str(), numbers, before),
    );
    Ok(query.load(conn).await?)
}

/// Applies `erase` to locked outbound shipments and returns the number of those that changed.
pub(crate) async fn erase_shipments(
    conn: &mut AsyncPgConnection,
    merchant: &MerchantId,
    shipments: &[LockedShipment],
    erase: impl Fn(&mut Value),
) -> Result<usize, DatabaseError> {
    let erased = |shipment: &LockedShipment| {
        Some((shipment.asn_number.clone(), erase_text(&shipment.header, &erase)?))
    };
    let (numbers, headers): (Vec<_>, Vec<_>) = shipments.iter().filter_map(erased).unzip();
    let statement = sql(
        "UPDATE outbound_shipments AS own SET header = new.header \
         FROM unnest($2, $3) AS new (asn_number, header) \
         WHERE own.merchant = $1 AND own.asn_number = new.asn_number",
        (merchant.as_str(), numbers, headers),
    );
    Ok(statement.execute(conn).await?)
}

platform::rows! { struct NumberRow { number: String } }

/// The numbers of the messages that outbound shipments were split into.
pub(crate) async fn parts(
    conn: &mut AsyncPgConnection,
    merchant: &MerchantId,
    shipments: &[LockedShipment],
) -> Result<Vec<String>, DatabaseError> {
    let query = sql(
        "SELECT asn_number AS number FROM outbound_parts \
         WHERE merchant = $1 AND shipment = ANY ($2) AND asn_number <> shipment",
        (merchant.as_str(), column(shipments, |it| &it.asn_number)),
    );
    let rows: Vec<NumberRow> = query.load(conn).await?;
    Ok(rows.into_iter().map(|row| row.number).collect())
}

/// The received units of inbound ASNs, as `<number>/<unit>`.
pub(crate) async fn received_units(
    conn: &mut AsyncPgConnection,
    merchant: &MerchantId,
    numbers: &[String],
) -> Result<Vec<String>, DatabaseError> {
    let query = sql(
        "SELECT asn_number || '/' || unit_identifier AS number FROM receipts \
         WHERE merchant = $1 AND asn_number = ANY ($2)",
        (merchant.as_str(), numbers),
    );
    let rows: Vec<NumberRow> = query.load(conn).await?;
    Ok(rows.into_iter().map(|row| row.number).collect())
}

platform::rows! {
    pub(crate) struct LockedAsn {
        pub(crate) asn_number: String,
        header: String,
        pub(crate) updated_at: Timestamp,
    }

    struct LineRow {
        line_identifier: String,
        line: String,
    }
}

/// Locks a merchant's inbound ASNs. A receipt holds the lock of its ASN, so it is stored, or waits.
pub(crate) async fn lock_asns(
    conn: &mut AsyncPgConnection,
    merchant: &MerchantId,
    numbers: &[String],
) -> Result<Vec<LockedAsn>, DatabaseError> {
    let query = sql(
        "SELECT asn_number, header, updated_at FROM inbound_asns \
         WHERE merchant = $1 AND asn_number = ANY ($2) ORDER BY asn_number FOR UPDATE",
        (merchant.as_str(), numbers),
    );
    Ok(query.load(conn).await?)
}

/// Erases locked inbound ASNs, and returns the number of those that changed: all lines of an ASN that is about the
/// shopper, and otherwise the lines that are.
pub(crate) async fn erase_asns(
    conn: &mut AsyncPgConnection,
    merchant: &MerchantId,
    asns: &[LockedAsn],
    is_named: impl Fn(&Value) -> bool,
) -> Result<usize, DatabaseError> {
    let mut changed = 0;
    for LockedAsn { asn_number, header, .. } in asns {
        let is_of_shopper = serde_json::from_str(header).is_ok_and(|header| is_named(&header));
        let erase_named = |value: &mut Value| {
            if is_of_shopper || is_named(value) {
                erase_report(value);
            }
        };
        let header = erase_text(header, erase_named);
        let lines = erase_lines(conn, merchant, asn_number, erase_named).await?;
        changed += usize::from(header.is_some() || lines > 0);
        let Some(header) = header else { continue };
        let statement = sql(
            "UPDATE inbound_asns SET header = $3 WHERE merchant = $1 AND asn_number = $2",
            (merchant.as_str(), asn_number, header),
        );
        statement.execute(conn).await?;
    }
    Ok(changed)
}

async fn erase_lines(
    conn: &mut AsyncPgConnection,
    merchant: &MerchantId,
    asn_number: &str,
    erase: impl Fn(&mut Value),
) -> Result<usize, DatabaseError> {
    let query = sql(
        "SELECT line_identifier, line FROM inbound_lines WHERE merchant = $1 AND asn_number = $2",
        (merchant.as_str(), asn_number),
    );
    let found: Vec<LineRow> = query.load(conn).await?;
    let erased = |row: LineRow| Some((row.line_identifier, erase_text(&row.line, &erase)?));
    let (identifiers, lines): (Vec<_>, Vec<_>) = found.into_iter().filter_map(erased).unzip();
    let statement = sql(
        "UPDATE inbound_lines AS own SET line = new.line \
         FROM unnest($3, $4) AS new (line_identifier, line) \
         WHERE own.merchant = $1 AND own.asn_number = $2 \
             AND own.line_identifier = new.line_identifier",
        (merchant.as_str(), asn_number, identifiers, lines),
    );
    Ok(statement.execute(conn).await?)
}

platform::rows! {
    struct ReceiptSize {
        id: Uuid,
        bytes: i32,
    }

    struct ReceiptRow {
        id: Uuid,
        message: String,
    }
}

/// Applies `erase` to the receipts of inbound ASNs, or to those from before a time, and returns the number of those
/// that changed. An ASN may have thousands of receipts of other shoppers, which are read in parts and not locked. A
/// receipt that another one replaces meanwhile is newer, and stays.
pub(crate) async fn erase_receipts(
    conn: &mut AsyncPgConnection,
    merchant: &MerchantId,
    numbers: &[String],
    before: Option<Timestamp>,
    erase: impl Fn(&mut Value),
) -> Result<usize, DatabaseError> {
    let query = sql(
        "SELECT id, octet_length(message) AS bytes FROM receipts \
         WHERE merchant = $1 AND asn_number = ANY ($2) \
             AND ($3 IS NULL OR received_at < $3) \
         ORDER BY asn_number, unit_identifier",
        (merchant.as_str(), numbers, before),
    );
    let found: Vec<ReceiptSize> = query.load(conn).await?;
    let mut changed = 0;
    for part in parts_by_bytes(&found, |row| usize::try_from(row.bytes).unwrap_or_default()) {
        let ids: Vec<_> = part.iter().map(|row| row.id).collect();
        let query = sql("SELECT id, message FROM receipts WHERE id = ANY ($1)", ids);
        let rows: Vec<ReceiptRow> = query.load(conn).await?;
        changed += update_receipts(conn, &rows, &erase).await?;
    }
    Ok(changed)
}

async fn update_receipts(
    conn: &mut AsyncPgConnection,
    rows: &[ReceiptRow],
    erase: impl Fn(&mut Value),
) -> Result<usize, DatabaseError> {
    let mut ids = Vec::new();
    let mut before = Vec::new();
    let mut after = Vec::new();
    for row in rows {
        if let Some(erased) = erase_text(&row.message, &erase) {
            ids.push(row.id);
            before.push(row.message.as_str());
            after.push(erased);
        }
    }
    let statement = sql(
        "UPDATE receipts SET message = new.after \
         FROM unnest($1, $2, $3) AS new (id, before, after) \
         WHERE receipts.id = new.id AND receipts.message = new.before",
        (ids, before, after),
    );
    Ok(statement.execute(conn).await?)
}
