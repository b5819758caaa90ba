//! Sizes of stored units, and how many bytes of them are in memory at once.

use std::cell::Cell;

use diesel_async::SimpleAsyncConnection as _;

use super::projecting::{later, order, refunded};
use super::*;
use crate::refunds;
use crate::refunds::affected::AffectedReturns;
use crate::shipped_units::ShippedUnits;
use crate::store::units::Held;

const SIZES: &str =
    "SELECT max(octet_length(shipped_units))::bigint AS n FROM orders WHERE merchant = 'acme'";

#[tokio::test]
async fn a_refund_identifier_is_stored_once_for_all_its_units() {
    let app = TestApp::start().await;
    let order = order("A", 2_000);
    app.store("acme", &order).await;
    let before = app.number(SIZES).await;
    let name = "\u{1f4e6}".repeat(255);
    app.store("acme", &refunded(&order, &name, 2_000, None)).await;
    assert!(app.number(SIZES).await < before + 40_000);
    let (_, shown) = app.get("/v1/orders/A/returnable", "acme").await;
    let units = shown["units"].as_array().unwrap().iter();
    assert!(units.map(|it| &it["ineligible"]["code"]).all(|code| code == "already_refunded"));
}

#[tokio::test]
async fn a_line_without_units_is_removed_from_the_units() {
    let app = TestApp::start().await;
    let mut order = order("A", 2);
    app.store("acme", &order).await;
    order.items[0].quantity_shipped = 0;
    app.store("acme", &later(&order, 1)).await;
    let empty = r#"SELECT count(*) AS n FROM orders
                   WHERE merchant = 'acme' AND shipped_units = '{"lines":{}}'"#;
    assert_eq!(app.number(empty).await, 1);
}

#[tokio::test]
async fn large_orders_are_loaded_one_by_one() {
    let app = TestApp::alone().await;
    let orders = ["A", "B", "C", "D"].map(|name| order(name, 1));
    for order in &orders {
        app.store("acme", order).await;
    }
    let mut conn = app.pool.get().await.unwrap();
    // Trailing spaces make the JSON document larger without changing it.
    let grow = "UPDATE orders SET shipped_units = shipped_units || repeat(' ', 5 * 1024 * 1024)";
    conn.batch_execute(grow).await.unwrap();
    // Events queue up while the inbox is locked.
    conn.batch_execute("BEGIN; LOCK TABLE inbox").await.unwrap();
    for order in &orders {
        app.publish("acme", &later(order, 1)).await;
    }
    conn.batch_execute("COMMIT").await.unwrap();
    for order in &orders {
        app.projected("acme", &later(order, 1)).await;
    }
    let transactions = "SELECT count(DISTINCT xmin::text) AS n FROM orders";
    assert_eq!(app.number(transactions).await, 4);
}

/// At this size, work for each pair of a refund and a unit would take many minutes.
#[test]
fn renamed_refunds_are_found_with_one_pass_over_the_units() {
    const UNITS: i64 = 50_000;
    let acme = "acme".parse().unwrap();
    let mut order = order("A", UNITS);
    let refund = refunded(&order, "R", 1, None).refunds.remove(0);
    order.refunds = (0..UNITS)
        .map(|number| {
            let mut refund = refund.clone();
            refund.identifier = format!("R{number}");
            refund
        })
        .collect();
    let mut shipped_units = ShippedUnits::default();
    shipped_units.reconcile(&order, |_| false);
    let apply = |shipped_units: &mut ShippedUnits, order: &Order| {
        let refunds = order.refunds.iter().collect::<Vec<_>>();
        let mut returns = AffectedReturns::default();
        refunds::apply(shipped_units, &acme, order, &refunds, &Held::new(), &mut returns)
    };
    assert!(apply(&mut shipped_units, &order).is_empty());
    let renamed = |to: &str| {
        let mut order = order.clone();
        order.refunds.iter_mut().for_each(|it| it.rma_identifier = Some(to.to_owned()));
        order
    };
    let visited = Cell::new(0);
    let in_return = |_: &domain::returns::UnitId| {
        visited.set(visited.get() + 1);
        Some("RMA-1")
    };
    let others =
        |name: &str| shipped_units.refunds_of_other_returns(&renamed(name), in_return).len();
    assert_eq!((others("RMA-1"), visited.take()), (0, UNITS));
    assert_eq!((i64::try_from(others("RMA-2")).unwrap(), visited.take()), (UNITS, UNITS));
    // All of them are matched again, under a name that no return has.
    assert_eq!(apply(&mut shipped_units, &renamed("RMA-3")).len(), usize::try_from(UNITS).unwrap());
}
