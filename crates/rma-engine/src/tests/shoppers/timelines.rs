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

#[tokio::test]
async fn a_shopper_follows_a_review() {
    let app = start(|acme| {
        let rule =
            json!({ "id": "look", "then": { "review": { "within_days": 3, "then": "decline" } } });
        acme.settings.policy.rules = vec![serde_json::from_value(rule).unwrap()];
    })
    .await;
    app.store("acme", &adas_order("A", 4)).await;
    let own = proof(&app, "A", false);
    let rma = app.start_return(&refund_of("A", &[1])).await;
    let path = format!("/v1/returns/{rma}");
    let (_, shown) = get(&app, &path, &own).await;
    assert_eq!((&shown["status"], &shown["is_cancelable"]), (&json!("REQUESTED"), &json!(true)));
    let review = &shown["review"];
    assert_eq!((&review["rule"], review.get("decision")), (&json!("look"), None));
    assert!(review["due_at"].is_string() && review.get("then").is_none(), "{review}");
    let note = json!({ "note": "Worn items cannot be returned." });
    app.post(&format!("{path}/decline"), "acme", &note).await;
    let (_, shown) = get(&app, &path, &own).await;
    assert_eq!((&shown["status"], &shown["is_cancelable"]), (&json!("DECLINED"), &json!(false)));
    assert_eq!(
        (&shown["review"]["decision"], &shown["review"]["note"]),
        (&json!("decline"), &note["note"])
    );
    assert_eq!(steps(&app, &rma).await, [step("requested", None), step("declined", None)]);

    let approved = app.start_return(&refund_of("A", &[1])).await;
    let path = format!("/v1/returns/{approved}");
    app.post(&format!("{path}/approve"), "acme", &json!({ "note": "for the record" })).await;
    assert_eq!(steps(&app, &approved).await, [step("requested", None), step("approved", None)]);
    let (_, shown) = get(&app, &path, &own).await;
    assert_eq!(shown["review"].get("note"), None);
}

#[tokio::test]
async fn a_shopper_cancels_a_return_in_review() {
    let app = start(|acme| {
        let rule =
            json!({ "id": "look", "then": { "review": { "within_days": 3, "then": "approve" } } });
        acme.settings.policy.rules = vec![serde_json::from_value(rule).unwrap()];
    })
    .await;
    app.store("acme", &adas_order("A", 4)).await;
    let own = proof(&app, "A", false);
    let exchange =
        json!({ "resolution": "exchange", "variant": { "sku": "TEE-M", "title": "Tee, M" } });
    let mut body = json!({ "return_method": "mail-back", "units": [choice("A", 1, &exchange)] });
    body["units"][0]["comment"] = json!("Too tight");
    let (status, made) = post(&app, "/v1/returns", &own, &body).await;
    assert_eq!((status, &made["status"]), (StatusCode::CREATED, &json!("REQUESTED")), "{made}");
    assert_eq!(made["units"][0].get("comment"), None);
    let rma = made["rma_identifier"].as_str().unwrap();
    let (status, canceled) =
        post(&app, &format!("/v1/returns/{rma}/cancel"), &own, &json!({})).await;
    assert_eq!((status, &canceled["status"]), (StatusCode::OK, &json!("CANCELED")));
    assert_eq!(steps(&app, rma).await, [step("requested", None), step("canceled", None)]);
    assert_eq!(app.deadlines().await, 0);
    // The unit and the exchange of its order are free.
    let (status, again) = post(&app, "/v1/returns", &own, &body).await;
    assert_eq!(status, StatusCode::CREATED, "{again}");
    assert_eq!(app.sent_messages().await, Vec::<String>::new());
}
