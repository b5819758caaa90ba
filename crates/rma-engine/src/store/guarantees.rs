//! Sums of guarantees by month. Each change of a guarantee adds rows, and the task that works deadlines off adds them to
//! the sums, so that concurrent changes never wait for the row of a sum.

use chrono::{Datelike as _, NaiveDate};
use diesel_async::{AsyncPgConnection, RunQueryDsl as _};
use domain::access::MerchantId;
use domain::returns::{GuaranteeChange, GuaranteeState};
use platform::Timestamp;
use platform::database::{DatabaseError, column, prepared, sql};

use super::unreadable;

/// A number of units and their amount, to add to a sum.
pub(crate) struct NewSum {
    merchant: MerchantId,
    month: NaiveDate,
    currency: String,
    state: GuaranteeState,
    units: i64,
    amount_cents: i64,
}

impl NewSum {
    /// The units that leave a state and those that get one.
    pub(crate) fn of_change(
        merchant: &MerchantId,
        currency: &str,
        change: &GuaranteeChange,
    ) -> impl Iterator<Item = Self> {
        let sum = |state: GuaranteeState, sign: i64| Self {
            merchant: merchant.clone(),
            month: month_of(change.started_at),
            currency: currency.to_owned(),
            state,
            units: sign,
            amount_cents: sign * change.amount_cents,
        };
        [change.from.map(|from| sum(from, -1)), Some(sum(change.to, 1))].into_iter().flatten()
    }
}

/// The first day of the month, in UTC.
fn month_of(time: Timestamp) -> NaiveDate {
    let day = time.date_naive();
    day.with_day(1).unwrap_or(day)
}

/// Adds changes. The connection is shared, so that the caller can send other statements with this one.
pub(crate) async fn add(
    mut conn: &AsyncPgConnection,
    sums: &[NewSum],
) -> Result<(), DatabaseError> {
    if sums.is_empty() {
        return Ok(());
    }
    let statement = sql(
        "INSERT INTO guarantee_changes (merchant, month, currency, state, units, amount_cents) \
         SELECT * FROM unnest((SELECT $1), $2, $3, $4, $5, $6)",
        (
            column(sums, |sum| sum.merchant.as_str()),
            column(sums, |sum| sum.month),
            column(sums, |sum| sum.currency.as_str()),
            column(sums, |sum| sum.state.as_str()),
            column(sums, |sum| sum.units),
            column(sums, |sum| sum.amount_cents),
        ),
    );
    prepared(statement).execute(&mut conn).await?;
    Ok(())
}

platform::rows! { struct Folded { changes: i64 } }

/// Adds the oldest changes to the sums, up to `most`. Returns their number.
pub(crate) async fn fold(conn: &mut AsyncPgConnection, most: i64) -> Result<i64, DatabaseError> {
    let statement = sql(include_str!("fold_guarantee_changes.sql"), most);
    let folded: Folded = prepared(statement).get_result(conn).await?;
    Ok(folded.changes)
}

platform::rows! {
    struct SumRow {
        month: NaiveDate,
        currency: String,
        state: String,
        units: i64,
        amount_cents: i64,
    }
}

/// The sum of the guarantees that started in a month and have a state.
pub(crate) struct Sum {
    pub(crate) month: NaiveDate,
    pub(crate) currency: String,
    pub(crate) state: GuaranteeState,
    pub(crate) units: i64,
    pub(crate) amount_cents: i64,
}

/// The sums of a merchant from one month to another, newest first.
pub(crate) async fn sums(
    conn: &mut AsyncPgConnection,
    merchant: &MerchantId,
    (from, to): (NaiveDate, NaiveDate),
) -> Result<Vec<Sum>, DatabaseError> {
    let query = sql(include_str!("sum_guarantees.sql"), (merchant.as_str(), from, to));
    let rows: Vec<SumRow> = prepared(query).load(conn).await?;
    let sum = |SumRow { month, currency, state, units, amount_cents }| {
        let state = state.parse().map_err(unreadable)?;
        Ok(Sum { month, currency, state, units, amount_cents })
    };
    rows.into_iter().map(sum).collect()
}
