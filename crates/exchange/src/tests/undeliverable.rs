//! Tests of confirmations and exchange orders that cannot be delivered.

use std::collections::BTreeSet;

use domain::event::Event as _;
use domain::exchange::FailureReason;
use domain::returns::{ReturnConfirmed, UnitId};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use testkit::eventually;

use super::app::{SOON, TestApp, confirmed, gift_card_unit, reason};

const UNPROCESSABLE: StatusCode = StatusCode::UNPROCESSABLE_ENTITY;

#[tokio::test]
async fn a_replay_places_an_undeliverable_order() {
    let app = TestApp::with_settings(&[("DELIVERY__RETRIES", "2")]).await;
    let refusing = json!([{"do": "respond", "status": 503, "times": 6}]);
    app.behave("/exchange_orders", refusing).await;
    app.confirm(&confirmed("R-1", "1001", &[gift_card_unit("L1", 1)])).await;
    let undeliverable = app.undeliverable().await;
    assert_eq!(undeliverable.rma_identifier, "R-1");
    let unit = UnitId {
        order_identifier: "1001".to_owned(),
        order_line_item_identifier: "L1".to_owned(),
        unit: 1,
    };
    assert_eq!(undeliverable.items, [unit]);
    let why = &undeliverable.reason;
    assert!(why.starts_with("the merchant responded with 503"), "{why}");
    let (_, shown) = app.get("/v1/exchange_orders/1001", "acme").await;
    assert_eq!(shown["state"], "undeliverable");
    let delivery = shown["delivery"].as_str().unwrap();
    let replay = format!("{}/v1/deliveries/{delivery}/replay", app.service.url);
    let operator = app.issuer.token(None, "operator");
    let again = async || {
        let response = app.client.post(&replay).bearer_auth(&operator).send().await.unwrap();
        assert!(response.status().is_success(), "{}", response.status());
    };
    // Another return fails while the exchange order is undeliverable.
    app.confirm(&confirmed("R-2", "1001", &[gift_card_unit("L2", 1)])).await;
    assert_eq!(reason(&app.failed().await), FailureReason::AlreadyExchanged);
    again().await;
    eventually("the replay failed, too", SOON, async || {
        (app.journal("/exchange_orders").await.len() == 6).then_some(())
    })
    .await;
    app.wait_until_idle().await;
    again().await;
    let placed = app.placed().await;
    assert_eq!((placed.rma_identifier.as_str(), placed.items.len()), ("R-1", 1));
    app.wait_until_idle().await;
    let arrived = app.journal("/exchange_orders").await;
    let ids: BTreeSet<_> =
        arrived.iter().map(|entry| entry.headers["webhook-id"].to_string()).collect();
    assert_eq!((arrived.len(), ids.len()), (7, 1));
}

#[tokio::test]
async fn an_operator_abandons_an_undeliverable_order() {
    let app =
        TestApp::with_settings(&[("DELIVERY__RETRIES", "1"), ("DELIVERY__ATTEMPT_TIMEOUT", "5s")])
            .await;
    let refusing = json!([{"do": "respond", "status": 503, "times": 2}, {"do": "hang"}]);
    app.behave("/exchange_orders", refusing).await;
    app.confirm(&confirmed("R-1", "1001", &[gift_card_unit("L1", 1)])).await;
    app.undeliverable().await;
    app.wait_until_idle().await;
    let operator = app.issuer.token(None, "operator");
    let post = async |path: &str| app.send(Method::POST, path, &operator, Some("acme")).await;
    let abandon = async |order: &str, note: &str| app.abandon(order, &operator, note).await;
    let merchants_own = app.issuer.token(Some("acme"), "returns");
    let (status, _) = app.abandon("1001", &merchants_own, "a reason").await;
    assert_eq!(status, StatusCode::FORBIDDEN);
    assert_eq!(abandon("1002", "a reason").await.0, StatusCode::NOT_FOUND);
    let (status, rejected) = abandon("1001", "").await;
    assert_eq!((status, &rejected["errors"][0]["field"]), (UNPROCESSABLE, &json!("$.note")));

    // The order cannot be abandoned while its delivery is in flight.
    let (_, shown) = app.get("/v1/exchange_orders/1001", "acme").await;
    let replay = format!("/v1/deliveries/{}/replay", shown["delivery"].as_str().unwrap());
    assert_eq!(post(&replay).await.0, StatusCode::ACCEPTED);
    assert_eq!(abandon("1001", "a reason").await.0, StatusCode::CONFLICT);
    let refusing = json!([{"do": "respond", "status": 503, "times": "always"}]);
    app.behave("/exchange_orders", refusing).await;
    app.wait_until_idle().await;

    for _ in 0..2 {
        let (status, ended) = abandon("1001", "sold out, says acme").await;
        assert_eq!((status, &ended["state"]), (StatusCode::OK, &json!("abandoned")));
        assert_eq!(ended["message"]["original_order_id"], "1001");
        assert_eq!(ended["abandonment"]["note"], "sold out, says acme");
        assert!(ended["abandonment"]["by"].is_string(), "{ended}");
    }
    let (_, ended) = app.get("/v1/exchange_orders/1001", "acme").await;
    let (status, refusal) = abandon("1001", "another reason").await;
    assert_eq!(status, StatusCode::CONFLICT, "{refusal}");
    let by = ended["abandonment"]["by"].as_str().unwrap();
    let message = refusal["message"].as_str().unwrap();
    assert!(
        message.ends_with(&format!("was abandoned already by {by} with another note")),
        "{message}"
    );
    let (_, unchanged) = app.get("/v1/exchange_orders/1001", "acme").await;
    assert_eq!(unchanged["abandonment"], ended["abandonment"]);
    let failed = app.failed().await;
    assert_eq!((reason(&failed), failed.items.len()), (FailureReason::Abandoned, 1));
    assert_eq!(failed.rma_identifier, "R-1");
    assert_eq!(post(&replay).await.0, StatusCode::NOT_FOUND);
    app.confirm(&confirmed("R-2", "1001", &[gift_card_unit("L2", 1)])).await;
    assert_eq!(reason(&app.failed().await), FailureReason::AlreadyExchanged);
    let (_, listed) = app.get("/v1/exchange_orders?state=abandoned", "acme").await;
    assert_eq!(listed["exchange_orders"][0]["rma_identifier"], "R-1");
    app.wait_until_idle().await;

    app.request_sandbox(Method::DELETE, "/behaviour", &Value::Null).await;
    app.confirm(&confirmed("R-3", "1003", &[gift_card_unit("L1", 1)])).await;
    app.placed().await;
    assert_eq!(abandon("1003", "a reason").await.0, StatusCode::CONFLICT);
    app.wait_until_idle().await;
}

#[tokio::test]
async fn requests_to_abandon_a_locked_order_leave_connections_to_others() {
    let app = TestApp::with_settings(&[("DELIVERY__RETRIES", "1")]).await;
    let refusing = json!([{"do": "respond", "status": 503, "times": "always"}]);
    app.behave("/exchange_orders", refusing).await;
    app.confirm(&confirmed("R-1", "1001", &[gift_card_unit("L1", 1)])).await;
    app.undeliverable().await;
    app.wait_until_idle().await;
    let operator = app.issuer.token(None, "operator");
    let lock = "SELECT FROM exchange_orders WHERE original_order_id = '1001' FOR UPDATE";
    let abandon = async || app.abandon("1001", &operator, "a reason").await;
    let other = async || {
        let (status, listed) = app.get("/v1/exchange_orders", "rival").await;
        assert_eq!(status, StatusCode::OK, "{listed}");
    };
    let database = &app.service.database;
    for (status, response) in
        testkit::check_requests_about_locked_rows(database, lock, abandon, other).await
    {
        // On a slow machine the time of a request can be over before the lock is released.
        let is_limited = status == StatusCode::TOO_MANY_REQUESTS;
        assert!(status == StatusCode::OK || is_limited, "{status} {response}");
    }
    let failed = app.failed().await;
    assert_eq!(reason(&failed), FailureReason::Abandoned);
    app.wait_until_idle().await;
}

#[tokio::test]
async fn a_confirmation_that_cannot_become_an_order_is_dead_lettered() {
    let app = TestApp::alone().await;
    let mut without_gift_card = confirmed("R-1", "1001", &[gift_card_unit("L1", 1)]);
    without_gift_card.gift_card = None;
    app.confirm(&without_gift_card).await;
    app.confirm(&confirmed("R-2", "1002", &[])).await;
    app.confirm(&confirmed("R-3", "1003", &[gift_card_unit("L1", 1)])).await;
    assert_eq!(app.placed().await.original_order_id, "1003");
    let dead = format!("exchange.{}.dead", ReturnConfirmed::TYPE);
    eventually("both events are dead-lettered", SOON, async || {
        (app.service.namespace.peek(&dead).await.len() == 2).then_some(())
    })
    .await;
    app.wait_until_idle().await;
}

#[tokio::test]
async fn an_unreadable_confirmation_does_not_block_others() {
    let app = TestApp::alone().await;
    let good = confirmed("R-2", "1002", &[gift_card_unit("L1", 1)]);
    // In one statement, so that they are claimed together.
    let both = format!(
        "INSERT INTO confirmations (merchant, original_order_id, rma_identifier, state, document, \
             received_at, leased_until) \
         SELECT 'acme', original_order_id, rma_identifier, 'waiting', document, now(), now() \
         FROM (VALUES ('1001', 'R-1', '{{}}'), ('1002', 'R-2', '{}')) \
             AS new (original_order_id, rma_identifier, document)",
        json!(good),
    );
    app.execute(&both).await;
    assert_eq!(app.placed().await.original_order_id, "1002");
    app.wait_until_idle().await;
    let (_, unreadable) = app.get("/v1/exchange_orders?state=unreadable", "acme").await;
    assert_eq!(unreadable["exchange_orders"].as_array().unwrap().len(), 1);
    assert_eq!(unreadable["exchange_orders"][0]["original_order_id"], "1001");
}
