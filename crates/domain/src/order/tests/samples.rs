use super::*;

#[test]
fn samples_keep_every_rule_and_add_up() {
    let strict = OrderPolicy { strict_amounts: true, ..OrderPolicy::default() };
    for seed in 0..20 {
        let orders: Vec<_> = shop(seed).take(100).collect();
        let read = read(&message(&orders), strict).unwrap();
        let read: Vec<_> = read.snapshots.into_iter().map(|snapshot| snapshot.order).collect();
        assert_eq!(read, orders);
    }
}

#[test]
fn samples_are_the_same_for_the_same_seed() {
    assert_eq!(shop(7).nth(41).unwrap(), shop(7).at(41));
    assert_ne!(shop(7).at(41), shop(8).at(41));
    assert_ne!(shop(7).at(41), shop(7).at(42));
}

#[test]
fn samples_look_like_a_shop() {
    let orders: Vec<_> = shop(1).take(1_000).collect();
    let share = |of: fn(&super::super::Order) -> bool| orders.iter().filter(|it| of(it)).count();
    assert!((600..900).contains(&share(|order| order.status == OrderStatus::Shipped)));
    assert!((20..100).contains(&share(|order| order.status == OrderStatus::Cancelled)));
    assert!((40..160).contains(&share(|order| !order.refunds.is_empty())));
    let size = message(&orders).to_string().len() / orders.len();
    assert!((2_000..3_000).contains(&size), "{size} bytes an order");
}
