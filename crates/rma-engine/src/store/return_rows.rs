//! Writes returns with their units and timeline entries, many in one statement.

use diesel_async::{AsyncPgConnection, RunQueryDsl as _};
use domain::access::MerchantId;
use domain::erasure::EmailDigest;
use domain::returns::{Rma, UnitId};
use platform::Timestamp;
use platform::database::{DatabaseError, Parameters as _, column, prepared};

use super::timeline::{self, NewEntry};
use super::write as to_json;

/// Unique index: a unit is in at most one return.
const HELD: &str = "return_units_held";

/// Why a return could not be added.
#[derive(Debug, thiserror::Error)]
pub(crate) enum InsertError {
    #[error("one of the units is in another return already")]
    UnitHeld,
    #[error(transparent)]
    Database(#[from] DatabaseError),
}

impl From<diesel::result::Error> for InsertError {
    fn from(error: diesel::result::Error) -> Self {
        let error = DatabaseError::from(error);
        if error.constraint() == Some(HELD) { Self::UnitHeld } else { Self::Database(error) }
    }
}

/// Whether the returns are new or stored already.
#[derive(Debug, Clone, Copy)]
pub(crate) enum WriteMode {
    Insert,
    /// Replaces locked returns. Canceled units become returnable again. `exchanged` stays as it is; see
    /// [`release_exchange`](super::units::release_exchange). `order_sequence` stays too.
    Replace,
}

/// The columns of a return.
pub(crate) struct ReturnRow {
    merchant: MerchantId,
    rma_identifier: String,
    status: &'static str,
    customer_email: Option<String>,
    other_email_sha256: Option<String>,
    document: String,
    created_at: Timestamp,
    updated_at: Timestamp,
    units: Vec<UnitRow>,
}

struct UnitRow {
    id: UnitId,
    held: bool,
    exchanged: bool,
    tracking_number: Option<String>,
    /// Sequence number of the event with the snapshot of the order; 0 if the return is stored already.
    order_sequence: i64,
}

impl ReturnRow {
    /// The columns of a new return.
    pub(crate) fn new(
        rma: &Rma,
        customer_email: Option<&str>,
        order_sequence: impl Fn(&UnitId) -> Result<i64, DatabaseError>,
    ) -> Result<Self, DatabaseError> {
        let other = rma.other_email().map(EmailDigest::of);
        let units = rma.units.iter().map(|unit| {
            Ok::<_, DatabaseError>(UnitRow {
                id: unit.id.clone(),
                held: unit.canceled_at.is_none(),
                exchanged: unit.exchange_status.is_some(),
                tracking_number: unit.tracking_number.clone(),
                order_sequence: order_sequence(&unit.id)?,
            })
        });
        Ok(Self {
            merchant: rma.merchant.clone(),
            rma_identifier: rma.rma_identifier.clone(),
            status: rma.status.as_str(),
            customer_email: customer_email.map(str::to_lowercase),
            other_email_sha256: other.map(|digest| digest.as_str().to_owned()),
            document: to_json(rma)?,
            created_at: rma.created_at,
            updated_at: rma.updated_at,
            units: units.collect::<Result<_, _>>()?,
        })
    }

    /// The columns of a stored return.
    pub(crate) fn changed(rma: &Rma) -> Result<Self, DatabaseError> {
        Self::new(rma, None, |_| Ok(0))
    }

    /// The size of the document.
    pub(crate) fn bytes(&self) -> usize {
        self.document.len()
    }
}

/// Writes returns and adds entries to timelines. `ON CONFLICT` finds each row by its key; with an `UPDATE` and a
/// join, a plan that was made while the table was empty would read the whole table. `(SELECT $8)` hides the length
/// of the arrays from the planner, which keeps the plan. The connection is shared, so that the caller can send the
/// statement together with others.
pub(crate) async fn write(
    mut conn: &AsyncPgConnection,
    mode: WriteMode,
    rows: &[ReturnRow],
    entries: &[NewEntry],
) -> Result<(), InsertError> {
    if rows.is_empty() {
        return Ok(timeline::add(conn, entries).await?);
    }
    let (replace_return, replace_unit) = match mode {
        WriteMode::Insert => ("", ""),
        WriteMode::Replace => (REPLACE_RETURN, REPLACE_UNIT),
    };
    let with = format!(
        "WITH written AS ({INSERT_RETURNS}{replace_return}), units AS ({INSERT_UNITS}{replace_unit})"
    );
    let units: Vec<_> =
        rows.iter().flat_map(|row| row.units.iter().map(move |it| (row, it))).collect();
    let of_returns = (
        column(rows, |row| row.merchant.as_str()),
        column(rows, |row| row.rma_identifier.as_str()),
        column(rows, |row| row.status),
        column(rows, |row| row.customer_email.as_deref()),
        column(rows, |row| row.other_email_sha256.as_deref()),
        column(rows, |row| row.document.as_str()),
        column(rows, |row| row.created_at),
        column(rows, |row| row.updated_at),
    );
    let of_units = (
        column(&units, |(row, _)| row.merchant.as_str()),
        column(&units, |(row, _)| row.rma_identifier.as_str()),
        column(&units, |(_, unit)| unit.id.order_identifier.as_str()),
        column(&units, |(_, unit)| unit.id.order_line_item_identifier.as_str()),
        column(&units, |(_, unit)| unit.id.unit),
        column(&units, |(_, unit)| unit.held),
        column(&units, |(_, unit)| unit.exchanged),
        column(&units, |(_, unit)| unit.tracking_number.as_deref()),
        column(&units, |(_, unit)| unit.order_sequence),
    );
    let statement = (of_returns, of_units).bind_to(timeline::append_to_sql(&with, entries));
    prepared(statement).execute(&mut conn).await?;
    Ok(())
}

/// Parameters: `$1` to `$7` belong to [`timeline::append_to_sql`].
const INSERT_RETURNS: &str = "INSERT INTO returns (merchant, rma_identifier, status, customer_email, \
         other_email_sha256, document, created_at, updated_at) \
     SELECT * FROM unnest((SELECT $8), $9, $10, $11, $12, $13, $14, $15)";
const REPLACE_RETURN: &str = " ON CONFLICT ON CONSTRAINT returns_pkey DO UPDATE SET \
         status = excluded.status, document = excluded.document, updated_at = excluded.updated_at";
const INSERT_UNITS: &str = "INSERT INTO return_units AS kept (merchant, rma_identifier, \
         order_identifier, line_identifier, unit, held, exchanged, tracking_number, \
         order_sequence) \
     SELECT * FROM unnest((SELECT $16), $17, $18, $19, $20, $21, $22, $23, $24)";
const REPLACE_UNIT: &str = " ON CONFLICT ON CONSTRAINT return_units_pkey DO UPDATE SET \
         held = excluded.held, tracking_number = excluded.tracking_number \
     WHERE (kept.held, kept.tracking_number) IS DISTINCT FROM (excluded.held, excluded.tracking_number)";
