//! Finds a shopper's orders and replaces the shopper's data in them. Statements with a list of orders are planned each
//! time: a plan that was made while the table was empty would read all orders of the merchant.

use diesel_async::{AsyncPgConnection, RunQueryDsl as _};
use domain::access::MerchantId;
use domain::erasure::{EmailDigest, erase_order_document, erase_text};
use platform::Timestamp;
use platform::database::{DatabaseError, column, parts_by_bytes, prepared, sql};

platform::rows! { struct NameRow { identifier: String } }

/// The orders of a shopper, sorted, at most `limit`: those with the e-mail address, and those that were erased
/// for it before.
pub(crate) async fn orders_of_shopper(
    conn: &mut AsyncPgConnection,
    merchant: &MerchantId,
    email: &str,
    limit: i64,
) -> Result<Vec<String>, DatabaseError> {
    let query = sql(
        include_str!("orders_of_shopper.sql"),
        (
            merchant.as_str(),
            email.to_lowercase(),
            EmailDigest::of(email).as_str().to_owned(),
            limit,
        ),
    );
    let rows: Vec<NameRow> = query.load(conn).await?;
    Ok(rows.into_iter().map(|row| row.identifier).collect())
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

/// The digest of a row that stands for an order that is not stored. No document has an empty digest.
const PLACEHOLDER: &str = "''::bytea";

/// Locks orders until the end of the transaction. An order that is not stored gets a placeholder: a writer of the
/// order waits for it, and the event of the writer's snapshot then has a later sequence number. `WHERE false` only
/// locks the rows that exist. One statement locks all in the order in which writers do.
async fn lock_orders(
    conn: &mut AsyncPgConnection,
    merchant: &MerchantId,
    identifiers: &[String],
    now: Timestamp,
) -> Result<(), DatabaseError> {
    let statement = sql(
        format!(
            "INSERT INTO orders (merchant, identifier, status, line_identifiers, created_at, \
             updated_at, digest, document, received_at) \
         SELECT $1, name, '', '{{}}', $3, $3, {PLACEHOLDER}, '', $3 \
         FROM unnest($2) AS wanted (name) ORDER BY name COLLATE \"C\" \
         ON CONFLICT ON CONSTRAINT orders_pkey DO UPDATE SET status = '' WHERE false"
        ),
        (merchant.as_str(), identifiers, now),
    );
    prepared(statement).execute(conn).await?;
    Ok(())
}

/// Deletes the placeholders of this transaction. The caller has appended its event.
pub(crate) async fn release_placeholders(
    conn: &mut AsyncPgConnection,
    merchant: &MerchantId,
    identifiers: &[String],
) -> Result<(), DatabaseError> {
    let statement = sql(
        format!(
            "DELETE FROM orders \
         WHERE merchant = $1 AND identifier = ANY ($2) AND digest = {PLACEHOLDER}"
        ),
        (merchant.as_str(), identifiers),
    );
    statement.execute(conn).await?;
    Ok(())
}

/// Locks orders until the end of the transaction and replaces the shopper's data. Returns the number of
/// orders that are stored. The caller releases the placeholders. Events that are appended after this have later
/// sequence numbers than those of earlier snapshots.
pub(crate) async fn erase_orders(
    conn: &mut AsyncPgConnection,
    merchant: &MerchantId,
    identifiers: &[String],
    now: Timestamp,
) -> Result<usize, DatabaseError> {
    lock_orders(conn, merchant, identifiers, now).await?;
    let query = sql(
        format!(
            "SELECT identifier, octet_length(document) AS bytes FROM orders \
         WHERE merchant = $1 AND identifier = ANY ($2) AND digest <> {PLACEHOLDER}"
        ),
        (merchant.as_str(), identifiers),
    );
    let found: Vec<OrderSize> = query.load(conn).await?;
    // Together, the documents may have hundreds of megabytes.
    for part in parts_by_bytes(&found, |row| usize::try_from(row.bytes).unwrap_or_default()) {
        let query = sql(
            "SELECT identifier, document FROM orders WHERE merchant = $1 AND identifier = ANY ($2)",
            (merchant.as_str(), column(part, |row| &row.identifier)),
        );
        let rows: Vec<OrderRow> = query.load(conn).await?;
        let erased = |OrderRow { identifier, document }: OrderRow| {
            let erased = erase_text(&document, erase_order_document);
            (identifier, erased.unwrap_or(document))
        };
        let (names, documents): (Vec<_>, Vec<_>) = rows.into_iter().map(erased).unzip();
        let statement = sql(
            "UPDATE orders SET document = new.document, customer_email = NULL, erased_at = $4 \
             FROM unnest($2, $3) AS new (identifier, document) \
             WHERE orders.merchant = $1 AND orders.identifier = new.identifier",
            (merchant.as_str(), names, documents, now),
        );
        statement.execute(conn).await?;
    }
    Ok(found.len())
}
