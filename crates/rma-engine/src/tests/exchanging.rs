//! Outcomes of exchanges.

use domain::exchange::{ExchangeFailed, ExchangePlaced, FailureCause};
use domain::returns::UnitId;

use super::projecting::order;
use super::*;

fn exchange_of(order: &str, units: &[i32]) -> Value {
    let variant = json!({ "sku": "TEE-M", "title": "Tee, M", "unit_price_amount_cents": 2000 });
    let exchange = json!({ "resolution": "exchange", "variant": variant });
    let units: Vec<_> = units.iter().map(|number| choice(order, *number, &exchange)).collect();
    json!({ "return_method": "mail-back", "units": units })
}

fn id(order: &str, number: i32) -> UnitId {
    serde_json::from_value(unit(order, number)).unwrap()
}

fn placed(rma: &str, original: &str, exchange: &str, units: &[i32]) -> ExchangePlaced {
    ExchangePlaced {
        merchant: "acme".parse().unwrap(),
        rma_identifier: rma.to_owned(),
        original_order_id: original.to_owned(),
        exchange_order_identifier: exchange.to_owned(),
        units: units.iter().map(|number| id(original, *number)).collect(),
        placed_at: Clock::system().now(),
    }
}

fn failed(rma: &str, original: &str, units: &[i32], cause: FailureCause) -> ExchangeFailed {
    ExchangeFailed {
        merchant: "acme".parse().unwrap(),
        rma_identifier: rma.to_owned(),
        original_order_id: original.to_owned(),
        units: units.iter().map(|number| id(original, *number)).collect(),
        cause,
        detail: "it is so".to_owned(),
        failed_at: Clock::system().now(),
    }
}

async fn until_progress(app: &TestApp, rma: &str, progress: &[&str]) -> Value {
    eventually("the exchange goes on", SOON, || async {
        let shown = app.show(rma).await;
        let units = shown["units"].as_array().unwrap().iter();
        let seen: Vec<_> = units.map(|unit| unit["exchange_status"].as_str().unwrap()).collect();
        (seen == progress).then(|| shown.clone())
    })
    .await
}

#[tokio::test]
async fn an_exchange_order_is_named_and_its_own_units_name_the_original() {
    let app = TestApp::start().await;
    app.store("acme", &order("A", 1)).await;
    let rma = app.start_return(&exchange_of("A", &[1])).await;
    // The order is undeliverable at first; later an operator replays it.
    app.publish_event(failed(&rma, "A", &[1], FailureCause::Undeliverable)).await;
    until_progress(&app, &rma, &["undeliverable"]).await;
    app.publish_event(placed(&rma, "A", "EX-A", &[1])).await;
    app.publish_event(placed(&rma, "A", "EX-A", &[1])).await;
    until_progress(&app, &rma, &["placed"]).await;
    let last = app.arrivals("acme").await.pop().unwrap();
    assert_eq!(last.event, "rma.exchange_placed");
    assert_eq!(last.body["items"][0]["exchange_order_identifier"], "EX-A");
    assert_eq!(last.body["items"][0]["is_exchange"], true);

    // The exchange order is returned and exchanged too: the chain of originals is stored.
    app.store("acme", &order("EX-A", 2)).await;
    let second = app.start_return(&exchange_of("EX-A", &[1])).await;
    app.publish_event(placed(&second, "EX-A", "EX-EX-A", &[1])).await;
    until_progress(&app, &second, &["placed"]).await;
    app.store("acme", &order("EX-EX-A", 1)).await;
    let third = app.start_return(&refund_of("EX-EX-A", &[1])).await;
    let arrivals = app.arrivals("acme").await;
    let item = |rma: &str| {
        let own = arrivals.iter().rfind(|it| it.body["rma_identifier"] == *rma).unwrap();
        own.body["items"][0].clone()
    };
    assert_eq!(item(&second)["original_order_identifier"], "A");
    assert_eq!(item(&second)["exchange_order_identifier"], "EX-EX-A");
    let third = item(&third);
    assert_eq!(third["original_order_identifier"], "EX-A");
    assert_eq!((&third["is_exchange"], &third["refund_type"]), (&json!(true), &json!("REFUND")));
    let told = app.told().await;
    assert_eq!(told.iter().filter(|it| *it == "rma.exchange_placed").count(), 2);
}

#[tokio::test]
async fn an_order_is_not_its_own_exchange_order() {
    let app = TestApp::start().await;
    app.store("acme", &order("A", 2)).await;
    let rma = app.start_return(&exchange_of("A", &[1])).await;
    app.publish_event(placed(&rma, "A", "A", &[1])).await;
    until_progress(&app, &rma, &["placed"]).await;
    let second = app.start_return(&refund_of("A", &[2])).await;
    let arrivals = app.arrivals("acme").await;
    let own = arrivals.iter().rfind(|it| it.body["rma_identifier"] == *second).unwrap();
    assert_eq!(own.body["items"][0]["original_order_identifier"], Value::Null);
    assert_eq!(own.body["items"][0]["is_exchange"], false);
}

#[tokio::test]
async fn a_quote_is_stale_after_another_exchange_of_the_order() {
    let app = TestApp::start().await;
    app.store("acme", &order("A", 2)).await;
    let mut body = exchange_of("A", &[1]);
    let (_, quote) = app.post("/v1/returns/quote", "acme", &body).await;
    assert_eq!(quote["possible"], true);
    body["quote"] = quote["quote"].clone();
    app.start_return(&exchange_of("A", &[2])).await;
    let (status, refusal) = app.post("/v1/returns", "acme", &body).await;
    let change = json!({
        "unit": unit("A", 1), "what": "ineligible", "quoted": null, "now": "already_exchanged",
    });
    assert_eq!((status, &refusal["changes"]), (StatusCode::CONFLICT, &json!([change])));
    assert_eq!(refusal["quote"]["possible"], false);
    app.start_return(&refund_of("A", &[1])).await;
}

#[tokio::test]
async fn units_of_a_failed_exchange_are_refunded() {
    let app = TestApp::start().await;
    // Another exchange is possible only if nothing was ordered.
    for (name, cause, another) in [
        ("A", FailureCause::OutOfStock, true),
        ("B", FailureCause::AlreadyExchanged, false),
        ("C", FailureCause::Abandoned, false),
    ] {
        app.store("acme", &order(name, 3)).await;
        let rma = app.start_return(&exchange_of(name, &[1, 2])).await;
        app.publish_event(failed(&rma, name, &[1, 2], cause)).await;
        until_progress(&app, &rma, &["failed", "failed"]).await;
        // Every further event comes too late.
        app.publish_event(failed(&rma, name, &[1, 2], cause)).await;
        app.publish_event(placed(&rma, name, &format!("EX-{name}"), &[1, 2])).await;
        let notes = format!("SELECT count(*) AS n FROM timeline WHERE rma_identifier = '{rma}'");
        eventually("what came late is noted", SOON, || async {
            (app.number(&notes).await == 4).then_some(())
        })
        .await;
        let arrivals = app.arrivals("acme").await;
        let own: Vec<_> = arrivals.iter().filter(|it| it.body["rma_identifier"] == *rma).collect();
        let events: Vec<_> = own.iter().map(|it| it.event.as_str()).collect();
        assert_eq!(events, ["rma.created", "rma.exchange_failed"]);
        let last = &own[1].body["items"][1];
        assert_eq!((&last["refund_type"], &last["is_exchange"]), (&json!("REFUND"), &json!(false)));
        assert_eq!(last["refund_financials"]["shopper_refund_amount_cents"], 2165);
        let path = format!("/v1/orders/{name}/returnable");
        assert_eq!(app.get(&path, "acme").await.1["exchange_possible"], another);
        // Canceling the return releases its units but not the exchange.
        let cancel = format!("/v1/returns/{rma}/cancel");
        assert_eq!(app.post(&cancel, "acme", &json!({})).await.0, StatusCode::OK);
        let (_, shown) = app.get(&path, "acme").await;
        assert_eq!(
            (&shown["exchange_possible"], &shown["units"][0]["returnable"]),
            (&json!(another), &json!(true))
        );
        let (status, _) = app.post("/v1/returns", "acme", &exchange_of(name, &[3])).await;
        assert_eq!(status == StatusCode::CREATED, another);
        app.start_return(&refund_of(name, &[1])).await;
    }
}
