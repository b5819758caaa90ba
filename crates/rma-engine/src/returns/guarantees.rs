//! Guarantees of exchanged units: waiving them, and their sums.
//!
//! See docs/decisions/deadlines.md.

use api::returns::{GuaranteeMonth, GuaranteeReport, GuaranteeSum};
use chrono::NaiveDate;
use diesel_async::AsyncPgConnection;
use domain::access::MerchantId;
use domain::merchant::Merchant;
use domain::returns::{GuaranteeState, Rma, UnitId, Waiver};
use serde_json::json;

use crate::App;
use crate::error::Error;
use crate::return_changes::{self, Cause};
use crate::returns::{lock, refused};
use crate::store::guarantees::{self, Sum};

/// Does without exchanged units that have not come back, and without their amounts.
#[tracing::instrument(skip_all, fields(rma.id = rma_identifier))]
pub(crate) async fn waive(
    app: &App,
    merchant: &Merchant,
    actor: &str,
    rma_identifier: &str,
    (units, note): (Option<&[UnitId]>, &str),
) -> Result<Rma, Error> {
    app.pool
        .transaction_of(merchant.identifier.as_str(), async |conn| {
            let now = app.clock.now();
            let mut rma = lock(conn, merchant, rma_identifier).await?;
            let waiver = Waiver { at: now, by: actor.to_owned(), note: note.to_owned() };
            let change = rma.waive(units, &waiver).map_err(|it| refused(rma_identifier, it))?;
            let cause = Cause { actor, action: "waiver", detail: json!({ "note": note }) };
            return_changes::record(conn, &app.messages, &rma, &change, cause, now).await?;
            Ok(rma)
        })
        .await
}

/// The guarantees that started in these months, by month and currency.
pub(crate) async fn report(
    conn: &mut AsyncPgConnection,
    merchant: &MerchantId,
    months: (NaiveDate, NaiveDate),
) -> Result<GuaranteeReport, Error> {
    let mut report = GuaranteeReport { merchant: merchant.clone(), months: Vec::new() };
    for Sum { month, currency, state, units, amount_cents } in
        guarantees::sums(conn, merchant, months).await?
    {
        let month = month.format("%Y-%m").to_string();
        let is_other = |it: &GuaranteeMonth| (&it.month, &it.currency) != (&month, &currency);
        if report.months.last().is_none_or(is_other) {
            report.months.push(GuaranteeMonth::new(month, currency));
        }
        let Some(row) = report.months.last_mut() else { continue };
        let sum = match state {
            GuaranteeState::Open => &mut row.open,
            GuaranteeState::Met => &mut row.met,
            GuaranteeState::Due => &mut row.due,
            GuaranteeState::Waived => &mut row.waived,
        };
        *sum = GuaranteeSum { units, amount_cents };
    }
    Ok(report)
}
