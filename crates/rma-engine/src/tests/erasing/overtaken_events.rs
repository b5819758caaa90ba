//! Tests of snapshots and receipts that arrive after the erasure of their order, or wait for it.

use domain::access::MerchantId;
use domain::warehouse::UnitReceived;
use messaging::Outbox;

use super::*;
use crate::erasing;

#[tokio::test]
async fn a_snapshot_that_the_erasure_overtook_is_erased() {
    let app = TestApp::alone().await;
    app.publish_event_at(erased(&["A"], false), Some(1000)).await;
    let _: ErasureConfirmed = event(&app, "order-intake", |_| true).await;
    let merchant = "acme".parse().unwrap();
    let order = planted("A");
    let stored = OrderStored { merchant, order: order.clone(), is_reset: false };
    app.publish_event_at(stored, Some(999)).await;
    app.projected("acme", &order).await;
    assert_eq!(marked(&app).await, Vec::<String>::new());
}

/// Starts an erasure in a transaction that stays open.
async fn hold(app: &TestApp, event: &ShopperErased, sequence: i64) -> Connection {
    let mut conn = app.pool.get().await.unwrap();
    conn.batch_execute("BEGIN").await.unwrap();
    let now = Clock::system().now();
    let mut envelope = json!(Envelope::new("order-intake", now, event));
    envelope["sequence"] = json!(format!("{sequence:019}"));
    let envelope: Envelope<ShopperErased> = serde_json::from_value(envelope).unwrap();
    let outbox = Outbox::new(App::NAME);
    erasing::erase_shopper(&mut conn, &outbox, &envelope, now).await.unwrap();
    conn
}

/// Publishes a snapshot while an erasure with a later sequence number has not committed, and checks that the
/// snapshot is erased.
async fn check_projection_during_erasure(app: &TestApp, order: &Order) {
    let mut erasure = hold(app, &erased(&["A"], false), 1000).await;
    let merchant = "acme".parse().unwrap();
    app.publish_event_at(
        OrderStored { merchant, order: order.clone(), is_reset: false },
        Some(999),
    )
    .await;
    let waits_or_done = format!(
        "SELECT (SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() \
                 AND wait_event_type = 'Lock') \
             + (SELECT count(*) FROM orders WHERE updated_at = '{}') AS n",
        order.updated_at
    );
    eventually("the projection waits, or is done", SOON, || async {
        (app.number(&waits_or_done).await > 0).then_some(())
    })
    .await;
    erasure.batch_execute("COMMIT").await.unwrap();
    drop(erasure);
    app.projected("acme", order).await;
    assert_eq!(marked(app).await, Vec::<String>::new());
}

#[tokio::test]
async fn a_snapshot_that_waits_for_the_erasure_of_its_order_is_erased() {
    let app = TestApp::alone().await;
    app.store("acme", &planted("A")).await;
    let mut newer = planted("A");
    newer.updated_at += chrono::TimeDelta::seconds(1);
    check_projection_during_erasure(&app, &newer).await;
}

#[tokio::test]
async fn a_first_snapshot_that_waits_for_the_erasure_of_its_order_is_erased() {
    let app = TestApp::alone().await;
    check_projection_during_erasure(&app, &planted("A")).await;
}

#[tokio::test]
async fn a_late_erasure_keeps_newer_snapshots_and_the_returns_of_them() {
    let app = TestApp::alone().await;
    let merchant: MerchantId = "acme".parse().unwrap();
    let older = planted("A");
    let mut newer = planted("A");
    newer.updated_at += chrono::TimeDelta::seconds(1);
    let mut returns = Vec::new();
    for (unit, sequence, order) in [(1, 998, older), (2, 1001, newer)] {
        let merchant = merchant.clone();
        let stored = OrderStored { merchant, order: order.clone(), is_reset: false };
        app.publish_event_at(stored, Some(sequence)).await;
        app.projected("acme", &order).await;
        returns.push(app.start_return(&refund_of("A", &[unit])).await);
    }
    app.publish_event_at(erased(&["A"], true), Some(1000)).await;
    let followed: ReturnsErased = event(&app, "exchange", |_| true).await;
    assert_eq!(followed.rma_identifiers, returns[..1]);
    assert_eq!(followed.order_identifiers, ["A"], "the warehouse has older reports");
    let kept = "SELECT count(*) AS n FROM orders WHERE document LIKE '%PLANTED%'";
    assert_eq!(app.number(kept).await, 1, "the newer snapshot stays");
    let of_shopper = |rma: &str| {
        format!(
            "SELECT count(*) AS n FROM returns WHERE rma_identifier = '{rma}' \
             AND customer_email = 'planted@mail.example'"
        )
    };
    assert_eq!(app.number(&of_shopper(&returns[0])).await, 0);
    assert_eq!(app.number(&of_shopper(&returns[1])).await, 1);
}

/// Restarts the service, which then searches its dead letters, and waits until a queue has this many. Returns them.
async fn left_after_restart(app: TestApp, queue: &str, number: usize) -> Vec<String> {
    let (database, namespace) = app.service.stop().await;
    let settings = [
        ("SEALING__KEYS", testkit::sealing_keys()),
        ("SHOPPER__PROOF_KEYS", testkit::sealing_keys()),
    ];
    let settings: Vec<_> = app.issuer.settings().into_iter().chain(settings).collect();
    let service = TestService::on::<App>(&settings, Clock::system(), database, namespace).await;
    eventually("only some events are left", SOON, || async {
        let left = service.namespace.peek(queue).await;
        let text = |it: &Value| it["payload"].as_str().unwrap().to_owned();
        (left.len() == number).then(|| left.iter().map(text).collect())
    })
    .await
}

#[tokio::test]
async fn a_dead_lettered_snapshot_of_an_erased_order_is_removed() {
    let app = TestApp::alone().await;
    app.publish_event_at(erased(&["A"], false), Some(1000)).await;
    let _: ErasureConfirmed = event(&app, "order-intake", |_| true).await;
    let queue = format!("{}.{}.dead", App::NAME, OrderStored::TYPE);
    let merchant: MerchantId = "acme".parse().unwrap();
    for (order, sequence) in [("A", 999), ("A", 1001), ("B", 999)] {
        let stored =
            OrderStored { merchant: merchant.clone(), order: planted(order), is_reset: false };
        let mut envelope = Envelope::new("order-intake", Clock::system().now(), &stored);
        envelope.sequence = Some(sequence);
        app.service.namespace.publish_raw(&queue, &json!(envelope).to_string()).await;
    }
    let left = left_after_restart(app, &queue, 2).await;
    assert!(!left.iter().any(|it| it.contains("/A\"") && it.contains("0000000999")), "{left:?}");
}

/// A unit that the warehouse rejected this many minutes from now.
fn rejected(rma: &str, minutes: i64) -> UnitReceived {
    let received_at = Clock::system().now() + chrono::TimeDelta::minutes(minutes);
    let reject_reason = Some(format!("PLANTED {minutes}"));
    UnitReceived { reject_reason, received_at, ..receiving::received(rma, Uuid::new_v4()) }
}

async fn erased_return(app: &TestApp) -> String {
    app.store("acme", &bodies_order("A")).await;
    let rma = app.start_return(&refund_of("A", &[1])).await;
    app.publish_event_at(erased(&["A"], true), Some(1000)).await;
    let _: ErasureConfirmed = event(app, "order-intake", |_| true).await;
    rma
}

#[tokio::test]
async fn a_receipt_that_the_erasure_overtook_is_erased() {
    let app = TestApp::alone().await;
    let rma = erased_return(&app).await;
    for (minutes, is_erased) in [(-10, true), (10, false)] {
        app.publish_event(rejected(&rma, minutes)).await;
        let recorded = format!(
            "SELECT count(*) AS n FROM timeline WHERE event = 'receipt' \
             AND (detail::text LIKE '%PLANTED {minutes}%') <> {is_erased}"
        );
        eventually("the receipt is recorded", SOON, || async {
            (app.number(&recorded).await == 1).then_some(())
        })
        .await;
        assert_eq!(marked(&app).await.is_empty(), is_erased);
    }
}

#[tokio::test]
async fn a_dead_lettered_receipt_of_an_erased_return_is_removed() {
    let app = TestApp::alone().await;
    let rma = erased_return(&app).await;
    let queue = format!("{}.{}.dead", App::NAME, UnitReceived::TYPE);
    let without_text = UnitReceived { reject_reason: None, ..rejected(&rma, -10) };
    for unit in [rejected(&rma, -10), rejected(&rma, 10), rejected("other", -10), without_text] {
        let envelope = Envelope::new("warehouse-notifier", Clock::system().now(), &unit);
        app.service.namespace.publish_raw(&queue, &json!(envelope).to_string()).await;
    }
    let left = left_after_restart(app, &queue, 3).await;
    assert!(!left.iter().any(|it| it.contains(&rma) && it.contains("PLANTED -10")), "{left:?}");
}
