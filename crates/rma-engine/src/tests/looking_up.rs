//! Looking up returns in one merchant and in all, with the scopes of people.

use super::projecting::order;
use super::*;

const NO_HEADERS: &[(&str, &str)] = &[];

async fn get(app: &TestApp, path: &str, token: &str) -> (StatusCode, Value) {
    app.send(Method::GET, path, token, NO_HEADERS, None).await
}

/// Merchant and identifier of each return that is found.
async fn found(app: &TestApp, query: &str, token: &str) -> Vec<(String, String)> {
    let (status, page) = get(app, &format!("/v1/returns{query}"), token).await;
    assert_eq!(status, StatusCode::OK, "{query}: {page}");
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let returns = page["returns"].as_array().unwrap().iter();
    returns.map(|it| (text(&it["merchant"]), text(&it["rma_identifier"]))).collect()
}

/// Stores order A of a merchant, and returns a unit in the parcel 1Z9.
async fn returned(app: &TestApp, merchant: &str) -> (String, String) {
    let mut order = order("A", 1);
    order.customer.email = Some("ada@shop.example".to_owned());
    app.store(merchant, &order).await;
    let (status, made) = app.post("/v1/returns", merchant, &refund_of("A", &[1])).await;
    assert_eq!(status, StatusCode::CREATED, "{made}");
    let rma = made["rma_identifier"].as_str().unwrap().to_owned();
    let label = json!({
        "event_identifier": "1", "event": "label", "rma_identifier": rma, "tracking_number": "1Z9",
    });
    let carrier = app.issuer.token(None, "carrier");
    let of = [("x-service-id", merchant)];
    let (status, _) =
        app.send(Method::POST, "/v1/carrier_events", &carrier, &of, Some(&label)).await;
    assert_eq!(status, StatusCode::OK);
    (merchant.to_owned(), rma)
}

#[tokio::test]
async fn a_token_without_a_merchant_finds_the_returns_of_all() {
    let app = TestApp::alone().await;
    let acme = returned(&app, "acme").await;
    let rival = returned(&app, "rival").await;
    let both = [rival.clone(), acme.clone()];
    let support = app.issuer.token(None, "read replay");
    let operator = app.issuer.token(None, "operator");
    let viewer = app.issuer.token(Some("acme"), "read");
    for query in [
        "?order_identifier=A",
        "?email=ADA@shop.example",
        "?tracking_number=1Z9",
        "?status=CREATED",
        "",
    ] {
        for token in [&support, &operator] {
            assert_eq!(found(&app, query, token).await, both, "{query}");
        }
        assert_eq!(found(&app, query, &viewer).await, std::slice::from_ref(&acme), "{query}");
        let of_rival = format!("{query}{}merchant=rival", if query.is_empty() { "?" } else { "&" });
        assert_eq!(
            found(&app, &of_rival, &support).await,
            std::slice::from_ref(&rival),
            "{of_rival}"
        );
        let (status, refusal) = get(&app, &format!("/v1/returns{of_rival}"), &viewer).await;
        assert_eq!(status, StatusCode::NOT_FOUND, "{of_rival}");
        assert_eq!(refusal["message"], "there is no merchant rival");
    }
    for (merchant, rma) in &both {
        let query = format!("?rma_identifier={rma}");
        let expected = [(merchant.clone(), rma.clone())];
        assert_eq!(found(&app, &query, &support).await, expected);
        let own: Vec<_> = expected.into_iter().filter(|(merchant, _)| merchant == "acme").collect();
        assert_eq!(found(&app, &query, &viewer).await, own);
    }
    let (_, first) = get(&app, "/v1/returns?limit=1", &support).await;
    let after = format!("?limit=1&after={}", first["next"].as_str().unwrap());
    assert_eq!(found(&app, &after, &support).await, [acme]);
}

#[tokio::test]
async fn the_scope_read_reads_everything_and_changes_nothing() {
    let app = TestApp::start().await;
    let (_, rma) = returned(&app, "acme").await;
    let viewer = app.issuer.token(Some("acme"), "read");
    let foreign = app.issuer.token(Some("rival"), "read");
    let support = app.issuer.token(None, "read replay");
    let of_acme = [("x-service-id", "acme")];
    for path in [
        format!("/v1/returns/{rma}"),
        format!("/v1/returns/{rma}/timeline"),
        "/v1/orders/A".to_owned(),
        "/v1/orders/A/returnable".to_owned(),
    ] {
        assert_eq!(get(&app, &path, &viewer).await.0, StatusCode::OK, "{path}");
        assert_eq!(get(&app, &path, &foreign).await.0, StatusCode::NOT_FOUND, "{path}");
        assert_eq!(get(&app, &path, &support).await.0, StatusCode::BAD_REQUEST, "{path}");
        let (status, _) = app.send(Method::GET, &path, &support, &of_acme, None).await;
        assert_eq!(status, StatusCode::OK, "{path}");
    }
    for path in ["/v1/returns".to_owned(), format!("/v1/returns/{rma}/cancel")] {
        for token in [&viewer, &support] {
            let body = refund_of("A", &[1]);
            let (status, _) = app.send(Method::POST, &path, token, &of_acme, Some(&body)).await;
            assert_eq!(status, StatusCode::FORBIDDEN, "{path}");
        }
    }
}

#[tokio::test]
async fn a_timeline_names_the_person_and_the_message() {
    let app = TestApp::start().await;
    app.store("acme", &order("A", 1)).await;
    let rma = app.start_return(&refund_of("A", &[1])).await;
    let path = format!("/v1/returns/{rma}/cancel");
    let person =
        app.issuer.token_of("ada@acme.example", Some("acme"), "orders returns read manage");
    let body = json!({ "reason": "the shopper keeps it" });
    let (status, _) = app.send(Method::POST, &path, &person, NO_HEADERS, Some(&body)).await;
    assert_eq!(status, StatusCode::OK);
    app.arrivals("acme").await;
    let (_, timeline) = app.get(&format!("/v1/returns/{rma}/timeline"), "acme").await;
    let entry = &timeline["entries"][1];
    assert_eq!(
        (&entry["event"], &entry["actor"]),
        (&json!("rma.canceled"), &json!("ada@acme.example"))
    );
    assert_eq!(entry["detail"]["reason"], "the shopper keeps it");
    let delivery = format!("/v1/deliveries/{}", entry["delivery"].as_str().unwrap());
    let (status, shown) = app.get(&delivery, "acme").await;
    assert_eq!((status, &shown["state"]), (StatusCode::OK, &json!("delivered")));
    assert_eq!(shown["event"], "rma.canceled");
}

#[tokio::test]
async fn a_unit_has_its_title_image_and_label() {
    let app = TestApp::start().await;
    let mut sold = order("A", 2);
    sold.items[0].title = "Tee, L".to_owned();
    sold.items[0].image_url = Some("https://shop.example/tee.jpg".to_owned());
    app.store("acme", &sold).await;
    let mut express = refund_of("A", &[1]);
    express["return_method"] = json!("express-returns");
    let express = app.start_return(&express).await;
    let mailed = app.start_return(&refund_of("A", &[2])).await;
    let label = |rma: &str, url: &str, kind: Option<&str>| {
        let mut label = json!({
            "event_identifier": format!("{rma} {url}"), "event": "label", "rma_identifier": rma,
            "tracking_number": format!("1Z{rma}"), "label_url": url,
        });
        if let Some(kind) = kind {
            label["label_kind"] = json!(kind);
        }
        label
    };
    let unit = async |rma: &str| app.show(rma).await["units"][0].clone();
    let before = unit(&mailed).await;
    assert_eq!((&before["title"], before.get("label")), (&json!("Tee, L"), None));
    assert_eq!(before["image_url"], "https://shop.example/tee.jpg");
    let url = "https://carrier.example/1";
    for (rma, kind, expected) in [
        (&mailed, None, "printable"),
        (&express, None, "qr_code"),
        (&express, Some("printable"), "printable"),
    ] {
        // Another address, so that the report is not the same.
        let url = format!("{url}?{}", kind.unwrap_or_default());
        let (status, response) = app.carrier(&label(rma, &url, kind)).await;
        assert_eq!(status, StatusCode::OK, "{response}");
        assert_eq!(unit(rma).await["label"], json!({ "url": url, "kind": expected }));
    }
    // The merchant's message has none of these.
    let arrivals = app.arrivals("acme").await;
    assert!(arrivals.iter().all(|it| !it.body.to_string().contains("carrier.example")));
    assert_eq!(arrivals.len(), 4, "a new label for the same number sends no message");
    for (url, kind) in [("javascript:alert(1)", None), (url, Some("poster"))] {
        let (status, _) = app.carrier(&label(&mailed, url, kind)).await;
        assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{url} {kind:?}");
    }
}
