use proptest::prelude::*;
use strum::VariantArray;

use super::*;

/// An even split, with the odd cents in the first parts.
fn even_split(total: i64, parts: usize) -> Vec<i64> {
    let count = i64::try_from(parts).unwrap();
    (0..count).map(|part| total / count + i64::from(part < total % count)).collect()
}

#[track_caller]
fn check_paid(line: Amounts, units: usize, paid: &[i64]) {
    assert_eq!(line.split(units).iter().map(|it| it.paid()).collect::<Vec<_>>(), paid);
}

#[test]
fn units_share_the_amount_paid_for_their_line() {
    check_paid(amounts(29000, 0, 0), 3, &[9667, 9667, 9666]);
    check_paid(amounts(30000, 3000, 2000), 3, &[9667, 9667, 9666]);
    check_paid(amounts(27001, 1, 2000), 3, &[9667, 9667, 9666]);
    check_paid(amounts(0, 0, 0), 2, &[0, 0]);
    check_paid(amounts(1, 0, 1), 2, &[1, 1]);
    check_paid(amounts(1, 2, 1), 2, &[0, 0]);
    check_paid(amounts(100, 0, 0), 0, &[]);
}

#[test]
fn a_discount_is_limited_to_product_plus_tax() {
    let over_discounted = line("L1", 2, amounts(1000, 5000, 80));
    assert_eq!(Amounts::of_line(&over_discounted), amounts(1000, 1080, 80));
}

#[test]
fn the_estimate_goes_to_the_shopper_or_to_the_service() {
    let unit = amounts(1000, 100, 80);
    for refund_type in RefundType::VARIANTS.iter().copied() {
        let financials = RefundFinancials::new(unit, refund_type);
        let service = financials.service_refund_amount_cents;
        let shopper = financials.shopper_refund_amount_cents;
        assert_eq!(financials.estimated_refund_amount_cents, 980);
        let expected = if refund_type == RefundType::Refund { (0, 980) } else { (980, 0) };
        assert_eq!((service, shopper), expected, "{refund_type}");
    }
    let over_discounted = RefundFinancials::new(amounts(10, 30, 0), RefundType::Refund);
    assert_eq!(over_discounted.estimated_refund_amount_cents, 0);
}

const MAX_AMOUNT: i64 = 1_000_000_000_000_000;

proptest! {
    #[test]
    fn each_amount_of_the_units_sums_to_the_line(
        product in 0..=MAX_AMOUNT, discount in 0..=MAX_AMOUNT, tax in 0..=MAX_AMOUNT, units in 1usize..=1000,
    ) {
        let all = line("L1", 1, amounts(product, discount, tax));
        let all = Amounts::of_line(&all);
        let shares = all.split(units);
        prop_assert_eq!(shares.iter().copied().sum::<Amounts>(), all);
        let paid: Vec<_> = shares.iter().map(|it| it.paid()).collect();
        prop_assert_eq!(paid, even_split(all.paid(), units));
        prop_assert!(shares.iter().all(|it| it.product_amount_cents >= 0
            && it.discount_amount_cents >= 0
            && it.tax_amount_cents >= 0
            && it.product_amount_cents + it.tax_amount_cents >= it.discount_amount_cents));
    }
}
