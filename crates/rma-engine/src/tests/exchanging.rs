//! Outcomes of exchanges.

use domain::exchange::{
    ExchangeFailed, ExchangePlaced, ExchangeUndeliverable, FailedItem, FailureReason, PlacedItem,
};
use domain::returns::{RefundType, UnitId};

use super::projecting::order;
use super::*;

pub(super) fn exchange_of(order: &str, units: &[i32]) -> Value {
    let variant = json!({ "sku": "TEE-M", "title": "Tee, M", "unit_price_amount_cents": 2000 });
    let exchange = json!({ "resolution": "exchange", "variant": variant });
    let units: Vec<_> = units.iter().map(|number| choice(order, *number, &exchange)).collect();
    json!({ "return_method": "mail-back", "units": units })
}

fn id(order: &str, number: i32) -> UnitId {
    serde_json::from_value(unit(order, number)).unwrap()
}

pub(super) fn placed(rma: &str, original: &str, exchange: &str, units: &[i32]) -> ExchangePlaced {
    ExchangePlaced {
        merchant: "acme".parse().unwrap(),
        rma_identifier: rma.to_owned(),
        original_order_id: original.to_owned(),
        exchange_order_identifier: exchange.to_owned(),
        own_identifier: format!("X-{original}"),
        rejected_identifier: None,
        items: units
            .iter()
            .map(|number| PlacedItem {
                unit: id(original, *number),
                refund_type: RefundType::EvenExchange,
                unit_price_amount_cents: Some(2000),
            })
            .collect(),
        ordered_at: Clock::system().now(),
        placed_at: Clock::system().now(),
    }
}

fn failed(rma: &str, original: &str, units: &[i32], reason: FailureReason) -> ExchangeFailed {
    let item = |number: &i32| FailedItem {
        unit: id(original, *number),
        reason,
        detail: "it is so".to_owned(),
    };
    ExchangeFailed {
        merchant: "acme".parse().unwrap(),
        rma_identifier: rma.to_owned(),
        original_order_id: original.to_owned(),
        items: units.iter().map(item).collect(),
        failed_at: Clock::system().now(),
    }
}

fn undeliverable(rma: &str, original: &str, units: &[i32]) -> ExchangeUndeliverable {
    ExchangeUndeliverable {
        merchant: "acme".parse().unwrap(),
        rma_identifier: rma.to_owned(),
        original_order_id: original.to_owned(),
        items: units.iter().map(|number| id(original, *number)).collect(),
        reason: "responded with 503".to_owned(),
        at: Clock::system().now(),
    }
}

pub(super) async fn until_progress(app: &TestApp, rma: &str, progress: &[&str]) -> Value {
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
    app.publish_event(undeliverable(&rma, "A", &[1])).await;
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
    let messages = app.sent_messages().await;
    assert_eq!(messages.iter().filter(|it| *it == "rma.exchange_placed").count(), 2);
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
        "unit": unit("A", 1), "field": "ineligible", "quoted": null, "current": "already_exchanged",
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
        ("A", FailureReason::OutOfStock, true),
        ("B", FailureReason::AlreadyExchanged, false),
        ("C", FailureReason::Abandoned, false),
        ("D", FailureReason::PriceChanged, true),
    ] {
        app.store("acme", &order(name, 3)).await;
        let rma = app.start_return(&exchange_of(name, &[1, 2])).await;
        app.publish_event(failed(&rma, name, &[1, 2], cause)).await;
        until_progress(&app, &rma, &["failed", "failed"]).await;
        // Every further event comes too late.
        app.publish_event(failed(&rma, name, &[1, 2], cause)).await;
        app.publish_event(placed(&rma, name, &format!("EX-{name}"), &[1, 2])).await;
        let notes = format!(
            "SELECT count(*) AS n FROM timeline WHERE merchant = 'acme' AND rma_identifier = '{rma}'"
        );
        eventually("the late events are recorded", SOON, || async {
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

#[tokio::test]
async fn the_refund_type_follows_the_exchange_order() {
    let app = TestApp::start().await;
    app.store("acme", &order("A", 2)).await;
    let rma = app.start_return(&exchange_of("A", &[1, 2])).await;
    app.publish_event(failed(&rma, "A", &[2], FailureReason::PriceChanged)).await;
    let mut event = placed(&rma, "A", "EX-A", &[1]);
    event.items[0].refund_type = RefundType::UnevenExchange;
    event.items[0].unit_price_amount_cents = Some(2500);
    app.publish_event(event).await;
    until_progress(&app, &rma, &["placed", "failed"]).await;
    let last = app.arrivals("acme").await.pop().unwrap();
    let types: Vec<_> = [0, 1].map(|item| last.body["items"][item]["refund_type"].clone()).to_vec();
    assert_eq!(types, [json!("UNEVEN_EXCHANGE"), json!("REFUND")]);
    let financials = |item: usize| last.body["items"][item]["refund_financials"].clone();
    assert_eq!(financials(0)["service_refund_amount_cents"], 2165);
    assert_eq!(financials(1)["shopper_refund_amount_cents"], 2165);
    let (_, timeline) = app.get(&format!("/v1/returns/{rma}/timeline"), "acme").await;
    let entries = timeline["entries"].as_array().unwrap().iter();
    let reasons: Vec<_> = entries.map(|it| it["detail"]["items"][0]["reason"].clone()).collect();
    assert!(reasons.contains(&json!("price_changed")), "{timeline}");
}

#[tokio::test]
async fn an_undeliverable_exchange_is_visible_on_the_return_and_its_timeline() {
    let app = TestApp::start().await;
    app.store("acme", &order("A", 1)).await;
    let rma = app.start_return(&exchange_of("A", &[1])).await;
    app.publish_event(undeliverable(&rma, "A", &[1])).await;
    until_progress(&app, &rma, &["undeliverable"]).await;
    let (_, timeline) = app.get(&format!("/v1/returns/{rma}/timeline"), "acme").await;
    let last = timeline["entries"].as_array().unwrap().last().unwrap();
    assert_eq!(last["event"], "exchange undeliverable");
    assert_eq!(last["actor"], "exchange.undeliverable.v1");
    assert_eq!(last["detail"]["reason"], "responded with 503");
    assert_eq!(app.sent_messages().await, ["rma.created"]);
}

#[tokio::test]
async fn an_exchange_has_the_concept_of_the_line_then_of_the_order_then_of_the_merchant() {
    let app = TestApp::with(|acme| acme.settings.concept = Some("Acme".to_owned())).await;
    let mut confirmed = Vec::new();
    for (name, line, of_order) in
        [("A", Some("Line"), Some("Order")), ("B", None, Some("Order")), ("C", None, None)]
    {
        let mut order = order(name, 1);
        order.concept = of_order.map(str::to_owned);
        order.items[0].concept = line.map(str::to_owned);
        app.store("acme", &order).await;
        app.start_return(&exchange_of(name, &[1])).await;
        confirmed.push(name);
    }
    let events = app.events("exchange.return.confirmed.v1", confirmed.len()).await;
    let mut concepts: Vec<_> = events
        .iter()
        .map(|event| {
            let text = |value: &Value| value.as_str().unwrap().to_owned();
            (text(&event["original_order_id"]), text(&event["units"][0]["concept"]))
        })
        .collect();
    concepts.sort();
    let expected = [("A", "Line"), ("B", "Order"), ("C", "Acme")];
    assert_eq!(concepts, expected.map(|(order, it)| (order.to_owned(), it.to_owned())));
}
