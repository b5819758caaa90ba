//! Writes returns with their units, timeline entries and places in lists, many in one statement.

use std::collections::BTreeSet;

use diesel_async::{AsyncPgConnection, RunQueryDsl as _};
use domain::access::MerchantId;
use domain::erasure::EmailDigest;
use domain::returns::{Deadline, DeadlineKind, Rma, RmaUnit, UnitId};
use platform::Timestamp;
use platform::database::{DatabaseError, Parameters as _, SqlStatement, column, prepared};
use serde_json::{Value, json};
use uuid::Uuid;

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
    overdue: bool,
    /// The values by which lists filter.
    facts: Value,
    amount_cents: i64,
    work_list: &'static str,
    skus: BTreeSet<String>,
    /// The message about the change, if there is one.
    last_delivery: Option<Uuid>,
    deadlines: Vec<Deadline>,
}

struct UnitRow {
    id: UnitId,
    held: bool,
    exchanged: bool,
    expired: bool,
    tracking_number: Option<String>,
    /// Sequence number of the event with the snapshot of the order; 0 if the return is stored already.
    order_sequence: i64,
}

impl ReturnRow {
    /// The columns of a new return with these deadlines.
    pub(crate) fn new(
        rma: &Rma,
        deadlines: Vec<Deadline>,
        customer_email: Option<&str>,
        order_sequence: impl Fn(&UnitId) -> Result<i64, DatabaseError>,
    ) -> Result<Self, DatabaseError> {
        let other = rma.other_email().map(EmailDigest::of);
        let units = rma.units.iter().map(|unit| {
            Ok::<_, DatabaseError>(UnitRow {
                id: unit.id.clone(),
                held: unit.canceled_at.is_none(),
                // Also while the return waits for review: the exchange may still be requested.
                exchanged: unit.is_for_exchange(),
                expired: unit.is_expired,
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
            overdue: rma.is_overdue(),
            facts: facts(rma),
            amount_cents: rma.paid_amount_cents(),
            work_list: rma.work_list().as_str(),
            skus: rma.units.iter().map(|unit| unit.sku.clone()).collect(),
            last_delivery: None,
            deadlines,
        })
    }

    /// The columns of a stored return.
    pub(crate) fn changed(rma: &Rma, deadlines: Vec<Deadline>) -> Result<Self, DatabaseError> {
        Self::new(rma, deadlines, None, |_| Ok(0))
    }

    /// The kinds of deadlines that the return does not have, or has no longer.
    fn ended(&self) -> impl Iterator<Item = DeadlineKind> {
        let has = |kind| self.deadlines.iter().any(|it| it.kind == kind);
        DeadlineKind::ALL.iter().copied().filter(move |kind| !has(*kind))
    }

    /// The size of the document.
    pub(crate) fn bytes(&self) -> usize {
        self.document.len()
    }

    /// The merchant and the identifier.
    pub(crate) fn key(&self) -> (&str, &str) {
        (self.merchant.as_str(), &self.rma_identifier)
    }

    pub(crate) fn set_last_delivery(&mut self, delivery: Option<Uuid>) {
        self.last_delivery = delivery;
    }
}

/// The values by which lists filter, as the column `facts` has them.
fn facts(rma: &Rma) -> Value {
    let distinct =
        |value: fn(&RmaUnit) -> &str| -> BTreeSet<&str> { rma.units.iter().map(value).collect() };
    json!({
        "return_method": rma.return_method,
        "resolutions": distinct(|unit| unit.resolution.kind().as_str()),
        "return_reasons": distinct(|unit| unit.return_reason.as_str()),
        "skus": distinct(|unit| unit.sku.as_str()),
    })
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
    let with = match mode {
        WriteMode::Insert => format!(
            "WITH written AS ({INSERT_RETURNS}), units AS ({INSERT_UNITS}), \
             lists AS ({INSERT_WORK_LISTS}), deadlines AS ({INSERT_DEADLINES}), skus AS ({INSERT_SKUS})"
        ),
        WriteMode::Replace => format!(
            "WITH written AS ({INSERT_RETURNS}{REPLACE_RETURN}), \
             units AS ({INSERT_UNITS}{REPLACE_UNIT}), \
             lists AS ({INSERT_WORK_LISTS}{REPLACE_WORK_LIST}), \
             deadlines AS ({INSERT_DEADLINES}{KEEP_DEADLINE}), ended AS ({DELETE_DEADLINES})"
        ),
    };
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
        column(rows, |row| row.overdue),
        column(rows, |row| &row.facts),
        column(rows, |row| row.amount_cents),
        column(rows, |row| row.last_delivery),
        column(rows, |row| row.work_list),
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
        column(&units, |(_, unit)| unit.expired),
    );
    let statement = timeline::append_to_sql(&with, entries);
    let statement = (of_returns, of_units).bind_to(statement);
    let statement = bind_deadlines(statement, rows);
    let statement = match mode {
        WriteMode::Insert => bind_skus(statement, rows),
        WriteMode::Replace => bind_ended(statement, rows),
    };
    prepared(statement).execute(&mut conn).await?;
    Ok(())
}

/// Adds the deadlines that the returns have.
fn bind_deadlines<'a>(statement: SqlStatement<'a>, rows: &'a [ReturnRow]) -> SqlStatement<'a> {
    let deadlines: Vec<_> =
        rows.iter().flat_map(|row| row.deadlines.iter().map(move |it| (row, *it))).collect();
    (
        column(&deadlines, |(row, _)| row.merchant.as_str()),
        column(&deadlines, |(row, _)| row.rma_identifier.as_str()),
        column(&deadlines, |(_, deadline)| deadline.kind.as_str()),
        column(&deadlines, |(_, deadline)| deadline.started_at),
        column(&deadlines, |(_, deadline)| i32::from(deadline.period.days)),
        column(&deadlines, |(_, deadline)| deadline.period.zone.name()),
        column(&deadlines, |(_, deadline)| deadline.due_at),
    )
        .bind_to(statement)
}

/// Adds the deadlines that stored returns do not have, or have no longer.
fn bind_ended<'a>(statement: SqlStatement<'a>, rows: &'a [ReturnRow]) -> SqlStatement<'a> {
    let ended: Vec<_> = rows.iter().flat_map(|row| row.ended().map(move |it| (row, it))).collect();
    (
        column(&ended, |(row, _)| row.merchant.as_str()),
        column(&ended, |(row, _)| row.rma_identifier.as_str()),
        column(&ended, |(_, kind)| kind.as_str()),
    )
        .bind_to(statement)
}

/// Adds the SKUs of new returns.
fn bind_skus<'a>(statement: SqlStatement<'a>, rows: &'a [ReturnRow]) -> SqlStatement<'a> {
    let skus: Vec<_> =
        rows.iter().flat_map(|row| row.skus.iter().map(move |it| (row, it))).collect();
    (
        column(&skus, |(row, _)| row.merchant.as_str()),
        column(&skus, |(row, _)| row.rma_identifier.as_str()),
        column(&skus, |(_, sku)| sku.as_str()),
        column(&skus, |(row, _)| row.created_at),
    )
        .bind_to(statement)
}

/// Parameters: `$1` to `$7` belong to [`timeline::append_to_sql`].
const INSERT_RETURNS: &str = "INSERT INTO returns (merchant, rma_identifier, status, customer_email, \
         other_email_sha256, document, created_at, updated_at, overdue, facts, amount_cents, \
         last_delivery) \
     SELECT * FROM unnest((SELECT $8), $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19)";
const REPLACE_RETURN: &str = " ON CONFLICT ON CONSTRAINT returns_pkey DO UPDATE SET \
         status = excluded.status, document = excluded.document, updated_at = excluded.updated_at, \
         overdue = excluded.overdue, facts = excluded.facts, \
         amount_cents = excluded.amount_cents, \
         last_delivery = coalesce(excluded.last_delivery, returns.last_delivery)";
const INSERT_WORK_LISTS: &str = "INSERT INTO return_work_lists \
         (merchant, rma_identifier, created_at, work_list) \
     SELECT * FROM unnest((SELECT $8), $9, $14, $20)";
const REPLACE_WORK_LIST: &str = " ON CONFLICT ON CONSTRAINT return_work_lists_pkey DO UPDATE SET \
         work_list = excluded.work_list \
     WHERE return_work_lists.work_list <> excluded.work_list";
const INSERT_UNITS: &str = "INSERT INTO return_units AS kept (merchant, rma_identifier, \
         order_identifier, line_identifier, unit, held, exchanged, tracking_number, \
         order_sequence, expired) \
     SELECT * FROM unnest((SELECT $21), $22, $23, $24, $25, $26, $27, $28, $29, $30)";
const REPLACE_UNIT: &str = " ON CONFLICT ON CONSTRAINT return_units_pkey DO UPDATE SET \
         held = excluded.held, expired = excluded.expired, tracking_number = excluded.tracking_number \
     WHERE (kept.held, kept.expired, kept.tracking_number) \
         IS DISTINCT FROM (excluded.held, excluded.expired, excluded.tracking_number)";
const INSERT_DEADLINES: &str = "INSERT INTO return_deadlines \
         (merchant, rma_identifier, kind, started_at, days, zone, due_at) \
     SELECT * FROM unnest((SELECT $31), $32, $33, $34, $35, $36, $37)";
const KEEP_DEADLINE: &str = " ON CONFLICT ON CONSTRAINT return_deadlines_pkey DO UPDATE SET \
         started_at = excluded.started_at, days = excluded.days, zone = excluded.zone, \
         due_at = excluded.due_at \
     WHERE return_deadlines.started_at <> excluded.started_at";
/// Only of new returns: units are never added to a return.
const INSERT_SKUS: &str = "INSERT INTO return_skus (merchant, rma_identifier, sku, created_at) \
     SELECT * FROM unnest((SELECT $38), $39, $40, $41)";
/// The task that works deadlines off may move a row meanwhile, which is then not found. It deletes the row itself
/// when the row is due.
const DELETE_DEADLINES: &str = "DELETE FROM return_deadlines WHERE ctid = ANY (ARRAY ( \
         SELECT found.ctid FROM unnest((SELECT $38), $39, $40) AS gone (merchant, rma_identifier, kind), \
         LATERAL ( \
             SELECT own.ctid FROM return_deadlines AS own \
             WHERE own.rma_identifier = gone.rma_identifier AND own.merchant = gone.merchant \
                 AND own.kind = gone.kind OFFSET 0 \
         ) AS found))";
