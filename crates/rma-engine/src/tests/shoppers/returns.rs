//! Returns that shoppers start, see and cancel.

use super::*;

#[tokio::test]
async fn a_shopper_quotes_starts_shows_and_cancels_a_return() {
    let app = start_with_order().await;
    let own = proof(&app, "A", false);
    let mut body = refund_of("A", &[1, 2]);
    let (status, quote) = post(&app, "/v1/returns/quote", &own, &body).await;
    assert_eq!(status, StatusCode::OK, "{quote}");
    assert_eq!(quote["shopper_refund_amount_cents"], 2 * 2165);
    body["quote"] = quote["quote"].clone();
    let (status, made) = post(&app, "/v1/returns", &own, &body).await;
    assert_eq!(status, StatusCode::CREATED, "{made}");
    let rma = made["rma_identifier"].as_str().unwrap().to_owned();
    let (status, shown) = get(&app, &format!("/v1/returns/{rma}"), &own).await;
    assert_eq!((status, &shown), (StatusCode::OK, &made));
    assert_eq!((&shown["currency"], &shown["is_gift"]), (&quote["currency"], &json!(false)));
    assert_eq!(shown["is_cancelable"], true);
    let unit = &shown["units"][0];
    assert_eq!((&unit["title"], &unit["is_refunded"]), (&json!("Tee, L"), &json!(false)));
    assert_eq!(unit["image_url"], "https://shop.example/tee.jpg");
    assert_eq!(unit["refund_financials"]["shopper_refund_amount_cents"], 2165);
    for internal in ["merchant", "managed_receiving", "giftee_email", "receiving_closed_at"] {
        assert!(shown.get(internal).is_none(), "{internal}");
    }
    for internal in ["refunded_by", "failed_before_scan", "receiving_status", "is_damaged"] {
        assert!(unit.get(internal).is_none(), "{internal}");
    }

    let cancel = format!("/v1/returns/{rma}/cancel");
    let (status, canceled) = post(&app, &cancel, &own, &json!({})).await;
    assert_eq!((status, &canceled["status"]), (StatusCode::OK, &json!("CANCELED")));
    assert_eq!((&canceled["is_cancelable"], canceled.get("merchant")), (&json!(false), None));
    let (_, timeline) = app.get(&format!("/v1/returns/{rma}/timeline"), "acme").await;
    let actors = timeline["entries"].as_array().unwrap().iter().map(|it| &it["actor"]);
    assert!(actors.eq(["shopper", "shopper"]), "{timeline}");
    assert_eq!(app.sent_messages().await, ["rma.created", "rma.canceled"]);
}

#[tokio::test]
async fn the_idempotency_key_of_a_shopper_makes_one_return() {
    let app = start_with_order().await;
    let own = proof(&app, "A", false);
    let body = refund_of("A", &[1]);
    let key = [("idempotency-key", "page-1")];
    let request = (Method::POST, "/v1/returns");
    let first = send_from_portal(&app, request.clone(), &own, &key, Some(&body)).await;
    assert_eq!(first.0, StatusCode::CREATED, "{}", first.1);
    assert_eq!(send_from_portal(&app, request.clone(), &own, &key, Some(&body)).await, first);
    // The stored response is the shopper's: another proof does not open it.
    let other =
        send_from_portal(&app, request.clone(), &proof(&app, "B", false), &key, Some(&body)).await;
    check_refusal(&other, "proof_required");
    let another_body = refund_of("A", &[2]);
    let (status, _) = send_from_portal(&app, request, &own, &key, Some(&another_body)).await;
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY);
    // Staff with the same key has a request of its own.
    let (status, _) =
        app.send_as(Method::POST, "/v1/returns", "acme", &key, Some(&another_body)).await;
    assert_eq!(status, StatusCode::CREATED);
    assert_eq!(app.number("SELECT count(*) AS n FROM returns WHERE merchant = 'acme'").await, 2);
}

#[tokio::test]
async fn several_orders_of_a_shopper_go_into_one_return() {
    let app = start_with_order().await;
    app.store("acme", &adas_order("B", 1)).await;
    let mut body = refund_of("A", &[1]);
    let of_b = choice("B", 1, &json!({ "resolution": "refund" }));
    body["units"].as_array_mut().unwrap().push(of_b);
    let both = format!("{},{}", proof(&app, "A", false), proof(&app, "B", false));
    let (status, made) = post(&app, "/v1/returns", &both, &body).await;
    assert_eq!(status, StatusCode::CREATED, "{made}");
    let path = format!("/v1/returns/{}", made["rma_identifier"].as_str().unwrap());
    // One of the orders is enough to see the return.
    for order in ["A", "B"] {
        let (status, shown) = get(&app, &path, &proof(&app, order, false)).await;
        assert_eq!(status, StatusCode::OK);
        assert_eq!(shown["units"].as_array().unwrap().len(), 2);
    }
}

#[tokio::test]
async fn a_withdrawal_is_a_reason_where_the_merchant_offers_it() {
    let app = start_with_order().await;
    let own = proof(&app, "A", false);
    let mut body = refund_of("A", &[1]);
    body["units"][0]["return_reason"] = json!("withdrawal");
    body["withdrawal"] = json!({ "name": "Mia Moreau", "email": "mia@mail.example" });
    let (status, made) = post(&app, "/v1/returns", &own, &body).await;
    assert_eq!(status, StatusCode::CREATED, "{made}");
    assert_eq!(made["units"][0]["return_reason"], "withdrawal");
    let message = &app.arrivals("acme").await[0].body;
    assert_eq!(message["items"][0]["return_reason"], "withdrawal");
    assert!(message.get("withdrawal").is_none(), "the message is that of the contract: {message}");
    let rma = made["rma_identifier"].as_str().unwrap();
    let path = format!("/v1/returns/{rma}");
    let (_, shown) = get(&app, &path, &own).await;
    assert_eq!(
        (&shown["withdrawal"], &made["withdrawal"]),
        (&body["withdrawal"], &body["withdrawal"])
    );
    assert_eq!(app.show(rma).await["withdrawal"], body["withdrawal"]);
    let variant = json!({ "sku": "TEE-M", "title": "Tee, M" });
    let exchange = json!({ "resolution": "exchange", "variant": variant });
    let mut exchanged = choice("A", 2, &exchange);
    exchanged["return_reason"] = json!("withdrawal");
    let exchange = json!({ "return_method": "mail-back", "units": [exchanged] });
    let (status, refusal) = post(&app, "/v1/returns", &own, &exchange).await;
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY);
    assert_eq!(refusal["errors"][0]["field"], "$.units[0].resolution");

    let strict = start(|_| {}).await;
    strict.store("acme", &adas_order("A", 1)).await;
    let own = proof(&strict, "A", false);
    let (status, refusal) = post(&strict, "/v1/returns", &own, &body).await;
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY);
    assert_eq!(refusal["errors"][0]["field"], "$.units[0].return_reason");
}

#[tokio::test]
async fn a_shopper_sees_where_a_return_goes_and_withdraws_from_all_units_at_once() {
    let rules = json!({ "rules": [
        { "id": "outlet", "when": { "line_tags": ["outlet"] }, "then": { "return_to": "west" } },
    ] });
    let app = start(|acme| {
        acme.settings.policy = serde_json::from_value(rules).unwrap();
        acme.settings.appearance.withdrawal = true;
        acme.warehouses = destinations::warehouses();
    })
    .await;
    let mut outlet = adas_order("A", 2);
    outlet.items[0].tags = vec!["outlet".to_owned()];
    app.store("acme", &outlet).await;
    app.store("acme", &adas_order("B", 2)).await;
    let both = format!("{},{}", proof(&app, "A", false), proof(&app, "B", false));
    let (status, made) = post(&app, "/v1/returns", &both, &refund_of("A", &[1])).await;
    assert_eq!(status, StatusCode::CREATED, "{made}");
    let address = json!(["Dock 7", "7 Dock Street", "Elko, NV 89501"]);
    assert_eq!(made["return_to"]["address_lines"], address);
    // A refusal must not stop a withdrawal.
    let mut body = refund_of("A", &[2]);
    let of_b = choice("B", 1, &json!({ "resolution": "refund" }));
    body["units"].as_array_mut().unwrap().push(of_b);
    let (status, refused) = post(&app, "/v1/returns", &both, &body).await;
    assert_eq!(status, StatusCode::CONFLICT, "{refused}");
    for unit in body["units"].as_array_mut().unwrap() {
        unit["return_reason"] = json!("withdrawal");
    }
    let (status, made) = post(&app, "/v1/returns", &both, &body).await;
    assert_eq!(status, StatusCode::CREATED, "{made}");
    assert_eq!(made["return_to"]["warehouse"], "west");
}

#[tokio::test]
async fn a_shopper_reads_the_units_of_an_order_in_pages() {
    let app = start(|_| {}).await;
    let mut order = adas_order("A", 450);
    order.items[0].image_url = Some(format!("https://shop.example/{}", "x".repeat(5_000)));
    app.store("acme", &order).await;
    let own = proof(&app, "A", false);
    let mut numbers = Vec::new();
    let mut next = Some(String::new());
    while let Some(after) = next {
        let path = format!("/v1/orders/A/returnable?limit=500{after}");
        let (status, page) = get(&app, &path, &own).await;
        assert_eq!(status, StatusCode::OK, "{page}");
        // 450 units have more than 2 MiB, so the page ends before its limit.
        assert!(page.to_string().len() < 2 * 1024 * 1024);
        let units = page["units"].as_array().unwrap();
        numbers.extend(units.iter().map(|unit| unit["unit"].as_i64().unwrap()));
        next = page["next"].as_str().map(|next| format!("&after={next}"));
    }
    assert!(numbers.into_iter().eq(1..=450));
    app.store("acme", &adas_order("B", 201)).await;
    let (_, page) = get(&app, "/v1/orders/B/returnable", &proof(&app, "B", false)).await;
    let units = page["units"].as_array().unwrap().len();
    assert_eq!((units, &page["next"]), (200, &json!("200")));
    for limit in ["0", "501", "many"] {
        let (status, _) = get(&app, &format!("/v1/orders/A/returnable?limit={limit}"), &own).await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{limit}");
    }
    // Staff gets all units unless it wants pages.
    let (_, all) = app.get("/v1/orders/A/returnable", "acme").await;
    assert_eq!((all["units"].as_array().unwrap().len(), all.get("next")), (450, None));
    let (_, page) = app.get("/v1/orders/A/returnable?limit=2&after=448", "acme").await;
    assert_eq!((page["units"].as_array().unwrap().len(), page.get("next")), (2, None));
}
