//! Quotes, and returns with an outdated quote.

use domain::returns::GiftCardOffer;

use super::projecting::{order, refunded};
use super::*;

pub(super) async fn quote(app: &TestApp, body: &Value) -> Value {
    let (status, quote) = app.post("/v1/returns/quote", "acme", body).await;
    assert_eq!(status, StatusCode::OK, "{quote}");
    quote
}

#[tokio::test]
async fn a_stale_quote_is_rejected_with_its_changes() {
    let app = TestApp::start().await;
    let order = order("A", 2);
    app.store("acme", &order).await;
    let mut body = refund_of("A", &[1, 2]);
    body["quote"] = quote(&app, &body).await["quote"].clone();
    app.store("acme", &refunded(&order, "R1", 1, None)).await;
    let (status, refusal) = app.post("/v1/returns", "acme", &body).await;
    assert_eq!(status, StatusCode::CONFLICT);
    let change = json!({
        "unit": unit("A", 1), "field": "ineligible", "quoted": null, "current": "already_refunded",
    });
    assert_eq!(refusal["changes"], json!([change]));
    assert_eq!(refusal["quote"]["possible"], false);

    let mut body = refund_of("A", &[2]);
    body["quote"] = quote(&app, &body).await["quote"].clone();
    app.change_acme(2, |acme| acme.settings.returns.methods[0].shipping_cost_cents = 300).await;
    eventually("the price is known", SOON, || async {
        let quote = quote(&app, &refund_of("A", &[2])).await;
        (quote["return_shipping_cost_cents"] == 300).then_some(())
    })
    .await;
    let (status, refusal) = app.post("/v1/returns", "acme", &body).await;
    assert_eq!(status, StatusCode::CONFLICT);
    let change = json!({ "field": "return_shipping_cost_cents", "quoted": 0, "current": 300 });
    assert_eq!(refusal["changes"], json!([change]));
    body["quote"] = refusal["quote"]["quote"].clone();
    app.start_return(&body).await;
    assert_eq!(app.sent_messages().await, ["rma.created"]);
}

#[tokio::test]
async fn costs_and_gift_cards_apply_in_the_merchants_currency_only() {
    let app = TestApp::with(|acme| {
        acme.settings.returns.methods[0].shipping_cost_cents = 595;
        let sku = "GIFT".to_owned();
        let bonus_credit_amount_cents = 500;
        acme.settings.returns.gift_card = Some(GiftCardOffer { sku, bonus_credit_amount_cents });
    })
    .await;
    let mut abroad = order("A", 2);
    abroad.currency = serde_json::from_value(json!("JPY")).unwrap();
    app.store("acme", &abroad).await;
    let (_, shown) = app.get("/v1/orders/A/returnable", "acme").await;
    assert_eq!(shown["methods"][0]["shipping_cost_cents"], 0);
    assert_eq!(shown["gift_card"]["bonus_credit_amount_cents"], 0);
    let refund = choice("A", 1, &json!({ "resolution": "refund" }));
    let card = choice("A", 2, &json!({ "resolution": "gift_card" }));
    let mut body = json!({ "return_method": "mail-back", "units": [refund, card] });
    let quoted = quote(&app, &body).await;
    assert_eq!(
        (&quoted["currency"], &quoted["return_shipping_cost_cents"]),
        (&json!("JPY"), &json!(0))
    );
    body["quote"] = quoted["quote"].clone();
    app.start_return(&body).await;
    assert_eq!(app.arrivals("acme").await[0].body["return_shipping_cost_cents"], 0);
    let confirmed = app.events("exchange.return.confirmed.v1", 1).await.remove(0);
    assert_eq!(confirmed["gift_card"]["bonus_credit_amount_cents"], 0);
}

#[tokio::test]
async fn a_heavy_unit_cannot_use_express_returns() {
    let app = TestApp::with(|acme| acme.settings.express_max_weight = Some(2.5)).await;
    for (name, weight) in [("A", Some(2.6)), ("B", Some(2.5)), ("C", None)] {
        let mut order = order(name, 1);
        order.items[0].weight = weight;
        app.store("acme", &order).await;
    }
    let unavailable = async |name: &str| {
        let (_, shown) = app.get(&format!("/v1/orders/{name}/returnable"), "acme").await;
        assert_eq!(shown["units"][0]["returnable"], true);
        shown["units"][0]["unavailable_methods"].clone()
    };
    let detail = "the unit is heavier than 2.5: choose another return method";
    let too_heavy = json!({ "code": "too_heavy_for_express", "detail": detail });
    let method = json!({
        "method": "express-returns", "code": "too_heavy_for_express", "detail": detail,
    });
    assert_eq!(unavailable("A").await, json!([method]));
    assert_eq!((unavailable("B").await, unavailable("C").await), (Value::Null, Value::Null));
    let express = |name: &str| {
        let mut body = refund_of(name, &[1]);
        body["return_method"] = json!("express-returns");
        body
    };
    assert_eq!(quote(&app, &express("A")).await["units"][0]["ineligible"], too_heavy);
    let (status, refusal) = app.post("/v1/returns", "acme", &express("A")).await;
    assert_eq!(status, StatusCode::CONFLICT);
    assert_eq!(refusal["ineligible"][0]["code"], "too_heavy_for_express");
    app.start_return(&refund_of("A", &[1])).await;
    app.start_return(&express("B")).await;
    app.start_return(&express("C")).await;
}
