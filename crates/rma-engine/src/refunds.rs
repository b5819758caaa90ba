//! Matching of an order's refunds with returns, for snapshots and for people who correct a refund.

use diesel_async::AsyncPgConnection;
use domain::access::MerchantId;
use domain::json::{FieldError, ValidationError};
use domain::merchant::Merchant;
use domain::order::{Order, Refund};
use domain::returns::{Discrepancy, RefundMatches, match_refunds};
use platform::Timestamp;

use crate::App;
use crate::affected_returns::AffectedReturns;
use crate::error::Error;
use crate::return_changes::Cause;
use crate::shipped_units::ShippedUnits;
use crate::store::orders::RowLock;
use crate::store::returns::{Held, is_held};
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
    refunds.iter().for_each(|refund| shipped_units.uncover(&refund.identifier));
    let units = shipped_units.known_units(&order.identifier, |it| is_held(held, merchant, it));
    let mut matched = shipped_units.matched_refunds();
    matched.retain(|identifier, _| refunds.iter().all(|refund| refund.identifier != *identifier));
    let names: Vec<_> = refunds.iter().filter_map(|it| it.rma_identifier.as_deref()).collect();
    let affected = returns.of(merchant, &order.identifier, &names);
    let RefundMatches { refunded_units, discrepancies } =
        match_refunds(order, &matched, affected, &units);
    for refund in refunds {
        let is_unmatched = |it: &Discrepancy| match it {
            Discrepancy::RefundOfUnknownReturn { refund_identifier, .. } => {
                *refund_identifier == refund.identifier
            }
            _ => false,
        };
        shipped_units.record_refund(refund, discrepancies.iter().any(is_unmatched));
    }
    shipped_units.cover(&refunded_units);
    returns.cover(merchant, refunded_units);
    discrepancies
}

/// Matches a refund that names no known return with another return. Snapshots still contain the name
/// that the merchant gave, so that name is kept for comparison.
pub(crate) async fn assign(
    app: &App,
    conn: &mut AsyncPgConnection,
    merchant: &Merchant,
    assignment: &RefundAssignment<'_>,
    cause: &Cause<'_>,
    now: Timestamp,
) -> Result<(), Error> {
    let RefundAssignment { order_identifier, refund_identifier, rma_identifier } = *assignment;
    let id = &merchant.identifier;
    let orders = store::orders::find(conn, id, &[order_identifier], RowLock::Update).await?;
    let no_order = || Error::NoOrder(order_identifier.to_owned());
    let found = orders.into_iter().next().ok_or_else(no_order)?;
    let (mut order, mut shipped_units) = (found.order, found.shipped_units);
    order.refunds.retain(|refund| refund.identifier == refund_identifier);
    let waits = shipped_units.refund(refund_identifier).is_some_and(|it| it.is_unmatched);
    let Some(refund) = order.refunds.first_mut().filter(|_| waits) else {
        return Err(Error::RefundMatched(refund_identifier.to_owned()));
    };
    let given = refund.rma_identifier.replace(rma_identifier.to_owned());
    let key = (id.as_str(), order_identifier);
    let held = store::returns::held(conn, &[key]).await?;
    let mut returns = AffectedReturns::lock(conn, &[key], &[(id.as_str(), rma_identifier)]).await?;
    let refunds: Vec<_> = order.refunds.iter().collect();
    let found = apply(&mut shipped_units, id, &order, &refunds, &held, &mut returns);
    if found.iter().any(|it| matches!(it, Discrepancy::RefundOfUnknownReturn { .. })) {
        let field = FieldError::invalid("$.rma_identifier", "there is no such return");
        return Err(ValidationError::from(field).into());
    }
    if let Some(applied) = shipped_units.refund(refund_identifier) {
        applied.rma_identifier = given;
    }
    returns.record(conn, &app.deliveries, cause, now).await?;
    store::orders::update_units(conn, id, order_identifier, &shipped_units).await?;
    let found: Vec<_> = found.into_iter().map(|it| (id, it)).collect();
    Ok(discrepancies::record_once(conn, &found, now).await?)
}
