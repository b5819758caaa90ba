//! Exchange orders that the merchant names like another order.

use chrono::TimeDelta;
use domain::exchange::{ExchangePlaced, ExchangeRenamed};
use platform::Timestamp;

use super::exchanging::{exchange_of, placed, until_progress};
use super::projecting::{later, order};
use super::*;

/// Publishes an order whose event has this time, and waits until it is projected.
async fn store_at(app: &TestApp, order: &Order, time: Timestamp) {
    let stored =
        OrderStored { merchant: "acme".parse().unwrap(), order: order.clone(), is_reset: false };
    app.service.publish_envelope(&Envelope::new("test", time, &stored)).await;
    app.projected("acme", order).await;
}

#[tokio::test]
async fn an_exchange_order_does_not_get_the_identifier_of_another_order() {
    let app = TestApp::start().await;
    app.store("acme", &order("A", 2)).await;
    app.store("acme", &order("OLD", 1)).await;
    let rma = app.start_return(&exchange_of("A", &[1])).await;
    app.publish_event(placed(&rma, "A", "OLD", &[1])).await;
    let shown = until_progress(&app, &rma, &["placed"]).await;
    assert_eq!(shown["units"][0]["exchange_order_identifier"], "X-A");
    let (_, listed) = app.get("/v1/discrepancies", "acme").await;
    let message = "exchange order X-A: OLD is the identifier of another order";
    assert_eq!(listed["discrepancies"][0]["message"], message);
    let second = app.start_return(&refund_of("OLD", &[1])).await;
    assert_eq!(app.show(&second).await["units"][0]["original_order_identifier"], Value::Null);
}

#[tokio::test]
async fn each_event_reports_our_identifier_to_the_exchange_service() {
    let app = TestApp::start().await;
    for name in ["A", "B", "OLD"] {
        app.store("acme", &order(name, 2)).await;
    }
    let first = app.start_return(&exchange_of("A", &[1])).await;
    let second = app.start_return(&exchange_of("B", &[1])).await;
    let taken = placed(&first, "A", "OLD", &[1]);
    app.publish_event(taken.clone()).await;
    until_progress(&app, &first, &["placed"]).await;
    // The exchange service was restored from a backup and placed the order again.
    app.publish_event(ExchangePlaced { own_identifier: "X-A2".to_owned(), ..taken }).await;
    // The exchange service has rejected this identifier itself.
    let mut rejected = placed(&second, "B", "X-B", &[1]);
    rejected.rejected_identifier = Some("A".to_owned());
    app.publish_event(rejected).await;
    until_progress(&app, &second, &["placed"]).await;
    let late = "SELECT count(*) AS n FROM timeline WHERE merchant = 'acme' AND detail ? 'late'";
    eventually("the repeated event is handled", SOON, || async {
        (app.number(late).await == 1).then_some(())
    })
    .await;
    assert_eq!(
        app.number("SELECT count(*) AS n FROM discrepancies WHERE merchant = 'acme'").await,
        2
    );
    eventually("all events are published", SOON, || async {
        let left = app.service.database.count("SELECT count(*) AS n FROM outbox").await;
        (left == 0).then_some(())
    })
    .await;
    let events = app.events("exchange.exchange.renamed.v1", 2).await;
    let renames: Vec<ExchangeRenamed> =
        events.into_iter().map(|event| serde_json::from_value(event).unwrap()).collect();
    let reported: Vec<_> = renames
        .iter()
        .map(|it| {
            let names = (it.rejected_identifier.as_str(), it.exchange_order_identifier.as_str());
            (it.rma_identifier.as_str(), it.original_order_id.as_str(), names)
        })
        .collect();
    assert_eq!(reported, [(first.as_str(), "A", ("OLD", "X-A")); 2]);
}

#[tokio::test]
async fn an_order_is_older_than_the_exchange_if_its_event_is() {
    let app = TestApp::start().await;
    app.store("acme", &order("A", 3)).await;
    let ordered_at = Clock::system().now() - TimeDelta::minutes(30);
    // Both orders are projected long after the exchange order was requested.
    store_at(&app, &order("OLD", 1), ordered_at - TimeDelta::minutes(1)).await;
    store_at(&app, &order("NEW", 1), ordered_at + TimeDelta::minutes(1)).await;
    // The first event of LATE arrives after the second.
    let late = order("LATE", 1);
    store_at(&app, &later(&late, 1), ordered_at + TimeDelta::minutes(1)).await;
    let stored = OrderStored { merchant: "acme".parse().unwrap(), order: late, is_reset: false };
    let first = Envelope::new("test", ordered_at - TimeDelta::minutes(1), &stored);
    app.service.publish_envelope(&first).await;
    // The queue is handled in order.
    app.store("acme", &order("B", 3)).await;
    app.store("acme", &order("C", 3)).await;
    for (original, named, expected) in
        [("A", "OLD", "X-A"), ("B", "NEW", "NEW"), ("C", "LATE", "X-C")]
    {
        let rma = app.start_return(&exchange_of(original, &[1])).await;
        let mut event = placed(&rma, original, named, &[1]);
        event.ordered_at = ordered_at;
        app.publish_event(event).await;
        let shown = until_progress(&app, &rma, &["placed"]).await;
        assert_eq!(shown["units"][0]["exchange_order_identifier"], expected, "{named}");
    }
}
