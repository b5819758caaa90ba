//! Tests of the merchant's response to an exchange order.

use std::collections::BTreeSet;

use diesel_async::SimpleAsyncConnection as _;
use domain::exchange::{ExchangePlaced, ExchangeRenamed, FailureReason};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use testkit::{eventually, merchant, publish_merchant};

use super::app::{SOON, TestApp, confirmed, gift_card_unit, reason};

fn named(name: &str) -> Value {
    json!({"do": "respond", "body": {"order_identifier": name}})
}

#[tokio::test]
async fn an_identifier_of_another_order_is_not_used() {
    let app = TestApp::start().await;
    // The merchant names the same order twice, and then the original order.
    app.behave("/exchange_orders", json!([named("N-1"), named("N-1"), named("1003")])).await;
    let place = async |rma: &str, order: &str| {
        app.confirm(&confirmed(rma, order, &[gift_card_unit("L1", 1)])).await;
        app.placed().await
    };
    let first = place("R-1", "1001").await;
    assert_eq!(
        (first.exchange_order_identifier.as_str(), first.rejected_identifier),
        ("N-1", None)
    );
    assert_ne!(first.own_identifier, "N-1");
    for (rma, order, rejected) in [("R-2", "1002", "N-1"), ("R-3", "1003", "1003")] {
        let placed = place(rma, order).await;
        assert_eq!(placed.rejected_identifier.as_deref(), Some(rejected));
        assert_eq!(placed.exchange_order_identifier, placed.own_identifier);
        let (_, shown) = app.get(&format!("/v1/exchange_orders/{order}"), "acme").await;
        assert_eq!(
            (&shown["state"], &shown["exchange_order_identifier"]),
            (&json!("placed"), &json!(placed.own_identifier))
        );
    }
    app.wait_until_idle().await;
}

#[tokio::test]
async fn an_order_has_our_identifier_when_rma_engine_rejects_the_merchants() {
    let app = TestApp::start().await;
    app.behave("/exchange_orders", json!([named("N-1"), named("N-1")])).await;
    app.confirm(&confirmed("R-1", "1001", &[gift_card_unit("L1", 1)])).await;
    let placed = app.placed().await;
    assert_eq!(placed.exchange_order_identifier, "N-1");
    let renamed = ExchangeRenamed {
        merchant: placed.merchant.clone(),
        rma_identifier: "R-1".to_owned(),
        original_order_id: "1001".to_owned(),
        rejected_identifier: "N-1".to_owned(),
        exchange_order_identifier: placed.own_identifier.clone(),
        renamed_at: placed.placed_at,
    };
    // An event about another identifier changes nothing, and neither does a repeated event.
    let other = ExchangeRenamed { rejected_identifier: "N-2".to_owned(), ..renamed.clone() };
    let identifier = async || {
        let (_, shown) = app.get("/v1/exchange_orders/1001", "acme").await;
        shown["exchange_order_identifier"].as_str().unwrap().to_owned()
    };
    for event in [&other, &renamed, &renamed] {
        app.service.publish(event).await;
    }
    eventually("the order is renamed", SOON, async || {
        (identifier().await == placed.own_identifier).then_some(())
    })
    .await;
    let found = async |name: &str| {
        let path = format!("/v1/exchange_orders?exchange_order_identifier={name}");
        app.get(&path, "acme").await.1["exchange_orders"].as_array().unwrap().len()
    };
    assert_eq!((found("N-1").await, found(&placed.own_identifier).await), (0, 1));
    // Another exchange order can have the identifier, unless rma-engine rejects it again.
    app.confirm(&confirmed("R-2", "1002", &[gift_card_unit("L1", 1)])).await;
    assert_eq!(app.placed().await.exchange_order_identifier, "N-1");
    assert_eq!(identifier().await, placed.own_identifier);
    app.wait_until_idle().await;
}

#[tokio::test]
async fn concurrent_responses_with_one_identifier_place_it_once() {
    let app = TestApp::start().await;
    let mut always = named("N-1");
    always["times"] = json!("always");
    app.behave("/exchange_orders", json!([always])).await;
    for number in 0..20 {
        let rma = format!("R-{number}");
        app.confirm(&confirmed(&rma, &format!("O-{number}"), &[gift_card_unit("L1", 1)])).await;
    }
    let placed = app.received::<ExchangePlaced>(20).await;
    let used = placed.iter().filter(|event| event.exchange_order_identifier == "N-1").count();
    let rejected = placed.iter().filter(|event| event.rejected_identifier.is_some()).count();
    assert_eq!((used, rejected), (1, 19));
    app.wait_until_idle().await;
}

#[tokio::test]
async fn a_conflict_is_retried_and_then_shown_as_existing() {
    let app = TestApp::start().await;
    app.behave("/exchange_orders", json!([{"do": "respond", "status": 409, "times": "always"}]))
        .await;
    app.confirm(&confirmed("R-1", "1001", &[gift_card_unit("L1", 1)])).await;
    assert_eq!(app.undeliverable().await.rma_identifier, "R-1");
    app.wait_until_idle().await;
    assert_eq!(app.journal("/exchange_orders").await.len(), 6, "there are five retries");
    let (_, shown) = app.get("/v1/exchange_orders/1001", "acme").await;
    assert_eq!(shown["state"], "already_exists");
    let (_, listed) = app.get("/v1/exchange_orders?state=already_exists", "acme").await;
    assert_eq!(listed["exchange_orders"].as_array().unwrap().len(), 1);
    // The units wait until an operator abandons the order.
    let operator = app.issuer.token(None, "operator");
    let (status, _) = app.abandon("1001", &operator, "they have it").await;
    assert!(status.is_success(), "{status}");
    let failed = app.failed().await;
    assert_eq!(
        (reason(&failed), failed.rma_identifier.as_str()),
        (FailureReason::Abandoned, "R-1")
    );
    app.confirm(&confirmed("R-2", "1001", &[gift_card_unit("L2", 1)])).await;
    assert_eq!(reason(&app.failed().await), FailureReason::AlreadyExchanged);
    app.wait_until_idle().await;
}

/// Adds a merchant whose endpoints are the sandbox of acme.
async fn add_merchant(app: &TestApp, name: &str) {
    let mut added = merchant(name);
    added.settings.base_url = Some(app.sandbox.url(""));
    publish_merchant(&app.service.namespace, "exchange", added).await;
    eventually("the merchant is replicated", SOON, async || {
        let (status, _) = app.get("/v1/exchange_orders/none", name).await;
        (status == StatusCode::NOT_FOUND).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_locked_exchange_order_delays_no_other_merchant() {
    let app = TestApp::with_settings(&[("DELIVERY__RETRIES", "0")]).await;
    add_merchant(&app, "other").await;
    let refusing = json!([{"do": "respond", "status": 503, "times": 1}]);
    app.behave("/exchange_orders", refusing).await;
    app.confirm(&confirmed("R-1", "1001", &[gift_card_unit("L1", 1)])).await;
    app.undeliverable().await;
    app.wait_until_idle().await;
    let (_, shown) = app.get("/v1/exchange_orders/1001", "acme").await;
    let delivery = shown["delivery"].as_str().unwrap();

    let pool = app.service.database.pool();
    let mut holder = pool.get().await.unwrap();
    let lock = "BEGIN; SELECT FROM exchange_orders WHERE original_order_id = '1001' FOR UPDATE";
    holder.batch_execute(lock).await.unwrap();
    let operator = app.issuer.token(None, "operator");
    let replay = format!("/v1/deliveries/{delivery}/replay");
    let (status, response) = app.send(Method::POST, &replay, &operator, Some("acme")).await;
    assert_eq!(status, StatusCode::ACCEPTED, "{response}");
    let waiting = "SELECT count(*) AS n FROM pg_stat_activity \
                   WHERE datname = current_database() AND wait_event_type = 'Lock'";
    eventually("the result of acme waits for the lock", SOON, async || {
        (app.count(waiting).await > 0).then_some(())
    })
    .await;

    for (rma, order) in [("R-2", "2001"), ("R-3", "2002"), ("R-4", "2003")] {
        let mut of_other = confirmed(rma, order, &[gift_card_unit("L1", 1)]);
        of_other.merchant = "other".parse().unwrap();
        app.confirm(&of_other).await;
    }
    let placed: Vec<ExchangePlaced> = app.received(3).await;
    assert!(placed.iter().all(|it| it.merchant.as_str() == "other"), "{placed:?}");
    let (_, shown) = app.get("/v1/exchange_orders/1001", "acme").await;
    assert_eq!(shown["state"], "undeliverable");

    holder.batch_execute("ROLLBACK").await.unwrap();
    assert_eq!(app.placed().await.rma_identifier, "R-1");
    // No further event.
    app.wait_until_idle().await;
    let arrived = app.journal("/exchange_orders").await;
    let ids: BTreeSet<_> =
        arrived.iter().map(|entry| entry.headers["webhook-id"].to_string()).collect();
    assert_eq!((arrived.len(), ids.len()), (5, 4));
    let delivered = format!(
        "SELECT count(*) AS n FROM delivery_attempts \
         WHERE delivery = '{delivery}' AND settled = 'delivered'"
    );
    assert_eq!(app.count(&delivered).await, 1);
}
