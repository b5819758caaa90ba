//! Limits under load.

use std::cell::RefCell;

use super::projecting::order;
use super::*;

/// Memory for one body of the largest size: 640 KiB.
const SMALL: [(&str, &str); 2] = [("HTTP__MAX_BODY", "65536"), ("HTTP__MAX_INFLIGHT", "0")];

/// Filling all socket buffers takes time.
const TIMEOUT: Duration = Duration::from_secs(300);

/// Creates an order and a return with 300 units. Both are small as requests and large as responses.
async fn large_return(app: &TestApp, image: usize) -> String {
    let mut order = order("A", 300);
    let line = &mut order.items[0];
    line.image_url = Some(format!("https://shop.example/{}", "x".repeat(image)));
    (line.sku, line.upc) = (Some("s".repeat(200)), Some("u".repeat(200)));
    app.store("acme", &order).await;
    app.start_return(&refund_of("A", &Vec::from_iter(1..=300))).await
}

/// Requests a page many times without reading until the memory budget is used up, then disconnects.
async fn check_bound(app: &TestApp, path: &str) {
    let token = app.issuer.token(Some("acme"), "returns");
    // Larger than the connection's buffers.
    let request =
        format!("GET {path} HTTP/1.1\r\nHost: rma\r\nAuthorization: Bearer {token}\r\n\r\n")
            .repeat(16);
    let response =
        async |status: StatusCode| (app.get(path, "acme").await.0 == status).then_some(());
    let unread = RefCell::new(Vec::new());
    eventually("the memory budget is used up", TIMEOUT, async || {
        // The service may reject requests that arrive while it writes another response.
        let connection = app.service.raw_connection(&request).await;
        unread.borrow_mut().push(connection);
        response(StatusCode::TOO_MANY_REQUESTS).await
    })
    .await;
    drop(unread);
    eventually("memory is free again", TIMEOUT, || response(StatusCode::OK)).await;
}

#[tokio::test]
async fn slow_request_bodies_do_not_block_other_requests() {
    // On a busy machine the defaults end before the test has seen the effect.
    let slow = [("HTTP__BODY_TIMEOUT", "2m"), ("HTTP__REQUEST_TIMEOUT", "2m")];
    let app = TestApp::with_settings(&slow, |_| {}).await;
    let head = format!(
        "POST /v1/returns/quote HTTP/1.1\r\nHost: rma\r\nAuthorization: Bearer {}\r\n\
         Content-Type: application/json\r\nContent-Length: 1048576\r\n\r\n",
        app.issuer.token(Some("acme"), "returns"),
    );
    let waiting = RefCell::new(Vec::new());
    let large = json!({ "padding": " ".repeat(1_000_000) });
    let quote = async |merchant: &str| app.post("/v1/returns/quote", merchant, &large).await.0;
    eventually("acme has no room", SOON, async || {
        // The service may reject a body that arrives while it reads others.
        let connection = app.service.raw_connection(&head).await;
        waiting.borrow_mut().push(connection);
        (quote("acme").await == StatusCode::TOO_MANY_REQUESTS).then_some(())
    })
    .await;
    assert_eq!(quote("rival").await, StatusCode::UNPROCESSABLE_ENTITY);
    drop(waiting);
    eventually("acme has room again", SOON, || async {
        (quote("acme").await == StatusCode::UNPROCESSABLE_ENTITY).then_some(())
    })
    .await;
}

#[tokio::test]
async fn unread_return_responses_are_bounded() {
    let app = TestApp::with_settings(&SMALL, |_| {}).await;
    let rma = large_return(&app, 1).await;
    check_bound(&app, "/v1/returns").await;
    check_bound(&app, &format!("/v1/returns/{rma}")).await;
}

#[tokio::test]
async fn unread_order_responses_are_bounded_and_may_exceed_the_budget() {
    let app = TestApp::with_settings(&SMALL, |_| {}).await;
    large_return(&app, 5_000).await;
    check_bound(&app, "/v1/orders/A/returnable").await;
    let (_, shown) = app.get("/v1/orders/A/returnable", "acme").await;
    let units = shown["units"].as_array().unwrap();
    assert!(units.iter().map(|unit| unit["unit"].as_i64().unwrap()).eq(1..=300));
    assert!(shown.to_string().len() > 10 * 65_536);
    assert!(shown["reasons"].is_array());
}
