//! Matching of an order's refunds with returns, for snapshots and for people who correct a refund.

pub(crate) mod affected;

use std::collections::{BTreeSet, HashSet};

use diesel_async::AsyncPgConnection;
use domain::access::MerchantId;
use domain::json::{FieldError, ValidationError};
use domain::order::{Order, Refund};
use domain::returns::{Discrepancy, RefundMatches, match_refunds};
use platform::Timestamp;

use crate::App;
use crate::error::Error;
use crate::refunds::affected::AffectedReturns;
use crate::return_changes::Cause;
use crate::shipped_units::ShippedUnits;
use crate::store::orders::RowLock;
use crate::store::units::{Held, is_held};
use crate::store::{self, discrepancies};

/// A refund and the return that a person assigns it to.
pub(crate) struct RefundAssignment<'a> {
    pub(crate) order_identifier: &'a str,
    pub(crate) refund_identifier: &'a str,
    pub(crate) rma_identifier: &'a str,
}

/// Matches refunds that are new or matched no return before. Returns the discrepancies.
pub(crate) fn apply(
    shipped_units: &mut ShippedUnits,
    merchant: &MerchantId,
    order: &Order,
    refunds: &[&Refund],
    held: &Held,
    returns: &mut AffectedReturns,
) -> Vec<Discrepancy> {
    let identifiers: HashSet<_> = refunds.iter().map(|it| it.identifier.as_str()).collect();
    shipped_units.unmatch(&identifiers);
    let units = shipped_units.candidate_units(&order.identifier, |it| is_held(held, merchant, it));
    let mut matched = shipped_units.matched_refunds();
    matched.retain(|identifier, _| !identifiers.contains(identifier));
    let names: Vec<_> = refunds.iter().filter_map(|it| it.rma_identifier.as_deref()).collect();
    let affected = returns.of(merchant, &order.identifier, &names);
    let RefundMatches { refunded_units, discrepancies } =
        match_refunds(order, &matched, affected, &units);
    let unmatched = discrepancies.iter().filter_map(|it| match it {
        Discrepancy::RefundOfUnknownReturn { refund_identifier, .. } => {
            Some(refund_identifier.as_str())
        }
        _ => None,
    });
    shipped_units.record_refunds(refunds, &unmatched.collect());
    shipped_units.cover(&refunded_units);
    returns.cover(merchant, refunds, refunded_units);
    discrepancies
}

/// Matches a refund that names no known return with another return. A newer snapshot may omit the refund,
/// which was paid all the same. Snapshots still contain the name that the merchant gave, so that name is
/// kept for comparison.
pub(crate) async fn assign(
    app: &App,
    conn: &mut AsyncPgConnection,
    merchant: &MerchantId,
    assignment: &RefundAssignment<'_>,
    cause: &Cause<'_>,
    now: Timestamp,
) -> Result<(), Error> {
    let RefundAssignment { order_identifier, refund_identifier, rma_identifier } = *assignment;
    let keys = BTreeSet::from([(merchant.as_str(), order_identifier)]);
    let orders = store::orders::find(conn, &keys, RowLock::Update).await?;
    let no_order = || Error::NoOrder(order_identifier.to_owned());
    let (_, found) = orders.into_iter().next().ok_or_else(no_order)?;
    let mut order = found.order;
    let mut shipped_units = found.shipped_units;
    let applied = shipped_units.refund(refund_identifier).filter(|it| it.is_unmatched);
    let applied = applied.ok_or_else(|| Error::RefundMatched(refund_identifier.to_owned()))?;
    let mut refund = applied.to_refund(order.updated_at);
    let given = applied.rma_identifier.clone();
    refund.rma_identifier = Some(rma_identifier.to_owned());
    order.refunds = vec![refund];
    let key = (merchant.as_str(), order_identifier);
    let named = (merchant.as_str(), rma_identifier);
    let held = store::units::held(conn, &[key]).await?;
    let mut returns = AffectedReturns::lock(conn, &[key], &[named], usize::MAX).await?;
    let refunds: Vec<_> = order.refunds.iter().collect();
    let discrepancies = apply(&mut shipped_units, merchant, &order, &refunds, &held, &mut returns);
    if discrepancies.iter().any(|it| matches!(it, Discrepancy::RefundOfUnknownReturn { .. })) {
        let field = FieldError::invalid("$.rma_identifier", "there is no such return");
        return Err(ValidationError::from(field).into());
    }
    if let Some(applied) = shipped_units.refund(refund_identifier) {
        applied.rma_identifier = given;
    }
    returns.record(conn, &app.messages, cause, now).await?;
    let stored_at = found.stored_at;
    store::orders::update_units(conn, merchant, order_identifier, &shipped_units, stored_at)
        .await?;
    let discrepancies: Vec<_> = discrepancies.into_iter().map(|it| (merchant, it)).collect();
    Ok(discrepancies::record_once(conn, &discrepancies, now).await?)
}
