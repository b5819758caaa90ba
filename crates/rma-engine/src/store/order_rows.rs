//! Writing of orders, many in one statement.

use diesel_async::{AsyncPgConnection, RunQueryDsl as _};
use domain::access::MerchantId;
use domain::order::Order;
use platform::Timestamp;
use platform::database::{DatabaseError, prepared, sql};

use super::write;
use crate::shipped_units::ShippedUnits;

/// Columns of the orders to write.
#[derive(Default)]
pub(crate) struct Rows<'a> {
    merchants: Vec<&'a str>,
    identifiers: Vec<&'a str>,
    updated_at: Vec<Timestamp>,
    sequences: Vec<i64>,
    documents: Vec<String>,
    shipped_units: Vec<String>,
    stored_at: Vec<Timestamp>,
}

impl<'a> Rows<'a> {
    pub(crate) fn push(
        &mut self,
        merchant: &'a MerchantId,
        order: &'a Order,
        sequence: i64,
        shipped_units: &ShippedUnits,
        stored_at: Timestamp,
    ) -> Result<(), DatabaseError> {
        self.merchants.push(merchant.as_str());
        self.identifiers.push(&order.identifier);
        self.updated_at.push(order.updated_at);
        self.sequences.push(sequence);
        self.documents.push(write(order)?);
        self.shipped_units.push(write(shipped_units)?);
        self.stored_at.push(stored_at);
        Ok(())
    }
}

/// Inserts new orders. Returns `false` if another transaction has inserted one of them.
pub(crate) async fn insert(
    conn: &mut AsyncPgConnection,
    rows: Rows<'_>,
) -> Result<bool, DatabaseError> {
    let expected = rows.identifiers.len();
    Ok(store(conn, rows, "DO NOTHING").await? == expected)
}

/// Replaces locked orders. `ON CONFLICT` finds each row by its key; with an `UPDATE` and a join, a
/// plan that was made while the table was empty would read the whole table.
pub(crate) async fn update(
    conn: &mut AsyncPgConnection,
    rows: Rows<'_>,
) -> Result<(), DatabaseError> {
    let replace = "DO UPDATE SET updated_at = excluded.updated_at, sequence = excluded.sequence, \
                       document = excluded.document, shipped_units = excluded.shipped_units, \
                       stored_at = excluded.stored_at";
    store(conn, rows, replace).await?;
    Ok(())
}

/// Returns the number of written rows.
async fn store(
    conn: &mut AsyncPgConnection,
    rows: Rows<'_>,
    if_there: &'static str,
) -> Result<usize, DatabaseError> {
    if rows.identifiers.is_empty() {
        return Ok(0);
    }
    let statement = sql(
        format!(
            "INSERT INTO orders (merchant, identifier, updated_at, sequence, document, shipped_units, \
             stored_at) \
         SELECT * FROM unnest($1, $2, $3, $4, $5, $6, $7) \
         ON CONFLICT ON CONSTRAINT orders_pkey {if_there}"
        ),
        (
            rows.merchants,
            rows.identifiers,
            rows.updated_at,
            rows.sequences,
            rows.documents,
            rows.shipped_units,
            rows.stored_at,
        ),
    );
    Ok(prepared(statement).execute(conn).await?)
}
