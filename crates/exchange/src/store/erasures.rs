//! Replaces a shopper's data in confirmations and exchange orders. Most statements are planned each time,
//! because they run rarely and the tables grow.

use diesel_async::{AsyncPgConnection, RunQueryDsl};
use domain::access::MerchantId;
use domain::erasure::{EmailDigest, ReturnsErased, erase_text};
use domain::returns::ReturnConfirmed;
use platform::database::{DatabaseError, NameLock, column, parts_by_bytes, prepared, sql};
use serde_json::Value;

use super::{from_json, to_json};

const ERASURE: NameLock = NameLock::new(i32::from_be_bytes(*b"\0era"));

fn name(merchant: &MerchantId, rma_identifier: &str) -> String {
    format!("{merchant}/{rma_identifier}")
}

/// Makes the erasure of these returns and the insertion of their confirmations wait for each other, although the
/// confirmations may not be stored yet.
pub(crate) async fn lock_returns(
    conn: &mut AsyncPgConnection,
    event: &ReturnsErased,
) -> Result<(), DatabaseError> {
    let returns = event.rma_identifiers.iter().chain(&event.gift_rma_identifiers);
    let names: Vec<_> = returns.map(|rma| name(&event.merchant, rma)).collect();
    ERASURE.exclude(conn, &names).await
}

/// Waits for erasures of the returns of these confirmations.
pub(crate) async fn wait_for_erasures(
    conn: &mut AsyncPgConnection,
    confirmed: impl Iterator<Item = &ReturnConfirmed>,
) -> Result<(), DatabaseError> {
    let names: Vec<_> = confirmed.map(|it| name(&it.merchant, &it.rma_identifier)).collect();
    ERASURE.share(conn, &names).await
}

/// Records that confirmations of these returns are erased when they arrive: all data, or a giftee's address.
pub(crate) async fn add_erased_returns(
    conn: &mut AsyncPgConnection,
    merchant: &MerchantId,
    returns: &[String],
    giftee: Option<&EmailDigest>,
) -> Result<(), DatabaseError> {
    let insert = sql(
        "INSERT INTO erased_returns (merchant, rma_identifier, giftee_email_sha256) \
         SELECT $1, name, $3 FROM unnest($2) AS new (name) ORDER BY name ON CONFLICT DO NOTHING",
        (merchant.as_str(), returns, giftee.map(EmailDigest::as_str).unwrap_or_default()),
    );
    prepared(insert).execute(conn).await?;
    Ok(())
}

platform::rows! { struct Erased { giftee_email_sha256: String } }

/// The erasures of a return: `None` for all data, or the giftee whose address was erased.
pub(crate) async fn of_return(
    conn: &mut AsyncPgConnection,
    merchant: &MerchantId,
    rma_identifier: &str,
) -> Result<Vec<Option<EmailDigest>>, DatabaseError> {
    let query = sql(
        "SELECT giftee_email_sha256 FROM erased_returns WHERE merchant = $1 AND rma_identifier = $2",
        (merchant.as_str(), rma_identifier),
    );
    let rows: Vec<Erased> = prepared(query).load(conn).await?;
    let giftee = |row: Erased| {
        (!row.giftee_email_sha256.is_empty()).then(|| EmailDigest::from(row.giftee_email_sha256))
    };
    Ok(rows.into_iter().map(giftee).collect())
}

/// A confirmed return after an erasure.
pub(crate) fn erased_confirmation(
    confirmed: &ReturnConfirmed,
    erase: impl Fn(&mut Value),
) -> Result<ReturnConfirmed, DatabaseError> {
    let document = to_json(confirmed)?;
    from_json(&erase_text(&document, erase).unwrap_or(document))
}

platform::rows! { struct Name { name: String } }

/// The orders of these returns.
pub(crate) async fn orders_of(
    conn: &mut AsyncPgConnection,
    merchant: &MerchantId,
    returns: &[String],
) -> Result<Vec<String>, DatabaseError> {
    let query = sql(
        "SELECT DISTINCT original_order_id AS name FROM confirmations \
         WHERE merchant = $1 AND rma_identifier = ANY ($2)",
        (merchant.as_str(), returns),
    );
    let rows: Vec<Name> = query.load(conn).await?;
    Ok(rows.into_iter().map(|row| row.name).collect())
}

platform::rows! {
    struct Size {
        position: i64,
        bytes: i32,
    }

    struct Row {
        position: i64,
        document: String,
    }
}

/// The statements that lock, read and update the documents of returns.
struct Documents {
    lock: &'static str,
    read: &'static str,
    update: &'static str,
}

const CONFIRMATIONS: Documents = Documents {
    lock: "SELECT position, octet_length(document) AS bytes FROM confirmations \
        WHERE merchant = $1 AND rma_identifier = ANY ($2) ORDER BY position FOR UPDATE",
    read: "SELECT position, document FROM confirmations WHERE position = ANY ($1)",
    update: "UPDATE confirmations SET document = new.document, erased = true \
        FROM unnest($1, $2) AS new (position, document) WHERE confirmations.position = new.position",
};
const ORDERS: Documents = Documents {
    lock: "SELECT confirmation AS position, octet_length(message) AS bytes FROM exchange_orders \
        WHERE confirmation IN ( \
            SELECT position FROM confirmations WHERE merchant = $1 AND rma_identifier = ANY ($2) \
        ) ORDER BY confirmation FOR UPDATE",
    read: "SELECT confirmation AS position, message AS document FROM exchange_orders \
        WHERE confirmation = ANY ($1)",
    update: "UPDATE exchange_orders SET message = new.message, \
            abandon_note = CASE WHEN abandon_note IS NOT NULL THEN 'erased' END \
        FROM unnest($1, $2) AS new (confirmation, message) \
        WHERE exchange_orders.confirmation = new.confirmation",
};

/// Applies `erase` to the confirmations of these returns, and returns the number of those that changed. Their messages
/// and exchange orders follow, in this order.
pub(crate) async fn erase_confirmations(
    conn: &mut AsyncPgConnection,
    merchant: &MerchantId,
    returns: &[String],
    erase: impl Fn(&mut Value),
) -> Result<usize, DatabaseError> {
    erase_documents(conn, &CONFIRMATIONS, (merchant, returns), erase).await
}

/// Applies `erase` to the exchange orders of these returns, and returns the number of those that changed. Their messages
/// are locked already.
pub(crate) async fn erase_orders(
    conn: &mut AsyncPgConnection,
    merchant: &MerchantId,
    returns: &[String],
    erase: impl Fn(&mut Value),
) -> Result<usize, DatabaseError> {
    erase_documents(conn, &ORDERS, (merchant, returns), erase).await
}

/// Documents are read in parts: together they may have hundreds of megabytes.
async fn erase_documents(
    conn: &mut AsyncPgConnection,
    Documents { lock, read, update }: &Documents,
    (merchant, returns): (&MerchantId, &[String]),
    erase: impl Fn(&mut Value),
) -> Result<usize, DatabaseError> {
    let mut changed = 0;
    let found: Vec<Size> = sql(*lock, (merchant.as_str(), returns)).load(conn).await?;
    for part in parts_by_bytes(&found, |row| usize::try_from(row.bytes).unwrap_or_default()) {
        let rows: Vec<Row> = sql(*read, column(part, |row| row.position)).load(conn).await?;
        let erased = |row: Row| Some((row.position, erase_text(&row.document, &erase)?));
        let (positions, documents): (Vec<_>, Vec<_>) = rows.into_iter().filter_map(erased).unzip();
        changed += sql(*update, (positions, documents)).execute(conn).await?;
    }
    Ok(changed)
}
