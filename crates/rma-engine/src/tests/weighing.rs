//! What an order takes on the ledger, and how much of that is in memory at once.

use diesel_async::SimpleAsyncConnection as _;

use super::projecting::{later, order, refunded};
use super::*;

const LEDGERS: &str = "SELECT max(octet_length(ledger))::bigint AS n FROM orders";

#[tokio::test]
async fn the_name_of_a_refund_is_kept_once_for_all_its_units() {
    let stage = Stage::set().await;
    let order = order("A", 2_000);
    stage.store("acme", &order).await;
    let before = stage.number(LEDGERS).await;
    let name = "\u{1f4e6}".repeat(255);
    stage.store("acme", &refunded(&order, &name, 2_000, None)).await;
    assert!(stage.number(LEDGERS).await < before + 40_000);
    let (_, shown) = stage.get("/v1/orders/A/returnable", "acme").await;
    let units = shown["units"].as_array().unwrap().iter();
    assert!(units.map(|it| &it["ineligible"]["code"]).all(|code| code == "already_refunded"));
}

#[tokio::test]
async fn a_line_whose_units_are_gone_is_forgotten() {
    let stage = Stage::set().await;
    let mut order = order("A", 2);
    stage.store("acme", &order).await;
    order.items[0].quantity_shipped = 0;
    stage.store("acme", &later(&order, 1)).await;
    let empty = r#"SELECT count(*) AS n FROM orders WHERE ledger = '{"lines":{}}'"#;
    assert_eq!(stage.number(empty).await, 1);
}

#[tokio::test]
async fn heavy_ledgers_are_loaded_one_by_one() {
    let stage = Stage::set().await;
    let orders = ["A", "B", "C", "D"].map(|name| order(name, 1));
    for order in &orders {
        stage.store("acme", order).await;
    }
    let mut conn = stage.pool.get().await.unwrap();
    // Spaces behind a document mean nothing.
    let grow = "UPDATE orders SET ledger = ledger || repeat(' ', 5 * 1024 * 1024)";
    conn.batch_execute(grow).await.unwrap();
    // As long as no event can be remembered they gather.
    conn.batch_execute("BEGIN; LOCK TABLE inbox").await.unwrap();
    for order in &orders {
        stage.publish("acme", &later(order, 1)).await;
    }
    conn.batch_execute("COMMIT").await.unwrap();
    for order in &orders {
        stage.projected("acme", &later(order, 1)).await;
    }
    let transactions = "SELECT count(DISTINCT xmin::text) AS n FROM orders";
    assert_eq!(stage.number(transactions).await, 4);
}
