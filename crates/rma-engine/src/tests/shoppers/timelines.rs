//! The steps of a return that its shopper sees.

use super::exchanging::placed;
use super::projecting::refunded;
use super::*;

async fn steps(app: &TestApp, rma: &str) -> Vec<(String, Value)> {
    let (status, page) =
        get(app, &format!("/v1/returns/{rma}/timeline"), &proof(app, "A", false)).await;
    assert_eq!(status, StatusCode::OK, "{page}");
    let step = |entry: &Value| {
        let names: Vec<_> = entry.as_object().unwrap().keys().map(String::as_str).collect();
        assert!(names.iter().all(|name| ["at", "step", "detail"].contains(name)), "{entry}");
        (entry["step"].as_str().unwrap().to_owned(), entry["detail"].clone())
    };
    page["entries"].as_array().unwrap().iter().map(step).collect()
}

fn step(name: &str, detail: Option<&str>) -> (String, Value) {
    (name.to_owned(), json!(detail))
}

#[tokio::test]
async fn a_shopper_follows_the_parcel_and_the_refund() {
    let app = start_with_order().await;
    let rma = app.start_return(&refund_of("A", &[1])).await;
    for (number, event) in
        ["label", "accepted", "in_transit", "in_transit", "delivered"].iter().enumerate()
    {
        let report = json!({
            "event_identifier": number.to_string(), "event": event, "rma_identifier": rma,
            "tracking_number": "1Z9", "label_url": "https://carrier.example/1",
            "detail": "for the carrier only",
        });
        let (status, response) = app.carrier(&report).await;
        assert_eq!(status, StatusCode::OK, "{response}");
    }
    let (_, shown) = get(&app, &format!("/v1/returns/{rma}"), &proof(&app, "A", false)).await;
    let unit = &shown["units"][0];
    let label = json!({ "url": "https://carrier.example/1", "kind": "printable" });
    assert_eq!((&unit["label"], &unit["tracking_number"]), (&label, &json!("1Z9")));
    assert_eq!(unit["package_tracking_status"], "DELIVERED");
    assert_eq!(shown["is_cancelable"], false);
    app.store("acme", &refunded(&adas_order("A", 4), "R-1", 1, Some(&rma))).await;
    let parcel = Some("1Z9");
    let expected = [
        step("requested", None),
        step("label_ready", parcel),
        step("dropped_off", parcel),
        step("in_transit", parcel),
        step("arrived", parcel),
        step("refunded", None),
    ];
    assert_eq!(steps(&app, &rma).await, expected);
}

#[tokio::test]
async fn a_shopper_sees_what_comes_instead_of_a_refund() {
    let app = start_with_order().await;
    let variant = json!({ "sku": "TEE-M", "title": "Tee, M", "unit_price_amount_cents": 2000 });
    let exchange = json!({ "resolution": "exchange", "variant": variant });
    let card = json!({ "resolution": "gift_card" });
    let body = json!({
        "return_method": "mail-back", "units": [choice("A", 1, &exchange), choice("A", 2, &card)],
    });
    let rma = app.start_return(&body).await;
    app.publish_event(placed(&rma, "A", "X-77", &[1, 2])).await;
    eventually("the exchange order is placed", SOON, || async {
        (app.show(&rma).await["units"][1]["exchange_status"] == "placed").then_some(())
    })
    .await;
    let order = Some("X-77");
    let expected =
        [step("requested", None), step("exchange_placed", order), step("gift_card_issued", order)];
    assert_eq!(steps(&app, &rma).await, expected);
}

#[tokio::test]
async fn kept_and_canceled_units_are_steps() {
    let app = start(|acme| {
        let offer = acme.settings.returns.methods[0].clone();
        let method = domain::returns::ReturnMethod::CustomerKeep;
        let keep = domain::merchant::MethodOffer { method, ..offer };
        acme.settings.returns.methods.push(keep);
        let rule = json!({ "id": "keep", "then": { "keep": { "up_to_cents": 5_000 } } });
        acme.settings.policy.rules = vec![serde_json::from_value(rule).unwrap()];
    })
    .await;
    app.store("acme", &adas_order("A", 4)).await;
    let mut kept = refund_of("A", &[1]);
    kept["return_method"] = json!("customer-keep");
    let kept = app.start_return(&kept).await;
    assert_eq!(steps(&app, &kept).await, [step("requested", None), step("keep", None)]);
    let rma = app.start_return(&refund_of("A", &[2])).await;
    app.post(&format!("/v1/returns/{rma}/cancel"), "acme", &json!({ "reason": "secret" })).await;
    assert_eq!(steps(&app, &rma).await, [step("requested", None), step("canceled", None)]);
}
