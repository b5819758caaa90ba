use super::super::Order;
use super::*;

#[test]
fn samples_are_valid_and_their_sums_add_up() {
    let strict = OrderPolicy { strict_amounts: true, ..OrderPolicy::default() };
    for seed in 0..20 {
        let orders: Vec<_> = sample_orders(seed).take(100).collect();
        let read = read(&message(&orders), strict).unwrap();
        assert!(read.warnings.is_empty(), "{:?}", read.warnings);
        let read: Vec<_> = read.snapshots.into_iter().map(|snapshot| snapshot.order).collect();
        assert_eq!(read, orders);
    }
}

#[test]
fn equal_seeds_give_equal_samples() {
    assert_eq!(sample_orders(7).nth(41).unwrap(), sample_orders(7).at(41));
    assert_ne!(sample_orders(7).at(41), sample_orders(8).at(41));
    assert_ne!(sample_orders(7).at(41), sample_orders(7).at(42));
}

#[test]
fn samples_are_realistic() {
    let orders: Vec<_> = sample_orders(1).take(1_000).collect();
    let share = |is: fn(&Order) -> bool| orders.iter().filter(|order| is(order)).count();
    assert!((600..900).contains(&share(|order| order.status == OrderStatus::Shipped)));
    assert!((20..100).contains(&share(|order| order.status == OrderStatus::Cancelled)));
    assert!((40..160).contains(&share(|order| !order.refunds.is_empty())));
    let size = message(&orders).to_string().len() / orders.len();
    assert!((2_000..3_000).contains(&size), "{size} bytes an order");
}
