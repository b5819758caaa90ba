//! Statements whose plans were made while their tables were empty read few rows of the full tables.

use std::time::Duration;

use api::exchange::{Abandonment, State};
use diesel_async::AsyncPgConnection;
use domain::exchange::{ExchangeOrderResponse, ExchangeRenamed};
use platform::{Clock, Service as _};
use uuid::Uuid;

use super::confirmed;
use crate::App;
use crate::store::confirmations::{self, Capacity, ConfirmationDecision, LeasedConfirmation};
use crate::store::search::{self, Search};
use crate::store::{erasures, orders};

/// Exchange orders. One confirmation more waits for its order.
const ROWS: i64 = 5_000;
/// Rows that a statement about one order or return may read: some entries of indexes, and rows.
const MAX_ROWS: i64 = 60;
/// Executions after which PostgreSQL keeps a plan.
const WARM_UPS: usize = 6;

const STATEMENTS: [&str; 15] = [
    "insert confirmation",
    "claim",
    "lock confirmation",
    "decide",
    "lock order",
    "place",
    "rename",
    "fail",
    "abandon",
    "message",
    "earlier orders",
    "list",
    "show",
    "erased return",
    "erase",
];

/// A confirmation and its exchange order.
#[derive(Clone, Copy)]
struct Exchange {
    position: i64,
    order: &'static str,
    rma: &'static str,
    delivery: Uuid,
}

/// Runs one of [`STATEMENTS`] about an exchange.
#[expect(clippy::too_many_lines, reason = "one arm for each statement")]
async fn run(name: &str, conn: &mut AsyncPgConnection, exchange: Exchange) {
    let Exchange { position, order, rma, delivery } = exchange;
    let merchant = "acme".parse().unwrap();
    let now = Clock::system().now();
    match name {
        "insert confirmation" => {
            let confirmed = confirmed("R-NEW", "A-NEW", &[]);
            confirmations::insert(conn, &confirmed, None, now).await.unwrap();
        }
        "claim" => {
            let capacity = Capacity { slots: 10, bytes: 1 << 20, busy: Vec::new() };
            let lease = Duration::from_secs(60);
            drop(confirmations::lease_waiting(conn, now, lease, &capacity).await.unwrap());
        }
        "lock confirmation" => {
            let claimed = LeasedConfirmation {
                position,
                confirmed: confirmed(rma, order, &[]),
                received_at: now,
                traceparent: None,
                erased: false,
                has_order: false,
                bytes: 2,
            };
            // The tables may be empty.
            confirmations::lock(conn, &claimed).await.ok();
        }
        "decide" => {
            let decision = ConfirmationDecision::NotExchangeable;
            confirmations::save_decision(conn, position, decision, &[], now).await.unwrap();
        }
        "lock order" => {
            orders::delivery(conn, &merchant, order).await.unwrap();
            orders::lock(conn, &merchant, order).await.unwrap();
        }
        "place" => {
            let response = ExchangeOrderResponse::default();
            drop(orders::place(conn, delivery, &response, now).await.unwrap());
        }
        "rename" => {
            let renamed = ExchangeRenamed {
                merchant,
                rma_identifier: rma.to_owned(),
                original_order_id: order.to_owned(),
                rejected_identifier: "EX-1".to_owned(),
                exchange_order_identifier: "EX-2".to_owned(),
                renamed_at: now,
            };
            orders::rename(conn, &renamed).await.unwrap();
        }
        "fail" => {
            let (before, after) = ([State::Sending], State::Undeliverable);
            drop(orders::fail(conn, delivery, &before, after, now).await.unwrap());
        }
        "abandon" => {
            let abandonment = Abandonment { by: "jo".to_owned(), note: "done".to_owned() };
            drop(orders::abandon(conn, delivery, &abandonment, now).await.unwrap());
        }
        "message" => drop(search::message(conn, delivery).await.ok()),
        "earlier orders" => {
            drop(search::earlier_orders(conn, &merchant, order).await.unwrap());
        }
        "list" => {
            let search = Search { merchant: Some(merchant), ..Search::default() };
            drop(search::find(conn, &search, 10).await.unwrap());
        }
        "show" => {
            let original_order_id = Some(order.to_owned());
            let search =
                Search { merchant: Some(merchant), original_order_id, ..Search::default() };
            drop(search::find(conn, &search, 10).await.unwrap());
        }
        "erased return" => drop(erasures::of_return(conn, &merchant, rma).await.unwrap()),
        "erase" => {
            let returns = [rma.to_owned()];
            let erase = domain::erasure::erase;
            erasures::orders_of(conn, &merchant, &returns).await.unwrap();
            erasures::add_erased_returns(conn, &merchant, &returns, None).await.unwrap();
            erasures::erase_confirmations(conn, &merchant, &returns, erase).await.unwrap();
            erasures::erase_orders(conn, &merchant, &returns, erase).await.unwrap();
        }
        other => panic!("{other} is not a statement"),
    }
}

fn fill() -> String {
    format!(
        "INSERT INTO confirmations (merchant, original_order_id, rma_identifier, state, document, received_at, \
             leased_until, decided_at) \
         SELECT 'acme', 'A-' || n, 'R-' || n, CASE WHEN n = 0 THEN 'waiting' ELSE 'ordered' END, '{{}}', now(), \
             now(), CASE WHEN n > 0 THEN now() END \
         FROM generate_series(0, {ROWS}) AS n; \
         INSERT INTO exchange_orders (merchant, original_order_id, confirmation, id, transaction_id, delivery, \
             state, items, message, stock_check, price_check, ordered_at) \
         SELECT merchant, original_order_id, position, gen_random_uuid(), gen_random_uuid(), gen_random_uuid(), \
             CASE WHEN original_order_id = 'A-606' THEN 'undeliverable' ELSE 'sending' END, '[]', '{{}}', \
             'checked', 'checked', now() \
         FROM confirmations WHERE state = 'ordered'; \
         INSERT INTO erased_returns SELECT 'acme', 'R-' || n, '' FROM generate_series(1, {ROWS}) AS n"
    )
}

#[tokio::test]
async fn plans_made_while_tables_were_empty_read_few_rows_of_full_ones() {
    let database = testkit::Database::create(App::migrations()).await;
    let off = ["confirmations", "exchange_orders", "erased_returns"]
        .map(|table| format!("ALTER TABLE {table} SET (autovacuum_enabled = off)"));
    database.execute_raw(&off.join("; ")).await;
    database.execute_raw("VACUUM ANALYZE").await;
    let pool = database.pool();
    let mut conn = pool.get().await.unwrap();
    let none = Exchange { position: 0, order: "A-0", rma: "R-0", delivery: Uuid::nil() };
    for name in STATEMENTS.iter().flat_map(|name| [name; WARM_UPS]) {
        let work = async |conn: &mut AsyncPgConnection| run(name, conn, none).await;
        testkit::reads(&mut conn, work).await;
    }
    database.execute_raw(&fill()).await;
    let exchange = async |order, rma, delivery: &str| {
        let of_order = format!("FROM exchange_orders WHERE original_order_id = '{order}'");
        let set = format!(
            "UPDATE exchange_orders SET delivery = '{delivery}' \
             WHERE original_order_id = '{order}'"
        );
        database.execute_raw(&set).await;
        let position = database.count(&format!("SELECT confirmation {of_order}")).await;
        Exchange { position, order, rma, delivery: delivery.parse().unwrap() }
    };
    let sending = exchange("A-505", "R-505", "00000000-0000-4000-8000-000000000505").await;
    let undeliverable = exchange("A-606", "R-606", "00000000-0000-4000-8000-000000000606").await;
    let mut expensive = Vec::new();
    for name in STATEMENTS {
        let exchange = if name == "abandon" { undeliverable } else { sending };
        let work = async |conn: &mut AsyncPgConnection| run(name, conn, exchange).await;
        let ((), reads) = testkit::reads(&mut conn, work).await;
        if reads.rows > MAX_ROWS {
            expensive.push(format!("{name}: {reads:?}"));
        }
    }
    assert!(expensive.is_empty(), "{expensive:#?}");
}
