//! Writes a batch: orders with their lines, refunds and events in one statement.

use diesel::result::DatabaseErrorKind;
use diesel::sql_types::BigInt;
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use messaging::Outbox;
use platform::Timestamp;
use platform::database::{DatabaseError, prepared};

use super::error::WriteError;
use super::order_columns::OrderColumns;
use super::refunds::{self, RefundRows};
use super::write_mode::WriteMode;
use crate::write_batch::WriteBatch;

/// Key of the advisory lock, the same in every replica: eight ASCII characters.
const RETRY_LOCK: i64 = i64::from_be_bytes(*b"\0\0orders");

/// Serializes retries after a conflict: holds an advisory lock until the end of the transaction.
pub(crate) async fn serialize_retries(conn: &mut AsyncPgConnection) -> Result<(), DatabaseError> {
    let lock = diesel::sql_query("SELECT pg_advisory_xact_lock($1)");
    lock.bind::<BigInt, _>(RETRY_LOCK).execute(conn).await?;
    Ok(())
}

/// Writes the batch and appends its events to the outbox, in one statement. Outside a transaction the
/// statement is atomic by itself.
///
/// Nothing is written if the precondition does not hold: the statement inserts no event. If the
/// precondition held and another writer then changed the same rows first, some of the rows may be
/// written already, so the statement aborts itself with a serialization failure. Both are
/// [`WriteError::Conflict`].
///
/// The condition of the outbox insert counts the written orders, and so waits for concurrent writers
/// of the same orders, before the events draw their sequence numbers. The events of an order are
/// numbered in the order in which its snapshots were stored.
pub(crate) async fn write(
    mut conn: &AsyncPgConnection,
    outbox: &Outbox,
    batch: &WriteBatch<'_>,
    mode: WriteMode,
    now: Timestamp,
) -> Result<(), WriteError> {
    let rows = batch.rows();
    let refund_rows = RefundRows::of(batch);
    if rows.len() == 0 && refund_rows.is_empty() {
        return Ok(());
    }
    let mut columns = OrderColumns::default();
    rows.for_each(|(key, row)| columns.push(key, &row));
    let (with, condition) = write_sql(mode, !refund_rows.is_empty());
    let events = batch.events();
    let statement = outbox.append_to_sql(&with, &condition, now, events.iter().copied());
    let mut statement = columns.bind(statement);
    if !refund_rows.is_empty() {
        statement = refund_rows.bind(statement);
    }
    match prepared(statement).execute(&mut conn).await {
        Ok(inserted) if inserted == events.len() => {
            outbox.wake_relay();
            Ok(())
        }
        Ok(_) => Err(WriteError::Conflict),
        Err(diesel::result::Error::DatabaseError(DatabaseErrorKind::SerializationFailure, _)) => {
            Err(WriteError::Conflict)
        }
        Err(error) => Err(error.into()),
    }
}

/// The `WITH` clause that writes the batch, and the condition on which the events are inserted.
///
/// Parameters: `$1` to `$4` belong to [`Outbox::append_to_sql`], `$5` to `$17` to
/// [`OrderColumns::bind`], `$18` to `$25` to [`RefundRows::bind`].
fn write_sql(mode: WriteMode, has_refunds: bool) -> (String, String) {
    let (mut precondition, replaceable) = match mode {
        WriteMode::Optimistic => (ORDERS_ARE_NEWER.to_owned(), REPLACES_OLDER),
        WriteMode::Checked => ("true".to_owned(), REPLACES_READ),
    };
    let mut complete = ORDERS_COMPLETE.to_owned();
    let mut insert_refunds = "";
    if has_refunds {
        if mode == WriteMode::Optimistic {
            precondition = format!("{precondition} AND {}", refunds::REFUNDS_UNCHANGED);
        }
        complete = format!("{complete} AND {}", refunds::complete(mode));
        insert_refunds = refunds::INSERT_REFUNDS;
    }
    let with = format!(
        "WITH precondition AS MATERIALIZED (SELECT {precondition} AS holds), \
         stored AS ({UPSERT_ORDERS} WHERE {replaceable} \
             RETURNING merchant, identifier, line_identifiers, xmax <> 0 AS is_replaced), \
         {WRITE_LINES}{insert_refunds}"
    );
    let condition = format!(
        "CASE WHEN NOT (SELECT holds FROM precondition) THEN false \
              WHEN {complete} THEN true \
              ELSE abort_concurrent_write() END"
    );
    (with, condition)
}

/// No order is stored with a later `updated_at` or the same digest.
const ORDERS_ARE_NEWER: &str = "NOT EXISTS ( \
         SELECT FROM unnest($5, $6, $11, $12) AS new (merchant, identifier, updated_at, digest), \
         LATERAL ( \
             SELECT FROM orders \
             WHERE merchant = new.merchant AND identifier = new.identifier \
                 AND (updated_at > new.updated_at OR digest = new.digest) LIMIT 1 \
         ) AS newer_or_same \
     )";
const UPSERT_ORDERS: &str = "INSERT INTO orders (merchant, identifier, status, customer_email, \
         line_identifiers, created_at, updated_at, digest, document, received_at) \
     SELECT merchant, identifier, status, customer_email, string_to_array(lines, $17), \
         created_at, updated_at, digest, document, received_at \
     FROM unnest($5, $6, $7, $8, $9, $10, $11, $12, $13, $14) AS new (merchant, identifier, \
         status, customer_email, lines, created_at, updated_at, digest, document, received_at) \
     WHERE (SELECT holds FROM precondition) \
     ON CONFLICT ON CONSTRAINT orders_pkey DO UPDATE SET \
         status = excluded.status, customer_email = excluded.customer_email, \
         line_identifiers = excluded.line_identifiers, created_at = excluded.created_at, \
         updated_at = excluded.updated_at, digest = excluded.digest, \
         document = excluded.document, received_at = excluded.received_at, erased_at = NULL";
/// The lines of the stored orders. They are read from the upsert, which has locked the orders, so that two
/// writers of an order take turns. `orders` is still as it was before the statement, and has the lines
/// that the new snapshot may lack. `xmax` is 0 for an order that was inserted, and has no such lines. The condition
/// of the `DELETE` is evaluated once: a plan that was made while the table was empty would read the whole table.
const WRITE_LINES: &str = "new_lines AS ( \
         INSERT INTO order_lines (line_identifier, merchant, order_identifier) \
         SELECT line, merchant, identifier FROM stored, unnest(line_identifiers) AS line \
         ON CONFLICT DO NOTHING \
     ), old_lines AS ( \
         SELECT line.ctid AS place FROM stored, LATERAL ( \
             SELECT line_identifiers FROM orders \
             WHERE merchant = stored.merchant AND identifier = stored.identifier \
                 AND line_identifiers <> stored.line_identifiers LIMIT 1 \
         ) AS old, LATERAL ( \
             SELECT unnest(old.line_identifiers) EXCEPT SELECT unnest(stored.line_identifiers) \
         ) AS removed (identifier), LATERAL ( \
             SELECT ctid FROM order_lines \
             WHERE line_identifier = removed.identifier AND merchant = stored.merchant \
                 AND order_identifier = stored.identifier LIMIT 1 \
         ) AS line \
         WHERE stored.is_replaced \
     ), removed_lines AS ( \
         DELETE FROM order_lines WHERE (SELECT EXISTS (SELECT FROM old_lines)) \
             AND ctid = ANY (ARRAY (SELECT place FROM old_lines)) \
     )";
/// Rows that an upsert may overwrite.
const REPLACES_OLDER: &str =
    "orders.updated_at <= excluded.updated_at AND orders.digest <> excluded.digest";
const REPLACES_READ: &str = "(orders.merchant, orders.digest) IN (SELECT * FROM unnest($15, $16))";
/// Every order was written.
const ORDERS_COMPLETE: &str = "(SELECT count(*) FROM stored) = cardinality($5)";
