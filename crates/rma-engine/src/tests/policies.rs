//! Rules of merchants decide about lists, quotes and returns.

use std::collections::HashMap;
use std::sync::mpsc;

use domain::access::MerchantId;
use domain::merchant::{GiftCardOffer, MethodOffer, ReturnMethod};
use tokio::sync::oneshot;

use super::projecting::order;
use super::quoting::quote;
use super::*;
use crate::policy_previews::{Previews, load, order_sizes, parts};
use crate::store::search::{Search, search};

/// The service, with the rules of acme, which offers all methods and a gift card.
pub(super) async fn app_with(policy: Value) -> TestApp {
    TestApp::with(|acme| adjust(acme, policy)).await
}

pub(super) fn adjust(acme: &mut Merchant, policy: Value) {
    let returns = &mut acme.settings.returns;
    returns.methods[0].shipping_cost_cents = 700;
    let method = ReturnMethod::CustomerKeep;
    returns.methods.push(MethodOffer { method, shipping_cost_cents: 0 });
    let sku = "GIFT".to_owned();
    returns.gift_card = Some(GiftCardOffer { sku, bonus_credit_amount_cents: 500 });
    acme.settings.policy = serde_json::from_value(policy).unwrap();
}

#[tokio::test]
async fn a_list_a_quote_and_a_return_name_the_same_rule() {
    let app = app_with(json!({ "rules": [
        { "id": "in-store", "text": { "en": "Bring it to a store." }, "when": { "line_tags": ["bulky"] },
          "then": { "methods": ["express-returns"], "costs": [{ "shipping_cost_cents": 250 }] } },
        { "id": "small", "then": { "keep": { "up_to_cents": 2165 } } },
    ] }))
    .await;
    let mut bulky = order("A", 1);
    bulky.items[0].tags = vec!["Bulky".to_owned()];
    app.store("acme", &bulky).await;
    app.store("acme", &order("B", 2)).await;

    let (_, shown) = app.get("/v1/orders/A/returnable", "acme").await;
    let unit = &shown["units"][0];
    let unavailable = json!([
        { "method": "mail-back", "code": "method_not_offered", "rule": "in-store",
          "detail": "the return method mail-back is not offered for this unit" },
        { "method": "customer-keep", "code": "method_not_offered", "rule": "in-store",
          "detail": "the return method customer-keep is not offered for this unit" },
    ]);
    assert_eq!((&unit["returnable"], &unit["unavailable_methods"]), (&json!(true), &unavailable));
    let express = &unit["choices"][0]["options"][1];
    assert_eq!(
        *express,
        json!({ "outcome": "refund", "method": "express-returns", "return_shipping_cost_cents": 250,
                "cost_rule": "in-store" })
    );
    let mut body = refund_of("A", &[1]);
    let quoted = quote(&app, &body).await;
    assert_eq!(
        (&quoted["possible"], &quoted["units"][0]["ineligible"]["rule"]),
        (&json!(false), &json!("in-store"))
    );
    let (status, refusal) = app.post("/v1/returns", "acme", &body).await;
    assert_eq!(status, StatusCode::CONFLICT);
    assert_eq!(refusal["ineligible"][0]["rule"], "in-store");
    body["return_method"] = json!("express-returns");
    let quoted = quote(&app, &body).await;
    assert_eq!(
        (&quoted["return_shipping_cost_cents"], &quoted["cost_rule"]),
        (&json!(250), &json!("in-store"))
    );
    let rma = app.show(&app.start_return(&body).await).await;
    assert_eq!(
        (&rma["return_shipping_cost_cents"], &rma["cost_rule"]),
        (&json!(250), &json!("in-store"))
    );

    // One unit can be kept; both together cost too much.
    let mut kept = refund_of("B", &[1, 2]);
    kept["return_method"] = json!("customer-keep");
    let (_, refusal) = app.post("/v1/returns", "acme", &kept).await;
    assert_eq!(refusal["ineligible"][1]["code"], "keep_not_allowed");
    assert_eq!(refusal["ineligible"][1]["rule"], "small");
    kept["override"] = json!({ "by": "Ann", "reason": "a good customer" });
    let quoted = quote(&app, &kept).await;
    assert_eq!(quoted["units"][0]["overridden_rule"], "small");
    let rma = app.start_return(&kept).await;
    let (_, timeline) = app.get(&format!("/v1/returns/{rma}/timeline"), "acme").await;
    assert_eq!(timeline["entries"][0]["detail"]["override"]["units"][1]["rule"], "small");

    let path = format!("/v1/portals/{}", app.service.own("acme"));
    let token = app.issuer.token(None, "shopper");
    let (_, portal) = app.send(Method::GET, &path, &token, &[], None).await;
    assert_eq!(portal["rule_texts"], json!({ "in-store": { "en": "Bring it to a store." } }));
}

#[tokio::test]
async fn returns_of_a_shopper_are_counted() {
    let app = app_with(json!({ "rules": [{ "id": "often", "then": { "returnable": false },
        "when": { "returns_of_shopper": { "days": 30, "min": 2 } } }] }))
    .await;
    let mut orders = ["A", "B", "C"].map(|name| order(name, 2));
    for order in &mut orders {
        order.customer.email = Some("Ada@Shop.example".to_owned());
        app.store("acme", order).await;
    }
    let first = app.start_return(&refund_of("A", &[1])).await;
    app.start_return(&refund_of("B", &[1])).await;
    let is_refused = async || {
        let (_, shown) = app.get("/v1/orders/C/returnable", "acme").await;
        let listed = shown["units"][0]["ineligible"]["rule"].clone();
        let quoted =
            quote(&app, &refund_of("C", &[1])).await["units"][0]["ineligible"]["rule"].clone();
        assert_eq!(listed, quoted);
        listed == "often"
    };
    assert!(is_refused().await);
    let (status, _) = app.post("/v1/returns", "acme", &refund_of("C", &[1])).await;
    assert_eq!(status, StatusCode::CONFLICT);
    // A canceled return does not count.
    let (status, _) = app.post(&format!("/v1/returns/{first}/cancel"), "acme", &json!({})).await;
    assert_eq!(status, StatusCode::OK);
    assert!(!is_refused().await);
    app.start_return(&refund_of("C", &[1])).await;
}

/// A merchant whose rule gives bonuses, and a return of three units: a gift card and an exchange by the rule, and a
/// gift card for another reason.
async fn app_with_bonuses() -> (TestApp, Value) {
    let app = app_with(json!({ "rules": [
        { "id": "plus", "when": { "reasons": ["TOO_SMALL"] },
          "then": { "gift_card_bonus_percent": 10, "exchange_bonus_percent": 5 } },
    ] }))
    .await;
    app.store("acme", &order("A", 3)).await;
    let card = json!({ "resolution": "gift_card" });
    let variant = json!({ "sku": "TEE-M", "title": "Tee, M", "unit_price_amount_cents": 3000 });
    let mut other = choice("A", 2, &card);
    other["return_reason"] = json!("OTHER");
    let exchange = choice("A", 3, &json!({ "resolution": "exchange", "variant": variant }));
    let units = [choice("A", 1, &card), other, exchange];
    (app, json!({ "return_method": "mail-back", "units": units }))
}

#[tokio::test]
async fn rules_give_a_bonus_in_per_cent_of_the_amount_paid() {
    let (app, body) = app_with_bonuses().await;
    let quoted = quote(&app, &body).await;
    let bonus = |unit: usize| quoted["units"][unit]["bonus_amount_cents"].clone();
    assert_eq!([bonus(0), bonus(1), bonus(2)], [json!(216), Value::Null, json!(108)]);
    app.start_return(&body).await;
    let confirmed = app.events("exchange.return.confirmed.v1", 1).await.remove(0);
    // The unit without a bonus by a rule has that of the settings.
    assert_eq!(confirmed["gift_card"]["bonus_credit_amount_cents"], 716);
    assert_eq!(confirmed["units"][2]["bonus_amount_cents"], 108);
}

#[tokio::test]
async fn a_return_with_another_bonus_than_quoted_is_rejected() {
    let (app, mut body) = app_with_bonuses().await;
    let quoted = quote(&app, &body).await;
    assert_eq!(quoted["gift_card_bonus_amount_cents"], 500);
    app.change_acme(2, |acme| {
        adjust(acme, json!({}));
        let card = acme.settings.returns.gift_card.as_mut().unwrap();
        card.bonus_credit_amount_cents = 100;
    })
    .await;
    eventually("the bonus is known", SOON, || async {
        let quoted = quote(&app, &body).await;
        (quoted["gift_card_bonus_amount_cents"] == 100).then_some(())
    })
    .await;
    body["quote"] = quoted["quote"].clone();
    let (status, refusal) = app.post("/v1/returns", "acme", &body).await;
    assert_eq!(status, StatusCode::CONFLICT, "{refusal}");
    let changes = json!([
        { "field": "gift_card_bonus_amount_cents", "quoted": 500, "current": 100 },
        { "unit": unit("A", 1), "field": "bonus_amount_cents", "quoted": 216, "current": 0 },
        { "unit": unit("A", 3), "field": "bonus_amount_cents", "quoted": 108, "current": 0 },
    ]);
    assert_eq!(refusal["changes"], changes);
    body["quote"] = refusal["quote"]["quote"].clone();
    app.start_return(&body).await;
    let confirmed = app.events("exchange.return.confirmed.v1", 1).await.remove(0);
    assert_eq!(confirmed["gift_card"]["bonus_credit_amount_cents"], 100);
}

#[tokio::test]
async fn a_quote_names_the_bonus_that_the_exchange_has() {
    let rules = json!({ "rules": [{ "id": "plus", "then": { "exchange_bonus_percent": 50 } }] });
    let app = app_with(rules).await;
    app.store("acme", &order("A", 1)).await;
    for (price, bonus) in [(2000, Value::Null), (300, json!(300)), (3000, json!(1082))] {
        let variant = json!({ "sku": "TEE", "title": "Tee", "unit_price_amount_cents": price });
        let exchange = choice("A", 1, &json!({ "resolution": "exchange", "variant": variant }));
        let body = json!({ "return_method": "mail-back", "units": [exchange] });
        assert_eq!(quote(&app, &body).await["units"][0]["bonus_amount_cents"], bonus, "{price}");
    }
}

#[tokio::test]
async fn a_preview_says_what_a_draft_would_have_decided() {
    let app = app_with(json!({ "rules": [{ "id": "cheap", "then": { "costs": [{ "shipping_cost_cents": 100 }] } }] })).await;
    for name in ["A", "B"] {
        app.store("acme", &order(name, 2)).await;
    }
    let first = app.start_return(&refund_of("A", &[1])).await;
    app.start_return(&refund_of("B", &[1])).await;
    let draft = json!({ "rules": [
        { "id": "sku", "when": { "returns_of_shopper": { "days": 5, "max": 0 } }, "then": { "returnable": false } },
        { "id": "look", "then": { "costs": [{ "shipping_cost_cents": 300 }], "review": { "within_days": 2, "then": "approve" } } },
    ] });
    let preview = async |body: &Value| app.post("/v1/policies/preview", "acme", body).await;
    let (status, all) = preview(&json!({ "policy": draft })).await;
    assert_eq!(status, StatusCode::OK, "{all}");
    assert_eq!(
        (&all["returns"], &all["changed"], &all["next"]),
        (&json!(2), &json!(2), &Value::Null)
    );
    let current =
        json!({ "refused": 0, "reviewed": 0, "return_shipping_cost_cents": { "USD": 200 } });
    assert_eq!(all["current"], current);
    // The first return of a shopper would have been refused. The orders have one shopper.
    let figures =
        json!({ "refused": 1, "reviewed": 1, "return_shipping_cost_cents": { "USD": 300 } });
    assert_eq!(all["draft"], figures);
    let changed = &all["changes"][1];
    assert_eq!(changed["rma_identifier"], json!(first));
    assert_eq!(
        (&changed["current"]["cost_rule"], &changed["draft"]["ineligible"]["rule"]),
        (&json!("cheap"), &json!("sku"))
    );
    assert_eq!(all["changes"][0]["draft"]["review_rule"], "look");

    let (_, one) = preview(&json!({ "policy": { "rules": [] }, "order_identifier": "A" })).await;
    let cost = |part: &str| one[part]["units"][1]["choices"][0]["options"][0]["cost_rule"].clone();
    assert_eq!([cost("current"), cost("draft")], [json!("cheap"), Value::Null]);
    let (status, refusal) =
        preview(&json!({ "policy": { "rules": [{ "id": "x", "when": { "reasons": ["NO"] }, "then": {} }] } })).await;
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY);
    let fields = [&refusal["errors"][0]["field"], &refusal["errors"][1]["field"]];
    assert_eq!(fields, ["$.policy.rules[0].then", "$.policy.rules[0].when.reasons[0]"]);
    let (status, _) = preview(&json!({ "policy": {}, "order_identifier": "none" })).await;
    assert_eq!(status, StatusCode::NOT_FOUND);
}

/// Copies the return of order A, and its order, `copies` times; each a second older than the one before.
fn copies_of(rma: &str, copies: i64) -> String {
    format!(
        "INSERT INTO orders SELECT merchant, 'C-' || n, updated_at, sequence, \
             replace(document, '\"A\"', '\"C-' || n || '\"'), shipped_units, stored_at \
         FROM orders, generate_series(1, {copies}) AS n WHERE merchant = 'acme' AND identifier = 'A'; \
         INSERT INTO returns SELECT merchant, 'R-' || n, status, customer_email, other_email_sha256, \
             replace(replace(jsonb_set(document::jsonb, '{{created_at}}', \
                 to_jsonb(created_at - n * interval '1 second'))::text, \
                 '\"A\"', '\"C-' || n || '\"'), '{rma}', 'R-' || n), \
             created_at - n * interval '1 second', updated_at \
         FROM returns, generate_series(1, {copies}) AS n \
         WHERE merchant = 'acme' AND rma_identifier = '{rma}'"
    )
}

#[tokio::test]
async fn a_long_preview_continues_where_it_ended() {
    let app = app_with(json!({})).await;
    app.store("acme", &order("A", 1)).await;
    let rma = app.start_return(&refund_of("A", &[1])).await;
    // Each response is about 2,000 returns at most.
    let copies = 2_500;
    app.change_rows(&copies_of(&rma, copies)).await;
    let mut body =
        json!({ "policy": { "rules": [{ "id": "no", "then": { "returnable": false } }] } });
    let mut figures = (0, 0, 0);
    let mut responses = 0;
    loop {
        let (status, page) = app.post("/v1/policies/preview", "acme", &body).await;
        assert_eq!(status, StatusCode::OK, "{page}");
        let number = |path: &str| page.pointer(path).and_then(Value::as_i64).unwrap();
        assert!(number("/returns") <= 2_000 && page["changes"].as_array().unwrap().len() <= 100);
        figures.0 += number("/returns");
        figures.1 += number("/changed");
        figures.2 += number("/draft/refused");
        responses += 1;
        let Some(next) = page.get("next") else { break };
        body["after"] = next.clone();
    }
    assert_eq!(figures, (copies + 1, copies + 1, copies + 1));
    assert!(responses > 1, "{responses} responses");
}

#[test]
fn a_merchant_has_one_preview_at_a_time() {
    let previews = Previews::default();
    let [acme, rival] = ["acme", "rival"].map(|name| name.parse().unwrap());
    let first = previews.start(&acme).unwrap();
    assert!(previews.start(&acme).is_err() && previews.start(&rival).is_ok());
    drop(first);
    assert!(previews.start(&acme).is_ok());
}

#[tokio::test]
async fn a_preview_has_its_place_until_its_thread_is_done() {
    let previews = Previews::default();
    let acme = "acme".parse().unwrap();
    let preview = previews.start(&acme).unwrap();
    let (started, has_started) = oneshot::channel();
    let (release, released) = mpsc::channel::<()>();
    let (noticed, was_abandoned) = oneshot::channel();
    let mut request = Box::pin(async move {
        let work = preview.run(move |place| {
            started.send(place.is_abandoned()).unwrap();
            released.recv().unwrap();
            noticed.send(place.is_abandoned() && place.is_over()).unwrap();
        });
        work.await.unwrap();
    });
    tokio::select! {
        () = &mut request => panic!("the preview ended"),
        is_abandoned = has_started => assert!(!is_abandoned.unwrap()),
    }
    // The client leaves, or the request takes too long.
    drop(request);
    assert!(previews.start(&acme).is_err());
    release.send(()).unwrap();
    assert!(was_abandoned.await.unwrap());
    eventually("the place is free", SOON, async || previews.start(&acme).is_ok().then_some(()))
        .await;
}

#[tokio::test]
async fn a_preview_loads_orders_in_parts_and_keeps_the_returned_lines() {
    let app = app_with(json!({})).await;
    let mut large = order("A", 1);
    let mut other = large.items[0].clone();
    other.identifier = "other".to_owned();
    other.tags = (0..250).map(|tag| format!("tag-{tag}")).collect();
    large.items.push(other);
    app.store("acme", &large).await;
    app.start_return(&refund_of("A", &[1])).await;
    let merchant: MerchantId = app.service.own("acme").parse().unwrap();
    let wanted = Search { merchant: Some(merchant.clone()), ..Search::default() };
    let found = search(&mut app.pool.get().await.unwrap(), &wanted, 10).await.unwrap();
    let returns: Vec<_> = found.returns.into_iter().map(|it| it.rma).collect();

    let previews = Previews::default();
    let preview = previews.start(&merchant).unwrap();
    let sizes = order_sizes(&app.pool, &merchant, &returns).await.unwrap();
    let loaded = load(&app.pool, &previews, &preview, &merchant, &returns, &sizes).await.unwrap();
    let lines = loaded.units.orders["A"].order.items.iter().map(|line| line.identifier.as_str());
    assert_eq!(lines.collect::<Vec<_>>(), [large.items[0].identifier.as_str()]);
    assert!(loaded.units.unit(&returns[0].units[0].id).is_some());
    assert_eq!(previews.memory.used_bytes(), sizes["A"].div_ceil(1024) * 1024);
    drop(loaded);
    assert_eq!(previews.memory.used_bytes(), 0);

    let three = vec![returns[0].clone(); 3];
    let lengths = |megabytes: usize| {
        let sizes = HashMap::from([("A".to_owned(), megabytes << 20)]);
        parts(&three, &sizes).iter().map(|part| part.len()).collect::<Vec<_>>()
    };
    assert_eq!([lengths(1), lengths(2), lengths(5)], [vec![3], vec![2, 1], vec![1, 1, 1]]);
}
