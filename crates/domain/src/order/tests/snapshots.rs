use std::collections::HashMap;

use super::super::{OrderOutcome, OrderSnapshot, RefundVersion};
use super::*;
use crate::json::Digest;

fn snapshot(change: impl FnOnce(&mut Value)) -> OrderSnapshot {
    let mut order = plain_order();
    change(&mut order);
    read(&order_message(order), OrderPolicy::default()).unwrap().snapshots.remove(0)
}

fn refunds_of(snapshot: &OrderSnapshot) -> HashMap<String, RefundVersion> {
    snapshot
        .refund_versions()
        .map(|(identifier, version)| (identifier.to_owned(), version))
        .collect()
}

/// The outcome of a changed plain order when the plain order is stored.
fn decide_after_plain(change: impl FnOnce(&mut Value)) -> Result<OrderOutcome, String> {
    let plain = snapshot(|_| {});
    let stored = plain.version();
    let refunds = refunds_of(&plain);
    let now = time("2026-02-01T00:00:00Z");
    snapshot(change)
        .decide(Some(&stored), |id| refunds.get(id), |_| None, OrderPolicy::default(), now)
        .map_err(|errors| errors.iter().map(ToString::to_string).collect())
}

#[track_caller]
fn check(change: impl FnOnce(&mut Value), expected: OrderOutcome) {
    assert_eq!(decide_after_plain(change), Ok(expected));
}

#[track_caller]
fn check_rejected(change: impl FnOnce(&mut Value), expected: &str) {
    assert_eq!(decide_after_plain(change), Err(expected.to_owned()));
}

#[test]
fn a_new_order_is_stored() {
    let now = time("2026-02-01T00:00:00Z");
    let decided = snapshot(|_| {}).decide(None, |_| None, |_| None, OrderPolicy::default(), now);
    assert_eq!(decided, Ok(OrderOutcome::Stored));
}

#[test]
fn the_newest_snapshot_wins_and_an_equal_one_changes_nothing() {
    check(|_| {}, OrderOutcome::Unchanged);
    check(|order| order["note"] = json!("same time, other words"), OrderOutcome::Stored);
    check(|order| order["unknown"] = json!(1), OrderOutcome::Stored);
    check(|order| order["transactions"] = json!([{}]), OrderOutcome::Stored);
    check(|order| order["updated_at"] = json!("2026-01-02T09:00:01Z"), OrderOutcome::Stored);
    check(|order| order["updated_at"] = json!("2026-01-02T08:59:59Z"), OrderOutcome::Stale);
}

#[test]
fn a_stored_refund_never_changes() {
    check_rejected(
        |order| order["refunds"][0]["total_refund_amount_cents"] = json!(1999),
        "$.returns_portal_order.orders[0].refunds[0]: invalid (only the rma_identifier of a stored refund can change)",
    );
    check_rejected(
        |order| {
            order["updated_at"] = json!("2026-01-01T10:00:00Z");
            order["refunds"][0]["unknown"] = json!(true);
        },
        "$.returns_portal_order.orders[0].refunds[0]: invalid (only the rma_identifier of a stored refund can change)",
    );
    check_rejected(
        |order| order["identifier"] = json!("1002"),
        "$.returns_portal_order.orders[0].refunds[0].identifier: invalid (a refund of another order has the same identifier)",
    );
    check(|order| order["refunds"] = json!([]), OrderOutcome::Stored);
}

#[test]
fn the_rma_identifier_of_a_stored_refund_can_change() {
    for rma_identifier in [json!("RMA-2"), json!(""), json!(null)] {
        check(|order| order["refunds"][0]["rma_identifier"] = rma_identifier, OrderOutcome::Stored);
    }
    check_rejected(
        |order| {
            order["refunds"][0]["rma_identifier"] = json!("RMA-2");
            order["refunds"][0]["note"] = json!("changed too");
        },
        "$.returns_portal_order.orders[0].refunds[0]: invalid (only the rma_identifier of a stored refund can change)",
    );
}

#[track_caller]
fn check_dates(known: bool, created_at: &str, expected: Result<OrderOutcome, &str>) {
    let snapshot = snapshot(|order| order["refunds"][0]["created_at"] = json!(created_at));
    let refunds = if known { refunds_of(&snapshot) } else { HashMap::new() };
    let policy = OrderPolicy { strict_refund_dates: true, ..OrderPolicy::default() };
    let now = time("2026-02-01T00:00:00Z");
    let decided = snapshot.decide(None, |id| refunds.get(id), |_| None, policy, now);
    let decided = decided.map_err(|errors| errors[0].field.clone());
    assert_eq!(decided, expected.map_err(str::to_owned));
}

#[test]
fn a_strict_merchant_needs_future_dates_for_new_refunds() {
    let field = "$.returns_portal_order.orders[0].refunds[0].created_at";
    check_dates(false, "2026-02-01T00:00:01Z", Ok(OrderOutcome::Stored));
    check_dates(false, "2026-02-01T00:00:00Z", Err(field));
    check_dates(true, "2026-01-01T00:00:00Z", Ok(OrderOutcome::Stored));
}

#[test]
fn a_line_of_a_new_refund_cannot_belong_to_another_refund() {
    let now = time("2026-02-01T00:00:00Z");
    let snapshot = snapshot(|_| {});
    let decide = |owner: &'static str, refunds: &HashMap<String, RefundVersion>| {
        let decided = snapshot.decide(
            None,
            |id| refunds.get(id),
            |_| Some(Digest::of_text(owner)),
            OrderPolicy::default(),
            now,
        );
        decided.map_err(|errors| errors[0].to_string())
    };
    let error = "$.returns_portal_order.orders[0].refunds[0].refund_line_items[0].identifier: \
                 invalid (a line of another refund has the same identifier)";
    assert_eq!(decide("another", &HashMap::new()), Err(error.to_owned()));
    let own: &'static str =
        Box::leak(snapshot.order.refunds[0].identifier.clone().into_boxed_str());
    assert_eq!(decide(own, &HashMap::new()), Ok(OrderOutcome::Stored));
    // The lines of a stored refund are not checked again.
    assert_eq!(decide("another", &refunds_of(&snapshot)), Ok(OrderOutcome::Stored));
}
