//! Projection of order snapshots in any order.

use chrono::TimeDelta;
use diesel_async::SimpleAsyncConnection as _;
use domain::order::sample::Orders;
use domain::order::{Refund, RefundLine};

use super::*;
use crate::shipped_units::ShippedUnits;

/// An order with one line of shipped units that cost 2000 cents each.
pub(super) fn order(identifier: &str, units: i64) -> Order {
    let now = Clock::system().now();
    let shop = Orders::new(7, now);
    let mut order = (0..).map(|n| shop.at(n)).find(|it| it.items[0].quantity_shipped > 0).unwrap();
    order.identifier = identifier.to_owned();
    order.created_at = now - TimeDelta::days(3);
    order.updated_at = now - TimeDelta::days(2);
    order.refunds.clear();
    order.items.truncate(1);
    let line = &mut order.items[0];
    line.identifier = format!("{identifier}-1");
    (line.quantity, line.quantity_shipped, line.quantity_canceled) = (units, units, 0);
    line.shipped_date = Some(now - TimeDelta::days(2));
    line.tags.clear();
    line.unit_price_amount_cents = 2000;
    line.product_amount_cents = 2000 * units;
    line.tax_amount_cents = 165 * units;
    line.discount_amount_cents = 0;
    order.discount_amount_cents = 0;
    (order.shipping_amount_cents, order.shipping_tax_amount_cents) = (0, 0);
    with_sums(order)
}

/// The order with the sums of its lines.
pub(super) fn with_sums(mut order: Order) -> Order {
    order.product_amount_cents = order.items.iter().map(|it| it.product_amount_cents).sum();
    order.tax_amount_cents = order.items.iter().map(|it| it.tax_amount_cents).sum();
    order.total_amount_cents = order.product_amount_cents + order.tax_amount_cents
        - order.discount_amount_cents
        + order.shipping_amount_cents
        + order.shipping_tax_amount_cents;
    order
}

/// A later snapshot of the order.
pub(super) fn later(order: &Order, minutes: i64) -> Order {
    Order { updated_at: order.updated_at + TimeDelta::minutes(minutes), ..order.clone() }
}

/// Adds a refund of units of the first line.
pub(super) fn refunded(order: &Order, refund: &str, units: i64, rma: Option<&str>) -> Order {
    let mut order = later(order, 1);
    order.refunds.push(Refund {
        identifier: refund.to_owned(),
        total_refund_amount_cents: 2165 * units,
        refund_line_items: vec![RefundLine {
            identifier: format!("{refund}-1"),
            quantity: units,
            order_item_identifier: order.items[0].identifier.clone(),
        }],
        note: None,
        created_at: order.updated_at,
        rma_identifier: rma.map(str::to_owned),
        tags: Vec::new(),
    });
    order
}

async fn eligibility(app: &TestApp, order: &str) -> Vec<String> {
    let (status, shown) = app.get(&format!("/v1/orders/{order}/returnable"), "acme").await;
    assert_eq!(status, StatusCode::OK);
    let code = |unit: &Value| match unit["ineligible"]["code"].as_str() {
        None => format!("{} {}", unit["unit"], unit["refund_amount_cents"]),
        Some(code) => format!("{} {code}", unit["unit"]),
    };
    shown["units"].as_array().unwrap().iter().map(code).collect()
}

#[tokio::test]
async fn units_of_an_order_are_shown_to_its_merchant_only() {
    let app = TestApp::start().await;
    let mut order = order("A/1", 3);
    order.items[0].product_amount_cents = 29_000;
    order.items[0].tax_amount_cents = 0;
    app.publish("acme", &order).await;
    eventually("the order is projected", SOON, || async {
        let (status, _) = app.get("/v1/orders/A%2F1/returnable", "acme").await;
        (status == StatusCode::OK).then_some(())
    })
    .await;
    assert_eq!(eligibility(&app, "A%2F1").await, ["1 9667", "2 9667", "3 9666"]);
    let (status, shown) = app.get("/v1/orders/A%2F1/returnable", "acme").await;
    assert_eq!(status, StatusCode::OK);
    assert_eq!(shown["reasons"][0]["code"], "TOO_SMALL");
    assert_eq!(shown["methods"][0]["method"], "mail-back");
    assert_eq!(shown["units"][0]["exchange_offered"], true);
    assert_eq!(shown["exchange_possible"], true);
    for (path, merchant) in
        [("/v1/orders/A%2F1/returnable", "rival"), ("/v1/orders/other/returnable", "acme")]
    {
        assert_eq!(app.get(path, merchant).await.0, StatusCode::NOT_FOUND);
    }
    let token = app.issuer.token(Some("acme"), "orders");
    let (status, _) = app.send(Method::GET, "/v1/orders/A%2F1/returnable", &token, &[], None).await;
    assert_eq!(status, StatusCode::FORBIDDEN);
    let operator = app.issuer.token(None, "operator");
    let acme = [("x-service-id", "acme")];
    let (status, _) =
        app.send(Method::GET, "/v1/orders/A%2F1/returnable", &operator, &acme, None).await;
    assert_eq!(status, StatusCode::OK);
}

#[tokio::test]
async fn the_newest_snapshot_is_stored_in_any_order_of_arrival() {
    let app = TestApp::start().await;
    let mut first = order("A", 3);
    let line = &mut first.items[0];
    (line.quantity_shipped, line.product_amount_cents, line.tax_amount_cents) = (1, 2000, 165);
    let whole = later(&order("A", 3), 60);
    app.store("acme", &whole).await;
    app.publish("acme", &first).await;
    app.publish("acme", &first).await;
    // The queue is handled in order, so the last snapshot shows the effect of all.
    app.store("acme", &later(&whole, 1)).await;
    assert_eq!(eligibility(&app, "A").await, ["1 2165", "2 2165", "3 2165"]);
    assert_eq!(app.number("SELECT count(*) AS n FROM orders WHERE merchant = 'acme'").await, 1);
    assert_eq!(
        app.number("SELECT count(*) AS n FROM discrepancies WHERE merchant = 'acme'").await,
        0
    );
}

#[tokio::test]
async fn an_order_of_a_bulk_is_projected_and_never_replaces_a_newer_snapshot() {
    let app = TestApp::start().await;
    let in_bulk = |order: &Order| {
        let merchant = "acme".parse().unwrap();
        OrderStoredInBulk(OrderStored { merchant, order: order.clone(), is_reset: false })
    };
    let newest = later(&order("A", 3), 60);
    app.store("acme", &newest).await;
    app.publish_event(in_bulk(&order("A", 1))).await;
    // The queue is handled in order.
    let last = order("B", 2);
    app.publish_event(in_bulk(&last)).await;
    app.projected("acme", &last).await;
    assert_eq!(eligibility(&app, "A").await.len(), 3);
    assert_eq!(eligibility(&app, "B").await.len(), 2);
}

#[tokio::test]
async fn the_later_event_wins_for_the_same_updated_at() {
    let app = TestApp::start().await;
    let whole = order("A", 2);
    let mut part = whole.clone();
    let line = &mut part.items[0];
    (line.quantity_shipped, line.product_amount_cents, line.tax_amount_cents) = (1, 2000, 165);
    let stored = |order: &Order| {
        let merchant = "acme".parse().unwrap();
        let order = order.clone();
        OrderStored { merchant, order, is_reset: false }
    };
    app.publish_event_at(stored(&whole), Some(10)).await;
    app.projected("acme", &whole).await;
    app.publish_event_at(stored(&part), Some(9)).await;
    // The queue is handled in order.
    app.store("acme", &order("B", 1)).await;
    assert_eq!(eligibility(&app, "A").await, ["1 2165", "2 2165"]);
    app.publish_event_at(stored(&part), Some(11)).await;
    app.store("acme", &order("C", 1)).await;
    assert_eq!(eligibility(&app, "A").await, ["1 2165", "2 not_shipped"]);
}

#[tokio::test]
async fn a_reset_order_replaces_a_snapshot_from_the_future() {
    let app = TestApp::start().await;
    let whole = order("A", 2);
    let stuck = later(&order("A", 1), 3600);
    let stored = |order: &Order, is_reset| {
        let merchant = "acme".parse().unwrap();
        let order = order.clone();
        OrderStored { merchant, order, is_reset }
    };
    app.publish_event_at(stored(&stuck, false), Some(10)).await;
    app.projected("acme", &stuck).await;
    let reset = order("A", 1);
    let correct = later(&whole, 60);
    // An older snapshot that is no reset is late.
    app.publish_event_at(stored(&correct, false), Some(11)).await;
    app.store("acme", &order("B", 1)).await;
    assert_eq!(eligibility(&app, "A").await.len(), 1);
    // The reset stores the same snapshot with an earlier time.
    app.publish_event_at(stored(&reset, true), Some(12)).await;
    app.projected("acme", &reset).await;
    app.publish_event_at(stored(&correct, false), Some(13)).await;
    app.projected("acme", &correct).await;
    assert_eq!(eligibility(&app, "A").await.len(), 2);
    // The event of a reset that arrives again changes nothing.
    app.publish_event_at(stored(&reset, true), Some(12)).await;
    app.store("acme", &order("C", 1)).await;
    assert_eq!(eligibility(&app, "A").await.len(), 2);
}

#[tokio::test]
async fn events_around_a_reset_that_are_published_again_do_not_replace_a_newer_snapshot() {
    let app = TestApp::start().await;
    let stored = |order: &Order, is_reset| {
        let merchant = "acme".parse().unwrap();
        let order = order.clone();
        OrderStored { merchant, order, is_reset }
    };
    // The database was restored, and a new event arrives before the old ones.
    let newest = later(&order("A", 3), 60);
    app.publish_event_at(stored(&newest, false), Some(100)).await;
    app.projected("acme", &newest).await;
    let tomorrow = later(&order("A", 1), 3 * 24 * 60);
    let reset = order("A", 1);
    let correct = later(&order("A", 2), 30);
    for (snapshot, is_reset, sequence) in
        [(&tomorrow, false, 10), (&reset, true, 12), (&correct, false, 13)]
    {
        app.publish_event_at(stored(snapshot, is_reset), Some(sequence)).await;
        // The queue is handled in order.
        app.store("acme", &order(&format!("B{sequence}"), 1)).await;
        assert_eq!(eligibility(&app, "A").await.len(), 3, "{sequence}");
    }
}

#[tokio::test]
async fn units_that_were_refunded_before_they_shipped_cannot_be_returned() {
    let app = TestApp::start().await;
    let mut first = order("A", 3);
    let line = &mut first.items[0];
    (line.quantity_shipped, line.product_amount_cents, line.tax_amount_cents) = (1, 2000, 165);
    let paid = refunded(&first, "R1", 2, None);
    app.store("acme", &paid).await;
    let codes = ["1 already_refunded", "2 not_shipped", "3 not_shipped"];
    assert_eq!(eligibility(&app, "A").await, codes);
    let mut whole = later(&order("A", 3), 5);
    whole.refunds = paid.refunds.clone();
    app.store("acme", &whole).await;
    let codes = ["1 already_refunded", "2 already_refunded", "3 2165"];
    assert_eq!(eligibility(&app, "A").await, codes);
}

#[tokio::test]
async fn a_refund_that_a_newer_snapshot_omits_stays_applied() {
    let app = TestApp::start().await;
    let mut first = order("A", 2);
    let line = &mut first.items[0];
    (line.quantity_shipped, line.product_amount_cents, line.tax_amount_cents) = (1, 2000, 165);
    line.quantity_canceled = 1;
    // The first refund is for the canceled unit, so the second is not.
    app.store("acme", &refunded(&first, "R1", 1, None)).await;
    assert_eq!(eligibility(&app, "A").await, ["1 2165", "2 not_shipped"]);
    app.store("acme", &refunded(&later(&first, 60), "R2", 1, None)).await;
    assert_eq!(eligibility(&app, "A").await, ["1 already_refunded", "2 not_shipped"]);
}

#[tokio::test]
async fn a_refund_without_a_return_covers_a_unit() {
    let app = TestApp::start().await;
    let order = order("A", 2);
    let once = refunded(&order, "R1", 1, None);
    app.store("acme", &once).await;
    assert_eq!(eligibility(&app, "A").await, ["1 already_refunded", "2 2165"]);
    app.store("acme", &later(&once, 1)).await;
    assert_eq!(eligibility(&app, "A").await, ["1 already_refunded", "2 2165"]);
    let unknown = refunded(&later(&once, 1), "R2", 1, Some("nobody"));
    app.store("acme", &unknown).await;
    assert_eq!(
        app.number("SELECT count(*) AS n FROM discrepancies WHERE merchant = 'acme'").await,
        1
    );
}

#[tokio::test]
async fn a_refund_in_a_late_snapshot_is_applied() {
    let app = TestApp::start().await;
    let first = order("A", 3);
    app.store("acme", &first).await;
    let rma = app.start_return(&refund_of("A", &[2])).await;
    let mut newest = later(&first, 60);
    let line = &mut newest.items[0];
    (line.quantity_shipped, line.product_amount_cents, line.tax_amount_cents) = (2, 4000, 330);
    app.store("acme", &newest).await;
    let late = refunded(&refunded(&first, "R1", 1, None), "R2", 1, Some(&rma));
    for turn in 0..2 {
        app.publish("acme", &late).await;
        // The queue is handled in order.
        app.store("acme", &order(&format!("B{turn}"), 1)).await;
        let codes = ["1 already_refunded", "2 already_returned", "3 not_shipped"];
        assert_eq!(eligibility(&app, "A").await, codes);
        let (_, shown) = app.get("/v1/orders/A/returnable", "acme").await;
        assert_eq!(shown["order_updated_at"], json!(newest.updated_at));
    }
    // One message for each refund of the return: R1 covers its unit, and R2 names it.
    assert_eq!(app.sent_messages().await, ["rma.created", "rma.refunded", "rma.refunded"]);
    let again = later(&newest, 1);
    app.store("acme", &again).await;
    assert_eq!(eligibility(&app, "A").await[0], "1 already_refunded");
}

#[tokio::test]
async fn many_orders_are_projected_in_batches() {
    let app = TestApp::start().await;
    let shop = Orders::new(3, Clock::system().now());
    for order in shop.take(200) {
        app.publish("acme", &order).await;
    }
    eventually("all are projected", SOON, || async {
        (app.number("SELECT count(*) AS n FROM orders WHERE merchant = 'acme'").await == 200)
            .then_some(())
    })
    .await;
    assert_eq!(app.service.namespace.peek("rma-engine.order.stored.v1.dead").await.len(), 0);
}

#[tokio::test]
async fn large_orders_are_projected_in_small_batches() {
    let app = TestApp::alone().await;
    let mut conn = app.pool.get().await.unwrap();
    // Events queue up while the inbox is locked.
    conn.batch_execute("BEGIN; LOCK TABLE inbox").await.unwrap();
    app.publish("acme", &order("small", 1)).await;
    for number in 0..30 {
        app.publish("acme", &order(&format!("large {number}"), 10_000)).await;
    }
    conn.batch_execute("COMMIT").await.unwrap();
    eventually("all are projected", SOON, || async {
        (app.number("SELECT count(*) AS n FROM orders WHERE merchant = 'acme'").await == 31)
            .then_some(())
    })
    .await;
    let together = "SELECT max(n) AS n FROM ( \
                        SELECT count(*) AS n FROM orders WHERE identifier LIKE 'large %' \
                        GROUP BY xmin::text) AS transactions";
    assert!(app.number(together).await <= 20);
}

#[tokio::test]
async fn a_query_plan_from_an_empty_table_stays_good() {
    let database = testkit::Database::create(App::migrations()).await;
    let pool = database.pool();
    let mut conn = pool.get().await.unwrap();
    // The planner's statistics still say that the tables are empty.
    let setup = "SET plan_cache_mode = force_generic_plan; \
                   ALTER TABLE orders SET (autovacuum_enabled = off); \
                   ALTER TABLE returns SET (autovacuum_enabled = off); \
                   ALTER TABLE return_units SET (autovacuum_enabled = off)";
    conn.batch_execute(setup).await.unwrap();
    look_up(&mut conn).await;
    let fill = "INSERT INTO orders SELECT 'acme', 'A' || n, now(), 0, '{}', '{}', now() \
                FROM generate_series(1, 5000) AS n; \
                INSERT INTO returns SELECT 'acme', 'R' || n, 'CREATED', NULL, NULL, '{}', now(), now() \
                FROM generate_series(1, 5000) AS n; \
                INSERT INTO return_units SELECT 'acme', 'R' || n, 'A' || n, 'L', 1, true, false, NULL, 0 \
                FROM generate_series(1, 5000) AS n; \
                BEGIN";
    conn.batch_execute(fill).await.unwrap();
    look_up(&mut conn).await;
    let read = "SELECT sum(seq_tup_read)::bigint AS n FROM pg_stat_xact_user_tables \
                WHERE relname IN ('orders', 'returns', 'return_units')";
    assert_eq!(testkit::count(&mut conn, read).await, 0, "rows were read in vain");
    conn.batch_execute("ROLLBACK").await.unwrap();
}

/// Every query that finds several orders or returns at once.
async fn look_up(conn: &mut AsyncPgConnection) {
    use crate::store::{locked_returns, order_rows, orders, units};
    let acme = "acme".parse().unwrap();
    let order = order("B", 1);
    let keys = [("acme", "B"), ("acme", "C")];
    orders::lock_stored(conn, &keys, 1).await.unwrap();
    units::held(conn, &keys).await.unwrap();
    locked_returns::lock_affected(conn, &keys, &keys).await.unwrap();
    let locked = keys.map(|(merchant, rma)| locked_returns::Locked {
        merchant: merchant.to_owned(),
        rma_identifier: rma.to_owned(),
        bytes: 2,
    });
    locked_returns::load(conn, &locked).await.unwrap();
    let mut rows = order_rows::Rows::default();
    rows.push(&acme, &order, 0, &ShippedUnits::default(), order.updated_at).unwrap();
    order_rows::update(conn, rows).await.unwrap();
}
