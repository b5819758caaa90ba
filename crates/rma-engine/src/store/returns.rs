//! Returns and the units they hold.

use std::collections::{BTreeSet, HashMap};

use diesel::QueryableByName;
use diesel::sql_types::{Array, Bool, Integer, Nullable, Text, Timestamptz};
use diesel_async::{AsyncPgConnection, RunQueryDsl as _};
use domain::access::MerchantId;
use domain::returns::{Rma, UnitId};
use platform::database::{DatabaseError, prepared};

use super::orders::Key;
use super::{read, write};
use crate::shipped_units::unit_id;

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

/// Inserts a return with its units.
pub(crate) async fn insert(
    conn: &mut AsyncPgConnection,
    merchant: &MerchantId,
    rma: &Rma,
    customer_email: Option<&str>,
) -> Result<(), InsertError> {
    let units = UnitColumns::of(rma);
    let statement = diesel::sql_query(
        "WITH made AS ( \
             INSERT INTO returns (merchant, rma_identifier, status, customer_email, document, \
                 created_at, updated_at) \
             VALUES ($1, $2, $9, $10, $11, $12, $13)) \
         INSERT INTO return_units (merchant, rma_identifier, order_identifier, line_identifier, \
             unit, held, exchanged, tracking_number) \
         SELECT $1, $2, * FROM unnest($3, $4, $5, $6, $7, $8)",
    )
    .bind::<Text, _>(merchant.as_str())
    .bind::<Text, _>(&rma.rma_identifier)
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
    .bind::<Timestamptz, _>(rma.updated_at);
    prepared(statement).execute(conn).await?;
    Ok(())
}

/// Saves a locked return. Canceled units become returnable again. `exchanged` stays as it is; see
/// [`release_exchange`].
pub(crate) async fn save(
    conn: &mut AsyncPgConnection,
    merchant: &MerchantId,
    rma: &Rma,
) -> Result<(), DatabaseError> {
    let statement = diesel::sql_query(
        "UPDATE returns SET status = $3, document = $4, updated_at = $5 \
         WHERE merchant = $1 AND rma_identifier = $2",
    )
    .bind::<Text, _>(merchant.as_str())
    .bind::<Text, _>(&rma.rma_identifier)
    .bind::<Text, _>(rma.status.as_str())
    .bind::<Text, _>(write(rma)?)
    .bind::<Timestamptz, _>(rma.updated_at);
    prepared(statement).execute(conn).await?;
    let units = UnitColumns::of(rma);
    let statement = diesel::sql_query(
        "UPDATE return_units AS kept SET held = new.held, tracking_number = new.tracking_number \
         FROM unnest($3, $4, $5, $6, $7) \
             AS new (order_identifier, line_identifier, unit, held, tracking_number) \
         WHERE kept.merchant = $1 AND kept.rma_identifier = $2 \
             AND kept.order_identifier = new.order_identifier \
             AND kept.line_identifier = new.line_identifier AND kept.unit = new.unit \
             AND (kept.held, kept.tracking_number) \
                 IS DISTINCT FROM (new.held, new.tracking_number)",
    )
    .bind::<Text, _>(merchant.as_str())
    .bind::<Text, _>(&rma.rma_identifier)
    .bind::<Array<Text>, _>(units.orders)
    .bind::<Array<Text>, _>(units.lines)
    .bind::<Array<Integer>, _>(units.numbers)
    .bind::<Array<Bool>, _>(units.held)
    .bind::<Array<Nullable<Text>>, _>(units.tracking_numbers);
    prepared(statement).execute(conn).await?;
    Ok(())
}

/// Records that nothing was ordered for these units, so that another return of their order may have
/// an exchange.
pub(crate) async fn release_exchange(
    conn: &mut AsyncPgConnection,
    merchant: &MerchantId,
    rma_identifier: &str,
    units: &[UnitId],
) -> Result<(), DatabaseError> {
    let orders: Vec<_> = units.iter().map(|unit| unit.order_identifier.as_str()).collect();
    let lines: Vec<_> = units.iter().map(|it| it.order_line_item_identifier.as_str()).collect();
    let numbers: Vec<_> = units.iter().map(|unit| unit.unit).collect();
    let statement = diesel::sql_query(
        "UPDATE return_units SET exchanged = false \
         WHERE merchant = $1 AND rma_identifier = $2 \
             AND (order_identifier, line_identifier, unit) IN (SELECT * FROM unnest($3, $4, $5))",
    )
    .bind::<Text, _>(merchant.as_str())
    .bind::<Text, _>(rma_identifier)
    .bind::<Array<Text>, _>(orders)
    .bind::<Array<Text>, _>(lines)
    .bind::<Array<Integer>, _>(numbers);
    prepared(statement).execute(conn).await?;
    Ok(())
}

#[derive(QueryableByName)]
struct ExchangedRow {
    #[diesel(sql_type = Text)]
    order_identifier: String,
}

/// Orders that cannot have another exchange: one was requested and not released, even if its return
/// was canceled.
pub(crate) async fn exchanged(
    conn: &mut AsyncPgConnection,
    merchant: &MerchantId,
    orders: &[&str],
) -> Result<BTreeSet<String>, DatabaseError> {
    let query = diesel::sql_query(
        "SELECT DISTINCT order_identifier FROM return_units \
         WHERE merchant = $1 AND order_identifier = ANY ($2) AND exchanged",
    )
    .bind::<Text, _>(merchant.as_str())
    .bind::<Array<Text>, _>(orders);
    let rows: Vec<ExchangedRow> = prepared(query).load(conn).await?;
    Ok(rows.into_iter().map(|row| row.order_identifier).collect())
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

#[derive(QueryableByName)]
struct HeldRow {
    #[diesel(sql_type = Text)]
    merchant: String,
    #[diesel(sql_type = Text)]
    rma_identifier: String,
    #[diesel(sql_type = Text)]
    order_identifier: String,
    #[diesel(sql_type = Text)]
    line_identifier: String,
    #[diesel(sql_type = Integer)]
    unit: i32,
}

/// The return that a unit is in.
#[derive(Debug, Clone)]
pub(crate) struct Holder {
    pub(crate) rma_identifier: String,
}

/// Units in returns that are not canceled, by merchant, then by unit.
pub(crate) type Held = HashMap<String, HashMap<UnitId, Holder>>;

/// The held units of these orders. `OFFSET 0` keeps PostgreSQL from turning the lookups into a
/// join, so a plan that was made while the table was empty stays good.
pub(crate) async fn held(
    conn: &mut AsyncPgConnection,
    orders: &[Key<'_>],
) -> Result<Held, DatabaseError> {
    let mut held = Held::new();
    if orders.is_empty() {
        return Ok(held);
    }
    let (merchants, identifiers): (Vec<_>, Vec<_>) = orders.iter().copied().unzip();
    let query = diesel::sql_query(
        "SELECT units.* FROM unnest($1, $2) AS asked (merchant, order_identifier), LATERAL ( \
             SELECT merchant, rma_identifier, order_identifier, line_identifier, unit \
             FROM return_units AS own WHERE own.merchant = asked.merchant \
             AND own.order_identifier = asked.order_identifier AND held OFFSET 0 \
         ) AS units",
    )
    .bind::<Array<Text>, _>(merchants)
    .bind::<Array<Text>, _>(identifiers);
    let rows: Vec<HeldRow> = prepared(query).load(conn).await?;
    for row in rows {
        let unit = unit_id(&row.order_identifier, &row.line_identifier, row.unit);
        let holder = Holder { rma_identifier: row.rma_identifier };
        held.entry(row.merchant).or_default().insert(unit, holder);
    }
    Ok(held)
}

/// Whether the unit is in a return that is not canceled.
pub(crate) fn is_held(held: &Held, merchant: &MerchantId, unit: &UnitId) -> bool {
    held.get(merchant.as_str()).is_some_and(|units| units.contains_key(unit))
}

/// A locked return and its size in bytes.
#[derive(Debug, Clone)]
pub(crate) struct Locked {
    pub(crate) merchant: String,
    pub(crate) rma_identifier: String,
    pub(crate) weight: usize,
}

#[derive(QueryableByName)]
struct LockedRow {
    #[diesel(sql_type = Text)]
    merchant: String,
    #[diesel(sql_type = Text)]
    rma_identifier: String,
    #[diesel(sql_type = Integer)]
    weight: i32,
}

/// Locks the returns that hold units of these orders, and the named returns, in key order. See
/// [`held`] for `OFFSET 0`.
pub(crate) async fn lock_affected(
    conn: &mut AsyncPgConnection,
    orders: &[Key<'_>],
    named: &[Key<'_>],
) -> Result<Vec<Locked>, DatabaseError> {
    let (order_merchants, orders): (Vec<_>, Vec<_>) = orders.iter().copied().unzip();
    let (named_merchants, named): (Vec<_>, Vec<_>) = named.iter().copied().unzip();
    let query = diesel::sql_query(
        "WITH affected (merchant, rma_identifier) AS ( \
             SELECT units.* FROM unnest($1, $2) AS asked (merchant, order_identifier), LATERAL ( \
                 SELECT merchant, rma_identifier FROM return_units AS own \
                 WHERE own.merchant = asked.merchant \
                 AND own.order_identifier = asked.order_identifier AND held OFFSET 0 \
             ) AS units \
             UNION SELECT * FROM unnest($3, $4) \
         ), sorted AS ( \
             SELECT * FROM affected ORDER BY merchant, rma_identifier \
         ) \
         SELECT kept.* FROM sorted, LATERAL ( \
             SELECT merchant, rma_identifier, octet_length(document) AS weight \
             FROM returns AS own \
             WHERE own.merchant = sorted.merchant AND own.rma_identifier = sorted.rma_identifier \
             FOR NO KEY UPDATE \
         ) AS kept",
    )
    .bind::<Array<Text>, _>(order_merchants)
    .bind::<Array<Text>, _>(orders)
    .bind::<Array<Text>, _>(named_merchants)
    .bind::<Array<Text>, _>(named);
    let rows: Vec<LockedRow> = prepared(query).load(conn).await?;
    let locked = |LockedRow { merchant, rma_identifier, weight }| {
        let weight = usize::try_from(weight).unwrap_or_default();
        Locked { merchant, rma_identifier, weight }
    };
    Ok(rows.into_iter().map(locked).collect())
}

#[derive(QueryableByName)]
struct DocumentRow {
    #[diesel(sql_type = Text)]
    document: String,
}

/// Loads locked returns, in the given order. See [`held`] for `OFFSET 0`.
pub(crate) async fn load(
    conn: &mut AsyncPgConnection,
    locked: &[Locked],
) -> Result<Vec<Rma>, DatabaseError> {
    let key = |it: &Locked| (it.merchant.clone(), it.rma_identifier.clone());
    let (merchants, identifiers): (Vec<_>, Vec<_>) = locked.iter().map(key).unzip();
    let query = diesel::sql_query(
        "SELECT kept.document FROM unnest($1, $2) WITH ORDINALITY \
             AS asked (merchant, rma_identifier, place), LATERAL ( \
             SELECT document FROM returns AS own \
             WHERE own.merchant = asked.merchant AND own.rma_identifier = asked.rma_identifier \
             OFFSET 0 \
         ) AS kept ORDER BY asked.place",
    )
    .bind::<Array<Text>, _>(merchants)
    .bind::<Array<Text>, _>(identifiers);
    let rows: Vec<DocumentRow> = prepared(query).load(conn).await?;
    rows.into_iter().map(|row| read(&row.document)).collect()
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
    use diesel::OptionalExtension as _;
    let query = diesel::sql_query(format!(
        "SELECT document FROM returns WHERE merchant = $1 AND rma_identifier = $2{lock}"
    ))
    .bind::<Text, _>(merchant.as_str())
    .bind::<Text, _>(rma_identifier);
    let row: Option<DocumentRow> = prepared(query).get_result(conn).await.optional()?;
    row.map(|row| read(&row.document)).transpose()
}
