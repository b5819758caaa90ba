use super::*;

/// Checks refunds of an order in which L1 has two units of 500 and 501 cents, L2 has one of 1000
/// cents, and shipping cost 100 cents. The last refund is new.
#[track_caller]
fn check(refunds: &[(i64, &[(&str, i64)])], expected: &str) {
    let items = vec![line("L1", 2, amounts(1001, 0, 0)), line("L2", 1, amounts(1000, 0, 0))];
    let order = order("A", items);
    let total_amount_cents = order.total_amount_cents + 100;
    let order = Order { shipping_amount_cents: 100, total_amount_cents, ..order };
    let named: Vec<_> = (1..).map(|number| format!("R{number}")).take(refunds.len()).collect();
    let quantities: Vec<RefundedQuantities> = refunds
        .iter()
        .map(|(_, lines)| lines.iter().map(|(line, units)| ((*line).to_owned(), *units)).collect())
        .collect();
    let paid = refunds.iter().zip(&named).zip(&quantities);
    let paid = paid.map(|(((amount_cents, _), identifier), quantities)| PaidRefund {
        identifier,
        amount_cents: *amount_cents,
        quantities,
    });
    let new = named.last().map(String::as_str).into_iter().collect();
    let unit_amounts = [("L1".to_owned(), vec![500, 501]), ("L2".to_owned(), vec![1000])].into();
    let found = check_refund_amounts(&order, paid, &new, &unit_amounts);
    assert_eq!(found.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "), expected);
}

#[test]
fn a_refund_above_the_amount_paid_is_a_discrepancy() {
    // The most expensive unit with shipping.
    check(&[(601, &[("L1", 1)])], "");
    check(
        &[(602, &[("L1", 1)])],
        "refund R1: 602 cents are refunded of line L1 of order A, but at most 601 cents were paid",
    );
    check(
        &[(99_999, &[("L1", 1)])],
        "refund R1: 99999 cents are refunded of line L1 of order A, but at most 601 cents were paid",
    );
    check(&[(1601, &[("L1", 1), ("L2", 1)])], "");
    check(
        &[(1602, &[("L1", 1), ("L2", 1)])],
        "refund R1: 1602 cents are refunded of order A, but at most 1601 cents were paid",
    );
}

#[test]
fn refunds_of_a_line_and_of_an_order_are_summed() {
    check(&[(601, &[("L1", 1)]), (500, &[("L1", 1)])], "");
    check(
        &[(601, &[("L1", 1)]), (501, &[("L1", 1)])],
        "refund R2: 1102 cents are refunded of line L1 of order A, but at most 1101 cents were paid",
    );
    check(&[(1001, &[]), (1100, &[("L2", 1)])], "");
    check(
        &[(1002, &[]), (1100, &[("L2", 1)])],
        "refund R2: 2102 cents are refunded of order A, but at most 2101 cents were paid",
    );
    // An earlier refund is not reported again.
    check(&[(602, &[("L1", 1)]), (1, &[])], "");
}

#[test]
fn a_line_and_an_order_have_one_discrepancy() {
    let above = (602, &[("L1", 1)][..]);
    check(&[above, above], "");
    check(&[(2102, &[]), (1, &[])], "");
    check(&[(99_999, &[("L1", 1)]), (1, &[("L1", 1)])], "");
    // Another line, and a refund of several lines, have their own.
    check(
        &[above, (1101, &[("L2", 1)])],
        "refund R2: 1101 cents are refunded of line L2 of order A, but at most 1100 cents were paid",
    );
    check(
        &[above, (1602, &[("L1", 1), ("L2", 1)])],
        "refund R2: 1602 cents are refunded of order A, but at most 1601 cents were paid",
    );
}

#[test]
fn units_that_did_not_ship_have_no_known_amount() {
    check(&[(1500, &[("L1", 3)])], "");
    check(
        &[(2102, &[("L1", 3)])],
        "refund R1: 2102 cents are refunded of order A, but at most 2101 cents were paid",
    );
}
