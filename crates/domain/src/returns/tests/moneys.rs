use proptest::prelude::*;

use super::*;
use crate::merchant::{MethodOffer, ReturnPolicy};

/// So many parts of a whole, the odd cents in the first ones.
fn even(total: i64, parts: usize) -> Vec<i64> {
    let count = i64::try_from(parts).unwrap();
    (0..count).map(|part| total / count + i64::from(part < total % count)).collect()
}

#[track_caller]
fn check_paid(line: Amounts, units: usize, paid: &[i64]) {
    assert_eq!(line.among(units).iter().map(|it| it.paid()).collect::<Vec<_>>(), paid);
}

#[test]
fn units_share_what_was_paid_for_their_line() {
    check_paid(amounts(29000, 0, 0), 3, &[9667, 9667, 9666]);
    check_paid(amounts(30000, 3000, 2000), 3, &[9667, 9667, 9666]);
    check_paid(amounts(27001, 1, 2000), 3, &[9667, 9667, 9666]);
    check_paid(amounts(0, 0, 0), 2, &[0, 0]);
    check_paid(amounts(1, 0, 1), 2, &[1, 1]);
    check_paid(amounts(1, 2, 1), 2, &[0, 0]);
    check_paid(amounts(100, 0, 0), 0, &[]);
}

#[test]
fn a_discount_is_at_most_what_it_is_taken_off() {
    let generous = line("L1", 2, amounts(1000, 5000, 80));
    assert_eq!(Amounts::of_line(&generous), amounts(1000, 1080, 80));
}

#[test]
fn the_estimate_goes_to_the_shopper_or_to_the_service() {
    let unit = amounts(1000, 100, 80);
    for refund_type in RefundType::ALL {
        let it = RefundFinancials::new(unit, refund_type);
        let (service, shopper) = (it.service_refund_amount_cents, it.shopper_refund_amount_cents);
        assert_eq!(it.estimated_refund_amount_cents, 980);
        let expected = if refund_type == RefundType::Refund { (0, 980) } else { (980, 0) };
        assert_eq!((service, shopper), expected, "{refund_type}");
    }
    let odd = RefundFinancials::new(amounts(10, 30, 0), RefundType::Refund);
    assert_eq!(odd.estimated_refund_amount_cents, 0);
}

#[test]
fn shipping_costs_what_the_method_costs_unless_all_is_exchanged() {
    use RefundType::{EvenExchange, Refund, UnevenExchange};
    use ReturnMethod::{CustomerKeep, ExpressReturns, MailBack};
    let offer = |method, shipping_cost_cents| MethodOffer { method, shipping_cost_cents };
    let policy = |free_exchange_shipping| ReturnPolicy {
        methods: vec![offer(MailBack, 700), offer(ExpressReturns, 300)],
        free_exchange_shipping,
        ..ReturnPolicy::default()
    };
    let cost = |free, method, types: &[RefundType]| {
        policy(free).return_shipping_cost(method, types.iter().copied())
    };
    assert_eq!(cost(true, MailBack, &[Refund]), Some(700));
    assert_eq!(cost(true, ExpressReturns, &[Refund, EvenExchange]), Some(300));
    assert_eq!(cost(true, MailBack, &[UnevenExchange, EvenExchange]), Some(0));
    assert_eq!(cost(false, MailBack, &[UnevenExchange, EvenExchange]), Some(700));
    assert_eq!(cost(true, CustomerKeep, &[Refund]), None);
}

const MOST: i64 = 1_000_000_000_000_000;

proptest! {
    #[test]
    fn units_sum_to_their_line_amount_by_amount(
        product in 0..=MOST, discount in 0..=MOST, tax in 0..=MOST, units in 1usize..=1000,
    ) {
        let all = line("L1", 1, amounts(product, discount, tax));
        let all = Amounts::of_line(&all);
        let parts = all.among(units);
        prop_assert_eq!(parts.iter().copied().sum::<Amounts>(), all);
        let paid: Vec<_> = parts.iter().map(|it| it.paid()).collect();
        prop_assert_eq!(paid, even(all.paid(), units));
        prop_assert!(parts.iter().all(|it| it.product_amount_cents >= 0
            && it.discount_amount_cents >= 0
            && it.tax_amount_cents >= 0
            && it.product_amount_cents + it.tax_amount_cents >= it.discount_amount_cents));
    }
}
