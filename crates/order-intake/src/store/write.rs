//! Writes a batch: orders with their lines, refunds and events in one statement.

use diesel::result::DatabaseErrorKind;
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use messaging::Outbox;
use platform::Timestamp;
use platform::database::{DatabaseError, Parameters as _, prepared, sql};

use super::error::WriteError;
use super::order_columns;
use super::refunds::{self, RefundRows};
use super::write_mode::WriteMode;
use crate::write_batch::WriteBatch;

/// Key of the advisory lock, the same in every replica: eight ASCII characters.
const RETRY_LOCK: i64 = i64::from_be_bytes(*b"\0\0orders");

/// Serializes retries after a conflict: holds an advisory lock until the end of the transaction.
pub(crate) async fn serialize_retries(conn: &mut AsyncPgConnection) -> Result<(), DatabaseError> {
    sql("SELECT pg_advisory_xact_lock($1)", RETRY_LOCK).execute(conn).await?;
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
    let rows: Vec<_> = batch.rows().collect();
    let refund_rows = RefundRows::of(batch);
    if rows.is_empty() && refund_rows.is_empty() {
        return Ok(());
    }
    let (with, condition) = write_sql(mode, !refund_rows.is_empty());
    let events = batch.events();
    let statement = outbox.append_to_sql(&with, &condition, now, events.iter().copied());
    let mut statement = order_columns::parameters(&rows).bind_to(statement);
    if !refund_rows.is_empty() {
        statement = refund_rows.parameters().bind_to(statement);
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
/// [`order_columns::parameters`], `$18` to `$25` to [`RefundRows::parameters`].
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
const ORDERS_ARE_NEWER: &str = include_str!("orders_are_newer.sql");
const UPSERT_ORDERS: &str = include_str!("upsert_orders.sql");
/// The lines of the stored orders. They are read from the upsert, which has locked the orders, so that two
/// writers of an order take turns. `orders` is still as it was before the statement, and has the lines
/// that the new snapshot may lack. `xmax` is 0 for an order that was inserted, and has no such lines. The condition
/// of the `DELETE` is evaluated once: a plan that was made while the table was empty would read the whole table.
const WRITE_LINES: &str = include_str!("write_lines.sql");
/// Stored orders that the upsert may overwrite: those that are not newer.
const REPLACES_OLDER: &str =
    "orders.updated_at <= excluded.updated_at AND orders.digest <> excluded.digest";
/// Stored orders that the upsert may overwrite: those that are as they were read. `$15` are the merchants and `$16`
/// the digests.
const REPLACES_READ: &str = "(orders.merchant, orders.digest) IN (SELECT * FROM unnest($15, $16))";
/// Every order was written.
const ORDERS_COMPLETE: &str = "(SELECT count(*) FROM stored) = cardinality($5)";
