//! Replaces a shopper's data in orders, returns, timelines and discrepancies. Statements are planned each
//! time, because they run rarely and the tables grow.

use std::borrow::Borrow;
use std::collections::{BTreeSet, HashMap};

use diesel::OptionalExtension as _;
use diesel_async::{AsyncPgConnection, RunQueryDsl as _};
use domain::access::MerchantId;
use domain::erasure::{ERASED, EmailDigest, erase, erase_history, erase_text};
use domain::returns::{Rma, RmaStatus};
use platform::Timestamp;
use platform::database::{DatabaseError, column, parts_by_bytes, prepared, sql};
use serde_json::Value;

use super::label_requests::UNSEALED;
use super::unreadable;

#[derive(Debug)]
pub(crate) struct LockedReturn {
    pub(crate) rma_identifier: String,
    pub(crate) status: RmaStatus,
    pub(crate) updated_at: Timestamp,
    pub(crate) order_identifiers: Vec<String>,
    bytes: usize,
}

platform::rows! {
    struct FoundReturn {
        rma_identifier: String,
        status: String,
        updated_at: Timestamp,
        bytes: i32,
    }

    struct ReturnRow {
        rma_identifier: String,
        document: String,
    }
}

const RETURNS: &str = "SELECT rma_identifier, status, updated_at, octet_length(document) AS bytes \
     FROM returns AS own WHERE own.merchant = $1";

/// Locks a merchant's returns with units of these orders, as they were before the event with this sequence number.
pub(crate) async fn lock_returns(
    conn: &mut AsyncPgConnection,
    merchant: &MerchantId,
    orders: &[String],
    sequence: i64,
) -> Result<Vec<LockedReturn>, DatabaseError> {
    let query = sql(
        format!(
            "{RETURNS} AND own.rma_identifier IN ( \
             SELECT rma_identifier FROM return_units \
             WHERE merchant = $1 AND order_identifier = ANY ($2) AND order_sequence < $3) \
         ORDER BY rma_identifier FOR NO KEY UPDATE"
        ),
        (merchant.as_str(), orders, sequence),
    );
    let found = query.load(conn).await?;
    with_orders(conn, merchant, found).await
}

/// Locks a merchant's returns from before a time that have this address beside that of the order: of a giftee, or of a
/// withdrawal.
pub(crate) async fn lock_returns_of_other(
    conn: &mut AsyncPgConnection,
    merchant: &MerchantId,
    email: &EmailDigest,
    before: Timestamp,
) -> Result<Vec<LockedReturn>, DatabaseError> {
    let query = sql(
        format!(
            "{RETURNS} AND own.other_email_sha256 = $2 AND own.created_at < $3 \
         ORDER BY rma_identifier FOR NO KEY UPDATE"
        ),
        (merchant.as_str(), email.as_str(), before),
    );
    let found = query.load(conn).await?;
    with_orders(conn, merchant, found).await
}

/// Adds the orders of locked returns. Documents are read in parts: together they may have hundreds of megabytes.
async fn with_orders(
    conn: &mut AsyncPgConnection,
    merchant: &MerchantId,
    found: Vec<FoundReturn>,
) -> Result<Vec<LockedReturn>, DatabaseError> {
    let mut locked = Vec::with_capacity(found.len());
    for FoundReturn { rma_identifier, status, updated_at, bytes } in found {
        let status = status.parse().map_err(unreadable)?;
        let bytes = usize::try_from(bytes).unwrap_or_default();
        let order_identifiers = Vec::new();
        locked.push(LockedReturn { rma_identifier, status, updated_at, order_identifiers, bytes });
    }
    let mut orders = HashMap::new();
    for part in parts_by_bytes(&locked, |it| it.bytes) {
        for ReturnRow { rma_identifier, document } in documents(conn, merchant, part).await? {
            let rma: Rma = serde_json::from_str(&document).map_err(unreadable)?;
            let units = rma.units.into_iter();
            let of_units: BTreeSet<_> = units.map(|unit| unit.id.order_identifier).collect();
            orders.insert(rma_identifier, Vec::from_iter(of_units));
        }
    }
    for rma in &mut locked {
        rma.order_identifiers = orders.remove(&rma.rma_identifier).unwrap_or_default();
    }
    Ok(locked)
}

async fn documents<T: Borrow<LockedReturn>>(
    conn: &mut AsyncPgConnection,
    merchant: &MerchantId,
    returns: &[T],
) -> Result<Vec<ReturnRow>, DatabaseError> {
    let query = sql(
        "SELECT rma_identifier, document FROM returns \
         WHERE merchant = $1 AND rma_identifier = ANY ($2)",
        (merchant.as_str(), column(returns, |it| &it.borrow().rma_identifier)),
    );
    Ok(query.load(conn).await?)
}

/// Erases locked returns, and records the time of the erasure: older reports of a warehouse that arrive later are
/// erased too.
pub(crate) async fn erase_returns(
    conn: &mut AsyncPgConnection,
    merchant: &MerchantId,
    returns: &[&LockedReturn],
    erased_at: Timestamp,
) -> Result<(), DatabaseError> {
    for part in parts_by_bytes(returns, |it| it.bytes) {
        let mut identifiers = Vec::new();
        let mut erased = Vec::new();
        for ReturnRow { rma_identifier, document } in documents(conn, merchant, part).await? {
            erased.push(erase_text(&document, erase).unwrap_or(document));
            identifiers.push(rma_identifier);
        }
        let statement = sql(
            "UPDATE returns SET document = new.document, customer_email = NULL, \
                 other_email_sha256 = NULL, erased_at = greatest(returns.erased_at, $4) \
             FROM unnest($2, $3) AS new (rma_identifier, document) \
             WHERE returns.merchant = $1 AND returns.rma_identifier = new.rma_identifier",
            (merchant.as_str(), &identifiers, erased, erased_at),
        );
        statement.execute(conn).await?;
        erase_label_requests(conn, merchant, &identifiers).await?;
        erase_timelines(conn, merchant, &identifiers).await?;
    }
    Ok(())
}

/// A label shows the shopper's address, and so may the words of the provider.
async fn erase_label_requests(
    conn: &mut AsyncPgConnection,
    merchant: &MerchantId,
    returns: &[String],
) -> Result<(), DatabaseError> {
    let statement = sql(
        format!(
            "UPDATE label_requests SET label_url = NULL, {UNSEALED}, \
                 detail = CASE WHEN detail IS NOT NULL THEN $3 END \
             WHERE merchant = $1 AND rma_identifier = ANY ($2)"
        ),
        (merchant.as_str(), returns, ERASED),
    );
    statement.execute(conn).await?;
    Ok(())
}

platform::rows! { struct ErasedRow { erased_at: Timestamp } }

/// The time of the last erasure of a return, if there was one.
pub(crate) async fn erased_at(
    conn: &mut AsyncPgConnection,
    merchant: &MerchantId,
    rma_identifier: &str,
) -> Result<Option<Timestamp>, DatabaseError> {
    let query = sql(
        "SELECT erased_at FROM returns \
         WHERE merchant = $1 AND rma_identifier = $2 AND erased_at IS NOT NULL",
        (merchant.as_str(), rma_identifier),
    );
    let row: Option<ErasedRow> = prepared(query).get_result(conn).await.optional()?;
    Ok(row.map(|row| row.erased_at))
}

platform::rows! {
    struct OrderSize {
        identifier: String,
        bytes: i32,
    }

    struct OrderRow {
        identifier: String,
        document: String,
    }
}

/// Locks a merchant's orders in the sequence in which every transaction locks them.
pub(crate) async fn lock_orders(
    conn: &mut AsyncPgConnection,
    merchant: &MerchantId,
    orders: &[String],
) -> Result<(), DatabaseError> {
    let query = sql(
        "SELECT 1 FROM orders WHERE merchant = $1 AND identifier = ANY ($2) \
         ORDER BY identifier FOR NO KEY UPDATE",
        (merchant.as_str(), orders),
    );
    query.execute(conn).await?;
    Ok(())
}

/// Erases locked orders with snapshots from before the event with this sequence number. Returns the number of
/// those that changed.
pub(crate) async fn erase_orders(
    conn: &mut AsyncPgConnection,
    merchant: &MerchantId,
    orders: &[String],
    sequence: i64,
) -> Result<usize, DatabaseError> {
    let query = sql(
        "SELECT identifier, octet_length(document) AS bytes FROM orders \
         WHERE merchant = $1 AND identifier = ANY ($2) AND sequence < $3",
        (merchant.as_str(), orders, sequence),
    );
    let found: Vec<OrderSize> = query.load(conn).await?;
    let mut changed = 0;
    for part in parts_by_bytes(&found, |row| usize::try_from(row.bytes).unwrap_or_default()) {
        let query = sql(
            "SELECT identifier, document FROM orders WHERE merchant = $1 AND identifier = ANY ($2)",
            (merchant.as_str(), column(part, |row| &row.identifier)),
        );
        let rows: Vec<OrderRow> = query.load(conn).await?;
        let erased = |row: OrderRow| Some((row.identifier, erase_text(&row.document, erase)?));
        let (identifiers, documents): (Vec<_>, Vec<_>) =
            rows.into_iter().filter_map(erased).unzip();
        let statement = sql(
            "UPDATE orders SET document = new.document \
             FROM unnest($2, $3) AS new (identifier, document) \
             WHERE orders.merchant = $1 AND orders.identifier = new.identifier",
            (merchant.as_str(), identifiers, documents),
        );
        changed += statement.execute(conn).await?;
    }
    Ok(changed)
}

platform::rows! {
    struct DetailRow {
        position: i64,
        detail: Value,
    }
}

/// The positions and erased details of rows that change.
fn erased_details(rows: Vec<DetailRow>, erase: fn(&mut Value)) -> (Vec<i64>, Vec<Value>) {
    let erased = |row: DetailRow| {
        let mut detail = row.detail.clone();
        erase(&mut detail);
        (detail != row.detail).then_some((row.position, detail))
    };
    rows.into_iter().filter_map(erased).unzip()
}

/// Erases the remarks in timelines. The setting makes the trigger allow this change.
async fn erase_timelines(
    conn: &mut AsyncPgConnection,
    merchant: &MerchantId,
    returns: &[String],
) -> Result<(), DatabaseError> {
    let query = sql(
        "SELECT position, detail FROM timeline WHERE merchant = $1 AND rma_identifier = ANY ($2)",
        (merchant.as_str(), returns),
    );
    let (positions, details) = erased_details(query.load(conn).await?, erase_history);
    set_erasing(conn, "on").await?;
    let statement = sql(
        "UPDATE timeline SET detail = new.detail FROM unnest($3, $4) AS new (position, detail) \
         WHERE timeline.merchant = $1 AND timeline.rma_identifier = ANY ($2) \
         AND timeline.position = new.position",
        (merchant.as_str(), returns, positions, details),
    );
    statement.execute(conn).await?;
    set_erasing(conn, "off").await
}

async fn set_erasing(conn: &mut AsyncPgConnection, value: &str) -> Result<(), DatabaseError> {
    let set = sql("SELECT set_config('backhaul.erasing', $1, true)", value);
    set.execute(conn).await?;
    Ok(())
}

/// The records that [`erase_discrepancies`] is about.
pub(crate) struct ErasedRecords<'a> {
    pub(crate) orders: &'a [String],
    pub(crate) returns: &'a [String],
    pub(crate) erased_at: Timestamp,
}

/// Erases discrepancies of these returns, and those of these orders that are older than the erasure. Another
/// return of an order may be newer. A note that a person wrote after the erasure stays.
pub(crate) async fn erase_discrepancies(
    conn: &mut AsyncPgConnection,
    merchant: &MerchantId,
    records: &ErasedRecords<'_>,
) -> Result<(), DatabaseError> {
    let query = sql(
        "SELECT position, detail FROM discrepancies WHERE merchant = $1 \
         AND (rma_identifier = ANY ($3) OR order_identifier = ANY ($2) AND at < $4)",
        (merchant.as_str(), records.orders, records.returns, records.erased_at),
    );
    let (positions, details) = erased_details(query.load(conn).await?, erase);
    let statement = sql(
        "UPDATE discrepancies AS own SET detail = new.detail \
         FROM unnest($2, $3) AS new (position, detail) \
         WHERE own.merchant = $1 AND own.position = new.position",
        (merchant.as_str(), positions, details),
    );
    statement.execute(conn).await?;
    let statement = sql(
        "UPDATE discrepancies SET resolution_note = $5 WHERE merchant = $1 \
         AND (rma_identifier = ANY ($3) OR order_identifier = ANY ($2)) AND resolved_at < $4",
        (merchant.as_str(), records.orders, records.returns, records.erased_at, ERASED),
    );
    statement.execute(conn).await?;
    Ok(())
}
