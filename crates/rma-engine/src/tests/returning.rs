//! Creating returns.

use domain::returns::{GiftCardOffer, ReturnMethod};
use futures_util::future::join_all;

use super::projecting::{later, order};
use super::quoting::quote;
use super::*;

#[tokio::test]
async fn a_return_is_quoted_created_and_announced() {
    let app = TestApp::with(|acme| {
        acme.settings.returns.methods[0].shipping_cost_cents = 595;
    })
    .await;
    app.store("acme", &order("A", 3)).await;
    let mut body = refund_of("A", &[1, 3]);
    let quote = quote(&app, &body).await;
    assert_eq!(quote["possible"], true);
    assert_eq!(quote["estimated_refund_amount_cents"], 2 * 2165);
    assert_eq!(quote["shopper_refund_amount_cents"], 2 * 2165);
    assert_eq!(quote["return_shipping_cost_cents"], 595);
    body["quote"] = quote["quote"].clone();
    let (status, made) = app.post("/v1/returns", "acme", &body).await;
    assert_eq!(status, StatusCode::CREATED, "{made}");
    let rma = made["rma_identifier"].as_str().unwrap();
    assert_eq!(app.show(rma).await, made);
    assert_eq!(app.get(&format!("/v1/returns/{rma}"), "rival").await.0, StatusCode::NOT_FOUND);

    let arrivals = app.arrivals("acme").await;
    let item = |sku: &Value| {
        json!({
            "order_line_item_identifier": "A-1", "order_identifier": "A",
            "exchange_order_identifier": null, "original_order_identifier": null,
            "return_reason": "TOO_SMALL", "is_exchange": false, "sku": sku,
            "tracking_number": null, "package_tracking_status": null,
            "refund_financials": {
                "estimated_refund_amount_cents": 2165, "service_refund_amount_cents": 0,
                "shopper_refund_amount_cents": 2165,
            },
            "refund_type": "REFUND",
        })
    };
    let sku = &made["units"][0]["sku"];
    let message = json!({
        "rma_identifier": rma, "status": "CREATED", "created_at": made["created_at"],
        "updated_at": made["created_at"], "items": [item(sku), item(sku)],
        "return_method": "mail-back", "return_shipping_cost_cents": 595, "gift_refund_only": false,
    });
    let created = Arrival { event: "rma.created".to_owned(), sequence: 1, body: message };
    assert_eq!(arrivals, [created]);
    assert_eq!(app.arrivals("rival").await, []);
}

#[tokio::test]
async fn one_of_two_parallel_returns_of_a_unit_succeeds() {
    let app = TestApp::start().await;
    app.store("acme", &order("A", 1)).await;
    let body = refund_of("A", &[1]);
    let responses = join_all((0..6).map(|_| app.post("/v1/returns", "acme", &body))).await;
    let count = |wanted| responses.iter().filter(|(status, _)| *status == wanted).count();
    assert_eq!((count(StatusCode::CREATED), count(StatusCode::CONFLICT)), (1, 5), "{responses:?}");
    let refusal = &responses.iter().find(|it| it.0 == StatusCode::CONFLICT).unwrap().1;
    assert_eq!(refusal["ineligible"][0]["code"], "already_returned");
    assert!(refusal["request_id"].is_string());
    assert_eq!(app.sent_messages().await, ["rma.created"]);
    assert_eq!(app.number("SELECT count(*) AS n FROM returns WHERE merchant = 'acme'").await, 1);
}

#[tokio::test]
async fn the_database_rejects_a_unit_in_two_returns() {
    let app = TestApp::start().await;
    app.store("acme", &order("A", 1)).await;
    app.start_return(&refund_of("A", &[1])).await;
    let copy = "INSERT INTO returns SELECT merchant, 'other', status, customer_email, \
                other_email_sha256, document, created_at, updated_at FROM returns \
                WHERE merchant = 'acme'; \
                INSERT INTO return_units SELECT merchant, 'other', order_identifier, \
                line_identifier, unit, held, exchanged, tracking_number, order_sequence \
                FROM return_units WHERE merchant = 'acme'";
    let mut conn = app.pool.get().await.unwrap();
    let refused = diesel_async::SimpleAsyncConnection::batch_execute(
        &mut *conn,
        &app.service.own_query(copy),
    )
    .await;
    assert!(refused.unwrap_err().to_string().contains("return_units_held"));
}

#[tokio::test]
async fn a_repeated_request_with_the_same_key_gets_the_first_response() {
    let app = TestApp::start().await;
    app.store("acme", &order("A", 3)).await;
    let key = [("idempotency-key", "k-1")];
    let body = refund_of("A", &[1]);
    let create =
        |merchant, body| app.send_as(Method::POST, "/v1/returns", merchant, &key, Some(body));
    let responses = join_all((0..6).map(|_| create("acme", &body))).await;
    assert_eq!(responses[0].0, StatusCode::CREATED);
    assert!(responses.iter().all(|response| *response == responses[0]), "{responses:?}");
    let other = refund_of("A", &[2]);
    let (status, refusal) = create("acme", &other).await;
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY);
    assert_eq!(refusal["errors"][0]["field"], "$");
    // Keys are scoped to the merchant: for another merchant the key is new and the order unknown.
    let (status, refusal) = create("rival", &body).await;
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY);
    assert_eq!(refusal["errors"][0]["field"], "$.units[0].order_identifier");
    assert_eq!(app.sent_messages().await, ["rma.created"]);
    let long = "k".repeat(256);
    let headers = [("idempotency-key", long.as_str())];
    let (status, _) =
        app.send_as(Method::POST, "/v1/returns", "acme", &headers, Some(&other)).await;
    assert_eq!(status, StatusCode::BAD_REQUEST);
}

#[tokio::test]
async fn a_repeated_request_gets_the_first_response_after_the_terms_changed() {
    let app = TestApp::start().await;
    app.store("acme", &order("A", 2)).await;
    let key = [("idempotency-key", "k-1")];
    let body = refund_of("A", &[1]);
    let create = || app.send_as(Method::POST, "/v1/returns", "acme", &key, Some(&body));
    let first = create().await;
    assert_eq!(first.0, StatusCode::CREATED);
    let mut stricter = merchant("acme");
    stricter.version = 2;
    let reasons = &mut stricter.settings.returns.reasons;
    *reasons = reasons.iter().filter(|reason| reason.code != "TOO_SMALL").cloned().collect();
    app.service.publish_merchant(stricter).await;
    eventually("the new terms are known", Duration::from_secs(300), async || {
        let (status, _) = app.post("/v1/returns/quote", "acme", &body).await;
        (status == StatusCode::UNPROCESSABLE_ENTITY).then_some(())
    })
    .await;
    assert_eq!(create().await, first);
}

#[tokio::test]
async fn impossible_values_are_reported_field_by_field() {
    let app = TestApp::start().await;
    app.store("acme", &order("A", 2)).await;
    let mut mismatch = order("B", 1);
    mismatch.customer.identifier = "someone else".to_owned();
    app.store("acme", &mismatch).await;
    app.store("rival", &order("C", 1)).await;
    let refund = json!({ "resolution": "refund" });
    let mut line = choice("A", 1, &refund);
    line["order_line_item_identifier"] = json!("none");
    let units = json!([
        choice("A", 1, &refund),
        choice("A", 3, &refund),
        choice("B", 1, &refund),
        choice("C", 1, &refund),
        line,
    ]);
    let body = json!({ "return_method": "mail-back", "units": units });
    for path in ["/v1/returns", "/v1/returns/quote"] {
        let (status, refusal) = app.post(path, "acme", &body).await;
        assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY);
        let errors = refusal["errors"].as_array().unwrap().iter();
        let mut fields: Vec<_> = errors.map(|it| it["field"].as_str().unwrap()).collect();
        fields.sort_unstable();
        let expected = [
            "$.units[1].unit",
            "$.units[2].order_identifier",
            "$.units[3].order_identifier",
            "$.units[4].order_line_item_identifier",
        ];
        assert_eq!(fields, expected);
    }
    let bad = json!({ "return_method": "pigeon", "units": [], "quote": "nonsense" });
    let (status, refusal) = app.post("/v1/returns", "acme", &bad).await;
    assert_eq!(
        (status, refusal["errors"].as_array().unwrap().len()),
        (StatusCode::UNPROCESSABLE_ENTITY, 3)
    );
    assert_eq!(app.number("SELECT count(*) AS n FROM returns WHERE merchant = 'acme'").await, 0);
}

#[tokio::test]
async fn staff_may_override_policy_reasons_and_a_portal_may_not() {
    let app = TestApp::start().await;
    let mut final_sale = order("A", 1);
    final_sale.items[0].tags = vec!["FinalSale".to_owned()];
    app.store("acme", &final_sale).await;
    let mut body = refund_of("A", &[1]);
    let (status, refusal) = app.post("/v1/returns", "acme", &body).await;
    assert_eq!(status, StatusCode::CONFLICT);
    assert_eq!(refusal["ineligible"][0]["code"], "final_sale");
    body["override"] = json!({ "by": "Ann", "reason": "arrived broken" });
    let portal = app.issuer.token(None, "returns");
    let acme = [("x-service-id", "acme")];
    let (status, _) = app.send(Method::POST, "/v1/returns", &portal, &acme, Some(&body)).await;
    assert_eq!(status, StatusCode::FORBIDDEN);
    let rma = app.start_return(&body).await;
    let (_, timeline) = app.get(&format!("/v1/returns/{rma}/timeline"), "acme").await;
    let expected = json!({
        "by": "Ann", "reason": "arrived broken",
        "units": [{ "unit": unit("A", 1), "code": "final_sale" }],
    });
    assert_eq!(timeline["entries"][0]["detail"]["override"], expected);
}

#[tokio::test]
async fn exchanged_units_are_confirmed_order_by_order() {
    let app = TestApp::with(|acme| {
        let card = GiftCardOffer { sku: "GIFT".to_owned(), bonus_credit_amount_cents: 500 };
        acme.settings.returns.gift_card = Some(card);
        acme.settings.returns.methods[0].shipping_cost_cents = 595;
        acme.settings.returns.methods[1].method = ReturnMethod::CustomerKeep;
    })
    .await;
    for name in ["A", "B", "C"] {
        app.store("acme", &order(name, 2)).await;
    }
    let variant = json!({ "sku": "TEE-M", "title": "Tee, M", "unit_price_amount_cents": 2000 });
    let exchange = json!({ "resolution": "exchange", "variant": variant });
    let card = json!({ "resolution": "gift_card" });
    let refund = json!({ "resolution": "refund" });
    let units = [
        choice("A", 1, &exchange),
        choice("A", 2, &card),
        choice("B", 1, &card),
        choice("C", 1, &refund),
    ];
    let body = json!({ "return_method": "mail-back", "units": units });
    let rma = app.start_return(&body).await;
    let events = app.events("exchange.return.confirmed.v1", 2).await;
    let (first, second) = (&events[0], &events[1]);
    assert_eq!(
        (&first["original_order_id"], &second["original_order_id"]),
        (&json!("A"), &json!("B"))
    );
    assert_eq!(first["rma_identifier"], json!(rma));
    assert_eq!(first["units"].as_array().unwrap().len(), 2);
    assert_eq!(first["units"][0]["replacement"]["variant"], variant);
    assert_eq!(first["units"][0]["tax_amount_cents"], 165);
    assert_eq!(first["gift_card"]["sku"], "GIFT");
    assert_eq!(second["units"][0]["replacement"], json!({ "resolution": "gift_card" }));

    let message = app.arrivals("acme").await[0].body.clone();
    let types: Vec<_> =
        message["items"].as_array().unwrap().iter().map(|it| it["refund_type"].clone()).collect();
    assert_eq!(types, ["EVEN_EXCHANGE", "UNEVEN_EXCHANGE", "UNEVEN_EXCHANGE", "REFUND"]);
    assert_eq!(message["return_shipping_cost_cents"], 595);
    assert_eq!(message["items"][0]["refund_financials"]["service_refund_amount_cents"], 2165);

    // Each order can have one exchange.
    let again = json!({ "return_method": "mail-back", "units": [choice("B", 2, &card)] });
    let (status, refusal) = app.post("/v1/returns", "acme", &again).await;
    assert_eq!(status, StatusCode::CONFLICT);
    assert_eq!(refusal["ineligible"][0]["code"], "already_exchanged");
    let (_, shown) = app.get("/v1/orders/B/returnable", "acme").await;
    assert_eq!(
        (&shown["exchange_possible"], &shown["units"][1]["exchange_offered"]),
        (&json!(false), &json!(false))
    );
    app.start_return(&refund_of("B", &[2])).await;
}

#[tokio::test]
async fn a_gift_is_refunded_to_the_giftee() {
    let app = TestApp::start().await;
    app.store("acme", &later(&order("A", 1), 1)).await;
    let mut body = refund_of("A", &[1]);
    body["gift_refund_only"] = json!(true);
    let (status, refusal) = app.post("/v1/returns", "acme", &body).await;
    assert_eq!(
        (status, &refusal["errors"][0]["field"]),
        (StatusCode::UNPROCESSABLE_ENTITY, &json!("$.giftee_email"))
    );
    body["giftee_email"] = json!("Gift@shop.example");
    let rma = app.start_return(&body).await;
    let message = &app.arrivals("acme").await[0].body;
    assert_eq!(message["gift_refund_only"], true);
    assert_eq!(message["giftee_email"], "Gift@shop.example");
    let (_, found) = app.get("/v1/returns?email=gift%40SHOP.example", "acme").await;
    assert_eq!(found["returns"][0]["rma_identifier"], json!(rma));
}

#[tokio::test]
async fn the_giftee_is_the_customer_of_a_gift_exchange() {
    let app = TestApp::start().await;
    let mut order = order("A", 1);
    order.customer.email = Some("buyer@shop.example".to_owned());
    app.store("acme", &order).await;
    // The price of the variant is not always known.
    let variant = json!({ "sku": "TEE-M", "title": "Tee, M" });
    let exchange = json!({ "resolution": "exchange", "variant": variant });
    let body = json!({
        "return_method": "mail-back", "units": [choice("A", 1, &exchange)],
        "gift_refund_only": true, "giftee_email": "gia@shop.example",
    });
    app.start_return(&body).await;
    let confirmed = app.events("exchange.return.confirmed.v1", 1).await.remove(0);
    let giftee = json!({ "identifier": "gia@shop.example", "email": "gia@shop.example" });
    assert_eq!((&confirmed["customer"], &confirmed["is_gift"]), (&giftee, &json!(true)));
    let message = &app.arrivals("acme").await[0].body;
    assert_eq!(message["items"][0]["refund_type"], "EVEN_EXCHANGE");
}

#[tokio::test]
async fn a_return_has_orders_of_one_shopper_only() {
    let app = TestApp::start().await;
    let own = order("A", 1);
    let mut others = order("B", 1);
    others.customer.identifier = "another shopper".to_owned();
    app.store("acme", &own).await;
    app.store("acme", &others).await;
    let mut both = refund_of("A", &[1]);
    let mismatch = refund_of("B", &[1])["units"][0].clone();
    both["units"].as_array_mut().unwrap().push(mismatch);
    let (status, refusal) = app.post("/v1/returns", "acme", &both).await;
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY);
    let detail = refusal["errors"][0]["detail"].as_str().unwrap();
    assert!(detail.contains("another shopper"), "{refusal}");
    assert_eq!(app.number("SELECT count(*) AS n FROM returns WHERE merchant = 'acme'").await, 0);
}
