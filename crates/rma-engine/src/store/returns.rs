//! Returns with their units.

use chrono::{DateTime, Utc};
use diesel::sql_types::{Array, BigInt, Bool, Integer, Nullable, Text, Timestamptz};
use diesel::{OptionalExtension as _, QueryableByName};
use diesel_async::{AsyncPgConnection, RunQueryDsl as _};
use domain::access::MerchantId;
use domain::erasure::EmailDigest;
use domain::returns::{Rma, RmaStatus};
use platform::database::{DatabaseError, prepared};
use serde::Serialize;
use utoipa::ToSchema;

use super::timeline::{self, NewEntry};
use super::{DocumentRow, read, unreadable, write};

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

const INSERT: &str = "WITH made AS ( \
         INSERT INTO returns (merchant, rma_identifier, status, customer_email, document, \
             created_at, updated_at, giftee_email_sha256) \
         VALUES ($1, $2, $14, $15, $16, $17, $18, $19) \
     ), units AS ( \
         INSERT INTO return_units (merchant, rma_identifier, order_identifier, line_identifier, \
             unit, held, exchanged, tracking_number) \
         SELECT $1, $2, * FROM unnest($8, $9, $10, $11, $12, $13) \
     )";

/// Inserts a return with its units and the first entry of its timeline.
pub(crate) async fn insert(
    mut conn: &AsyncPgConnection,
    rma: &Rma,
    customer_email: Option<&str>,
    entry: &NewEntry<'_>,
) -> Result<(), InsertError> {
    let units = UnitColumns::of(rma);
    let giftee = rma.giftee_email.as_deref().map(EmailDigest::of);
    let statement = timeline::append_to_sql(INSERT, entry)
        .bind::<Array<Text>, _>(units.orders)
        .bind::<Array<Text>, _>(units.lines)
        .bind::<Array<Integer>, _>(units.numbers)
        .bind::<Array<Bool>, _>(units.held)
        .bind::<Array<Bool>, _>(units.exchanged)
        .bind::<Array<Nullable<Text>>, _>(units.tracking_numbers)
        .bind::<Text, _>(rma.status.as_str())
        .bind::<Nullable<Text>, _>(customer_email.map(str::to_lowercase))
        .bind::<Text, _>(write(rma)?)
        .bind::<Timestamptz, _>(rma.created_at)
        .bind::<Timestamptz, _>(rma.updated_at)
        .bind::<Nullable<Text>, _>(giftee.as_ref().map(EmailDigest::as_str));
    prepared(statement).execute(&mut conn).await?;
    Ok(())
}

/// `(SELECT $11)` hides the length of the arrays from the planner. It would otherwise make a new plan for each
/// execution, because a plan for one unit looks cheaper than the plan for any number.
const SAVE: &str = "WITH saved AS ( \
         UPDATE returns SET status = $8, document = $9, updated_at = $10 \
         WHERE merchant = $1 AND rma_identifier = $2 \
     ), units AS ( \
         UPDATE return_units AS kept SET held = new.held, tracking_number = new.tracking_number \
         FROM unnest((SELECT $11), $12, $13, $14, $15) \
             AS new (order_identifier, line_identifier, unit, held, tracking_number) \
         WHERE kept.merchant = $1 AND kept.rma_identifier = $2 \
             AND kept.order_identifier = new.order_identifier \
             AND kept.line_identifier = new.line_identifier AND kept.unit = new.unit \
             AND (kept.held, kept.tracking_number) \
                 IS DISTINCT FROM (new.held, new.tracking_number) \
     )";

/// Saves a locked return and adds an entry to its timeline. Canceled units become returnable again.
/// `exchanged` stays as it is; see [`release_exchange`](super::units::release_exchange).
pub(crate) async fn save(
    mut conn: &AsyncPgConnection,
    rma: &Rma,
    entry: &NewEntry<'_>,
) -> Result<(), DatabaseError> {
    let units = UnitColumns::of(rma);
    let statement = timeline::append_to_sql(SAVE, entry)
        .bind::<Text, _>(rma.status.as_str())
        .bind::<Text, _>(write(rma)?)
        .bind::<Timestamptz, _>(rma.updated_at)
        .bind::<Array<Text>, _>(units.orders)
        .bind::<Array<Text>, _>(units.lines)
        .bind::<Array<Integer>, _>(units.numbers)
        .bind::<Array<Bool>, _>(units.held)
        .bind::<Array<Nullable<Text>>, _>(units.tracking_numbers);
    prepared(statement).execute(&mut conn).await?;
    Ok(())
}

#[derive(Default)]
struct UnitColumns<'a> {
    orders: Vec<&'a str>,
    lines: Vec<&'a str>,
    numbers: Vec<i32>,
    held: Vec<bool>,
    exchanged: Vec<bool>,
    tracking_numbers: Vec<Option<&'a str>>,
}

impl<'a> UnitColumns<'a> {
    fn of(rma: &'a Rma) -> Self {
        let mut columns = Self::default();
        for unit in &rma.units {
            columns.orders.push(&unit.id.order_identifier);
            columns.lines.push(&unit.id.order_line_item_identifier);
            columns.numbers.push(unit.id.unit);
            columns.held.push(unit.canceled_at.is_none());
            columns.exchanged.push(unit.exchange_status.is_some());
            columns.tracking_numbers.push(unit.tracking_number.as_deref());
        }
        columns
    }
}

/// Locks one of a merchant's returns.
pub(crate) async fn lock(
    conn: &mut AsyncPgConnection,
    merchant: &MerchantId,
    rma_identifier: &str,
) -> Result<Option<Rma>, DatabaseError> {
    one(conn, merchant, rma_identifier, " FOR NO KEY UPDATE").await
}

/// Locks a merchant's returns with units in the parcel with this tracking number. Canceled units do
/// not count.
pub(crate) async fn lock_by_tracking_number(
    conn: &mut AsyncPgConnection,
    merchant: &MerchantId,
    tracking_number: &str,
) -> Result<Vec<Rma>, DatabaseError> {
    let query = diesel::sql_query(
        "SELECT document FROM returns WHERE merchant = $1 AND rma_identifier IN ( \
             SELECT rma_identifier FROM return_units \
             WHERE merchant = $1 AND tracking_number = $2 AND held) \
         ORDER BY rma_identifier FOR NO KEY UPDATE",
    )
    .bind::<Text, _>(merchant.as_str())
    .bind::<Text, _>(tracking_number);
    let rows: Vec<DocumentRow> = prepared(query).load(conn).await?;
    rows.into_iter().map(|row| read(&row.document)).collect()
}

/// Finds one of a merchant's returns.
pub(crate) async fn find(
    conn: &mut AsyncPgConnection,
    merchant: &MerchantId,
    rma_identifier: &str,
) -> Result<Option<Rma>, DatabaseError> {
    one(conn, merchant, rma_identifier, "").await
}

async fn one(
    conn: &mut AsyncPgConnection,
    merchant: &MerchantId,
    rma_identifier: &str,
    lock: &str,
) -> Result<Option<Rma>, DatabaseError> {
    let query = diesel::sql_query(format!(
        "SELECT document FROM returns WHERE merchant = $1 AND rma_identifier = $2{lock}"
    ))
    .bind::<Text, _>(merchant.as_str())
    .bind::<Text, _>(rma_identifier);
    let row: Option<DocumentRow> = prepared(query).get_result(conn).await.optional()?;
    row.map(|row| read(&row.document)).transpose()
}

/// A return in the view of an order.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ReturnSummary {
    rma_identifier: String,
    status: RmaStatus,
    created_at: DateTime<Utc>,
    /// Time of the last change that the merchant was sent.
    updated_at: DateTime<Utc>,
}

#[derive(QueryableByName)]
struct SummaryRow {
    #[diesel(sql_type = Text)]
    rma_identifier: String,
    #[diesel(sql_type = Text)]
    status: String,
    #[diesel(sql_type = Timestamptz)]
    created_at: DateTime<Utc>,
    #[diesel(sql_type = Timestamptz)]
    updated_at: DateTime<Utc>,
}

/// The newest returns with units of an order.
pub(crate) async fn of_order(
    conn: &mut AsyncPgConnection,
    merchant: &MerchantId,
    order_identifier: &str,
    most: i64,
) -> Result<Vec<ReturnSummary>, DatabaseError> {
    let query = diesel::sql_query(
        "SELECT rma_identifier, status, created_at, updated_at FROM returns \
         WHERE merchant = $1 AND rma_identifier IN ( \
             SELECT rma_identifier FROM return_units WHERE merchant = $1 AND order_identifier = $2) \
         ORDER BY created_at DESC, rma_identifier DESC LIMIT $3",
    )
    .bind::<Text, _>(merchant.as_str())
    .bind::<Text, _>(order_identifier)
    .bind::<BigInt, _>(most);
    let rows: Vec<SummaryRow> = prepared(query).load(conn).await?;
    let summary = |SummaryRow { rma_identifier, status, created_at, updated_at }| {
        let status = status.parse().map_err(unreadable)?;
        Ok(ReturnSummary { rma_identifier, status, created_at, updated_at })
    };
    rows.into_iter().map(summary).collect()
}
