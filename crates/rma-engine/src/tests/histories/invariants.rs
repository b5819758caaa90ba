//! Invariants that hold at any time.

use std::collections::{BTreeMap, BTreeSet};

use domain::merchant::ReviewDecision;
use domain::order::{Order, Refund};
use domain::returns::{
    Amounts, Discrepancy, GuaranteeState, MessageStatus, ReturnReview, Rma, RmaMessage, RmaUnit,
    UnitId,
};

use super::actions::Model;
use super::test_engine::{SentMessage, TestEngine};
use crate::shipped_units::{ShippedUnits, Unit, unit_id};

pub(super) async fn check(app: &TestEngine, model: &Model) {
    let returns = app.returns(model).await;
    let (order, shipped_units) = app.order(model).await;
    assert_eq!(order, model.order, "the newest snapshot is not the one that is kept");
    no_unit_is_returned_twice(&returns);
    let known_units: BTreeSet<_> = shipped_units.all("A").map(|(id, _)| id).collect();
    for unit in held(&returns) {
        assert!(known_units.contains(unit), "{unit} is returned and not stored");
    }
    let found = discrepancies(app, model).await;
    for line in &order.items {
        let units = shipped_units.units(&line.identifier);
        let sum: i64 = units.iter().map(|it| it.amounts.paid()).sum();
        let paid = Amounts::of_line(line).paid();
        let is_recorded = found.iter().any(|it| is_about_money(it, &line.identifier));
        let fits = units.len() == usize::try_from(line.quantity_shipped).unwrap() && sum == paid;
        assert!(fits || is_recorded, "{}: {units:?} make {sum} of {paid}", line.identifier);
    }
    no_refund_covers_twice(&returns, &order.refunds);
    paid_units_are_not_returnable(&returns, &order, &shipped_units);
    if !found.iter().any(is_about_refunds_or_units) {
        nothing_is_paid_twice(&returns, &order, &shipped_units);
    }
    sums_are_those_of_the_units(app, model, &returns).await;
    each_due_unit_is_reported_once(app, model, &returns).await;
    each_open_guarantee_has_a_deadline(app, model, &returns).await;
    each_review_is_decided_once(app, model, &returns).await;
    let messages = app.sent_messages(model).await;
    last_message_is_current(&returns, &messages);
    for ordering_key in messages.chunk_by(|a, b| a.ordering_key == b.ordering_key) {
        messages_are_in_order(ordering_key);
    }
}

async fn sums_are_those_of_the_units(app: &TestEngine, model: &Model, returns: &[Rma]) {
    let sums = "SELECT state || ' ' || sum(units) || ' ' || sum(amount_cents) AS line FROM ( \
                    SELECT state, units, amount_cents, merchant FROM guarantee_totals UNION ALL \
                    SELECT state, units, amount_cents, merchant FROM guarantee_changes \
                ) AS counted WHERE merchant = $1 GROUP BY state HAVING sum(units) <> 0 ORDER BY state";
    let mut counted = BTreeMap::<_, (i64, i64)>::new();
    for guarantee in
        returns.iter().flat_map(|rma| &rma.units).filter_map(|it| it.guarantee.as_ref())
    {
        let (units, amount) = counted.entry(guarantee.state.as_str()).or_default();
        *units += 1;
        *amount += guarantee.amount_cents;
    }
    let expected: Vec<_> = counted
        .iter()
        .map(|(state, (units, amount))| format!("{state} {units} {amount}"))
        .collect();
    assert_eq!(app.lines(sums, model).await, expected);
}

/// A unit is reported once, whatever the order of scans, receipts, refunds, waivers and deadlines.
async fn each_due_unit_is_reported_once(app: &TestEngine, model: &Model, returns: &[Rma]) {
    let reported = "SELECT unit::text AS line FROM timeline, \
                    jsonb_array_elements(detail -> 'units') AS unit \
                    WHERE merchant = $1 AND event = 'rma.exchange_unreturned'";
    let mut reported: Vec<UnitId> = app
        .lines(reported, model)
        .await
        .iter()
        .map(|it| serde_json::from_str(it).unwrap())
        .collect();
    let is_due =
        |unit: &&RmaUnit| unit.guarantee.as_ref().is_some_and(|it| it.unreturned_at.is_some());
    let units = returns.iter().flat_map(|rma| &rma.units).filter(is_due);
    let mut expected: Vec<_> = units.map(|unit| unit.id.clone()).collect();
    reported.sort_unstable();
    expected.sort_unstable();
    assert_eq!(reported, expected);
}

async fn each_open_guarantee_has_a_deadline(app: &TestEngine, model: &Model, returns: &[Rma]) {
    let stored = "SELECT rma_identifier AS line FROM return_deadlines \
                  WHERE merchant = $1 AND kind = 'exchange'";
    let stored: BTreeSet<_> = app.lines(stored, model).await.into_iter().collect();
    let is_open =
        |unit: &RmaUnit| unit.guarantee.as_ref().is_some_and(|it| it.state == GuaranteeState::Open);
    for rma in returns.iter().filter(|rma| rma.units.iter().any(is_open)) {
        assert!(stored.contains(&rma.rma_identifier), "{rma:?}");
    }
}

fn held(returns: &[Rma]) -> impl Iterator<Item = &UnitId> {
    let units = returns.iter().flat_map(|rma| &rma.units);
    units.filter(|unit| unit.canceled_at.is_none()).map(|unit| &unit.id)
}

fn no_unit_is_returned_twice(returns: &[Rma]) {
    let mut seen = BTreeSet::new();
    for unit in held(returns) {
        assert!(seen.insert(unit), "{unit} is in two returns");
    }
}

fn no_refund_covers_twice(returns: &[Rma], refunds: &[Refund]) {
    let mut covered: BTreeMap<&str, i64> = BTreeMap::new();
    for unit in returns.iter().flat_map(|rma| &rma.units) {
        if let Some(refund) = &unit.refunded_by {
            *covered.entry(refund).or_default() += 1;
        }
    }
    for refund in refunds {
        let paid: i64 = refund.refund_line_items.iter().map(|it| it.quantity).sum();
        let covers = covered.get(refund.identifier.as_str()).copied().unwrap_or_default();
        assert!(covers <= paid, "{} pays {paid} units and covers {covers}", refund.identifier);
    }
}

/// While a line has more paid than covered units, none of its units is returnable.
fn paid_units_are_not_returnable(returns: &[Rma], order: &Order, shipped_units: &ShippedUnits) {
    let held: BTreeSet<_> = held(returns).collect();
    for line in order.items.iter().map(|line| &line.identifier) {
        let units = shipped_units.units(line);
        let covered = units.iter().filter(|it| it.refund.is_some()).count();
        let is_free = |it: &&Unit| {
            it.refund.is_none() && !held.contains(&unit_id(&order.identifier, line, it.unit))
        };
        let free = units.iter().filter(is_free).count();
        let paid = usize::try_from(paid(order, line)).unwrap();
        assert!(
            free == 0 || paid <= covered,
            "{line}: {paid} paid, {covered} covered, {free} free"
        );
    }
}

fn paid(order: &Order, line: &str) -> i64 {
    let paid = order.refunds.iter().flat_map(|refund| &refund.refund_line_items);
    paid.filter(|it| it.order_item_identifier == line).map(|it| it.quantity).sum()
}

/// Refunded units and units that await a refund are different units.
fn nothing_is_paid_twice(returns: &[Rma], order: &Order, shipped_units: &ShippedUnits) {
    for line in order.items.iter().map(|line| &line.identifier) {
        let units = returns.iter().flat_map(|rma| &rma.units);
        let waiting = units
            .filter(|unit| unit.id.order_line_item_identifier == *line)
            .filter(|unit| unit.canceled_at.is_none() && unit.refunded_by.is_none())
            .count();
        let paid = paid(order, line);
        let most = shipped_units.units(line).len();
        assert!(
            waiting + usize::try_from(paid).unwrap() <= most,
            "{line}: {paid} refunded and {waiting} to be refunded, of {most}"
        );
    }
}

/// A person or the deadline decides, never both.
async fn each_review_is_decided_once(app: &TestEngine, model: &Model, returns: &[Rma]) {
    let decided = "SELECT rma_identifier AS line FROM timeline \
                   WHERE merchant = $1 AND detail ->> 'cause' IN ('approval', 'decline')";
    let mut decided = app.lines(decided, model).await;
    let is_decided = |rma: &&Rma| rma.review.as_ref().is_some_and(|it| it.decided.is_some());
    let of_decided = returns.iter().filter(is_decided);
    let mut expected: Vec<_> = of_decided.map(|rma| rma.rma_identifier.clone()).collect();
    decided.sort_unstable();
    expected.sort_unstable();
    assert_eq!(decided, expected);
}

/// Whether the merchant knows the return: it needed no review, or was approved.
fn is_told(rma: &&Rma) -> bool {
    let decision = |review: &ReturnReview| review.decided.as_ref().map(|it| it.decision);
    rma.review.as_ref().is_none_or(|it| decision(it) == Some(ReviewDecision::Approve))
}

/// Each return that the merchant knows has messages, and the last message equals its current state.
fn last_message_is_current(returns: &[Rma], messages: &[SentMessage]) {
    for rma in returns.iter().filter(is_told) {
        let ordering_key = format!("rma:{}", rma.rma_identifier);
        let last = messages.iter().rfind(|it| it.ordering_key == ordering_key).unwrap();
        assert_eq!(last.message, rma.message());
    }
    let ordering_keys: BTreeSet<_> = messages.iter().map(|it| &it.ordering_key).collect();
    let told = returns.iter().filter(is_told).count();
    assert_eq!(ordering_keys.len(), told, "a message has no return");
}

fn messages_are_in_order(ordering_key: &[SentMessage]) {
    let sequences: Vec<_> = ordering_key.iter().map(|it| it.sequence).collect();
    let expected: Vec<_> = (1..).take(ordering_key.len()).collect();
    assert_eq!(sequences, expected);
    assert_eq!(ordering_key[0].event, "rma.created");
    for pair in ordering_key.windows(2) {
        let [before, after] = [&pair[0].message, &pair[1].message];
        assert_ne!(before, after, "a message repeats the one before");
        assert!(before.updated_at < after.updated_at, "{before:?} {after:?}");
        // A late scan or receipt brings expired units back.
        let is_reopened = after.items.len() > before.items.len()
            || (before.status == MessageStatus::Canceled && after.status == MessageStatus::Created);
        if is_reopened {
            assert!(ordering_key.iter().any(|it| it.event == "rma.expired"));
            continue;
        }
        assert!(rank(before.status) <= rank(after.status), "{before:?} {after:?}");
        check_units_since(before, after);
    }
}

fn rank(status: MessageStatus) -> u8 {
    match status {
        MessageStatus::Created => 0,
        MessageStatus::PartialRefund => 1,
        MessageStatus::Refunded | MessageStatus::Canceled => 2,
    }
}

/// Units may be canceled but not added, and tracking never goes backwards.
fn check_units_since(before: &RmaMessage, after: &RmaMessage) {
    assert!(after.items.len() <= before.items.len());
    if after.items.len() == before.items.len() {
        for (was, is) in before.items.iter().zip(&after.items) {
            assert!(was.package_tracking_status <= is.package_tracking_status);
            assert!(was.tracking_number.is_none() || is.tracking_number.is_some());
        }
    }
}

async fn discrepancies(app: &TestEngine, model: &Model) -> Vec<Discrepancy> {
    let query = "SELECT detail::text AS line FROM discrepancies WHERE merchant = $1";
    let lines = app.lines(query, model).await;
    lines.iter().map(|it| serde_json::from_str(it).unwrap()).collect()
}

/// The merchant refunded or removed more units than there were.
fn is_about_refunds_or_units(discrepancy: &Discrepancy) -> bool {
    matches!(
        discrepancy,
        Discrepancy::ShippedQuantityReduced { .. }
            | Discrepancy::RefundOfUnknownReturn { .. }
            | Discrepancy::RefundOfCanceledReturn { .. }
            | Discrepancy::RefundExceedsReturn { .. }
            | Discrepancy::RefundExceedsLine { .. }
    )
}

fn is_about_money(discrepancy: &Discrepancy, line: &str) -> bool {
    match discrepancy {
        Discrepancy::ShippedQuantityReduced { order_line_item_identifier, .. }
        | Discrepancy::AmountsChanged { order_line_item_identifier, .. } => {
            order_line_item_identifier == line
        }
        _ => false,
    }
}
