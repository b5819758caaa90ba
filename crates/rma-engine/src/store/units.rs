//! The units of orders that are in returns.

use std::collections::{BTreeSet, HashMap};

use diesel::QueryableByName;
use diesel_async::{AsyncPgConnection, RunQueryDsl as _};
use domain::access::MerchantId;
use domain::returns::UnitId;
use platform::database::{DatabaseError, prepared, sql};

use super::orders::ResourceKey;
use crate::shipped_units::unit_id;

platform::rows! {
    struct HeldRow {
        merchant: String,
        rma_identifier: String,
        order_identifier: String,
        line_identifier: String,
        unit: i32,
    }
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
    orders: &[ResourceKey<'_>],
) -> Result<Held, DatabaseError> {
    let mut held = Held::new();
    if orders.is_empty() {
        return Ok(held);
    }
    let (merchants, identifiers): (Vec<_>, Vec<_>) = orders.iter().copied().unzip();
    let query = sql(include_str!("held_units.sql"), (merchants, identifiers));
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

/// The returned units of a merchant's orders.
#[derive(Debug, Default)]
pub(crate) struct ReturnedUnits {
    /// Units in returns that are not canceled.
    pub(crate) held: HashMap<UnitId, Holder>,
    /// Orders that cannot have another exchange: one was requested and not released, even if its return
    /// was canceled.
    pub(crate) exchanged: BTreeSet<String>,
}

platform::rows! {
    struct ReturnedRow {
        #[diesel(embed)]
        unit: HeldRow,
        held: bool,
        exchanged: bool,
    }
}

/// The returned units of orders, by merchant. See [`held`] for `OFFSET 0`, and
/// [`find`](super::orders::find) for `(SELECT $1)`.
pub(crate) async fn returned(
    mut conn: &AsyncPgConnection,
    orders: &BTreeSet<ResourceKey<'_>>,
) -> Result<HashMap<String, ReturnedUnits>, DatabaseError> {
    let (merchants, identifiers): (Vec<_>, Vec<_>) = orders.iter().copied().unzip();
    let query = sql(include_str!("returned_units.sql"), (merchants, identifiers));
    let rows: Vec<ReturnedRow> = prepared(query).load(&mut conn).await?;
    let mut returned = HashMap::<String, ReturnedUnits>::new();
    for ReturnedRow { unit: row, held, exchanged } in rows {
        let of_merchant = returned.entry(row.merchant).or_default();
        if held {
            let unit = unit_id(&row.order_identifier, &row.line_identifier, row.unit);
            of_merchant.held.insert(unit, Holder { rma_identifier: row.rma_identifier });
        }
        if exchanged {
            of_merchant.exchanged.insert(row.order_identifier);
        }
    }
    Ok(returned)
}

/// Records that nothing was ordered for these units, so that another return of their order may have
/// an exchange. The units are found by their orders; a plan with only the join, made while the table was empty,
/// would read the whole table.
pub(crate) async fn release_exchange(
    conn: &mut AsyncPgConnection,
    merchant: &MerchantId,
    rma_identifier: &str,
    units: &[UnitId],
) -> Result<(), DatabaseError> {
    let orders: Vec<_> = units.iter().map(|unit| unit.order_identifier.as_str()).collect();
    let lines: Vec<_> = units.iter().map(|it| it.order_line_item_identifier.as_str()).collect();
    let numbers: Vec<_> = units.iter().map(|unit| unit.unit).collect();
    let statement = sql(
        "UPDATE return_units SET exchanged = false \
         WHERE merchant = $1 AND rma_identifier = $2 AND order_identifier = ANY ($3) \
             AND (order_identifier, line_identifier, unit) IN (SELECT * FROM unnest($3, $4, $5))",
        (merchant.as_str(), rma_identifier, orders, lines, numbers),
    );
    prepared(statement).execute(conn).await?;
    Ok(())
}
