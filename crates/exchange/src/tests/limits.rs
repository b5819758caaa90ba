//! Memory for request and response bodies is limited.

use std::cell::RefCell;

use futures_util::future::join_all;
use reqwest::{Method, StatusCode};
use serde_json::json;
use testkit::eventually;

use super::app::{SOON, TestApp, confirmed, gift_card_unit};

/// Memory for one body of the largest size: 5 MiB.
const SMALL_BUDGET: [(&str, &str); 4] = [
    ("HTTP__MAX_INFLIGHT", "0"),
    ("HTTP__MAX_BODY", "524288"),
    // On a busy machine the default ends before the test has seen the effect.
    ("HTTP__BODY_TIMEOUT", "2m"),
    ("HTTP__REQUEST_TIMEOUT", "2m"),
];

/// Waits until a request gets this status.
async fn wait_for_status(app: &TestApp, path: &str, token: &str, status: StatusCode) {
    eventually(&format!("{path} returns {status}"), SOON, async || {
        let request = app.client.get(format!("{}{path}", app.service.url)).bearer_auth(token);
        // The connection may also be refused while the others are open.
        request.send().await.is_ok_and(|response| response.status() == status).then_some(())
    })
    .await;
}

#[tokio::test]
async fn unsent_request_bodies_are_limited() {
    let app = TestApp::with_settings(&SMALL_BUDGET).await;
    let operator = app.issuer.token(None, "operator");
    let replay = async || {
        let url = format!("{}/v1/replays", app.service.url);
        let body = json!({"all": true, "dry_run": true});
        let request = app.client.request(Method::POST, url).bearer_auth(&operator).json(&body);
        request.send().await.unwrap().status()
    };
    assert_eq!(replay().await, StatusCode::OK);
    let head = format!(
        "POST /v1/replays HTTP/1.1\r\nHost: exchange\r\nAuthorization: Bearer {}\r\n\
         Content-Type: application/json\r\nContent-Length: 524288\r\n\r\n",
        app.issuer.token(Some("acme"), "returns"),
    );
    let waiting = RefCell::new(Vec::new());
    eventually("the memory budget is used up", SOON, async || {
        // On a busy machine the service may reject a request whose token it cannot check in time.
        let connection = app.service.raw_connection(&head).await;
        waiting.borrow_mut().push(connection);
        (replay().await == StatusCode::TOO_MANY_REQUESTS).then_some(())
    })
    .await;
    drop(waiting);
    eventually("the memory budget is free again", SOON, async || {
        (replay().await == StatusCode::OK).then_some(())
    })
    .await;
}

#[tokio::test]
async fn unread_responses_are_limited() {
    let app = TestApp::with_settings(&SMALL_BUDGET).await;
    app.confirm(&confirmed("R-1", "1001", &[gift_card_unit("L1", 1)])).await;
    let placed = app.placed().await;
    assert_eq!(placed.original_order_id, "1001");
    app.wait_until_idle().await;
    let longer = "UPDATE exchange_orders SET message = to_json(repeat('x', 400000)), items = \
                  '[' || repeat(trim(items, '[]') || ',', 3999) || trim(items, '[]') || ']'";
    app.execute(longer).await;
    let longer = "UPDATE delivery_messages SET body = convert_to(repeat('x', 400000), 'UTF8')";
    app.execute(longer).await;
    let sizes =
        (0..1000).map(|size| json!({"sku": format!("TEE-{size}"), "title": "x".repeat(250)}));
    let sizes = json!([{"do": "respond", "body": sizes.collect::<Vec<_>>(), "times": "always"}]);
    app.behave("/sku/TEE/variants", sizes).await;
    let token = app.issuer.token(Some("acme"), "returns");
    let (_, shown) = app.get("/v1/exchange_orders/1001", "acme").await;
    let delivery = format!("/v1/deliveries/{}", shown["delivery"].as_str().unwrap());
    let one = "/v1/exchange_orders/1001";
    for path in ["/v1/variants/TEE", one, "/v1/exchange_orders", delivery.as_str()] {
        // More than the socket buffers hold.
        let request = format!(
            "GET {path} HTTP/1.1\r\nHost: exchange\r\nAuthorization: Bearer {token}\r\n\r\n",
        )
        .repeat(24);
        let unread = join_all((0..24).map(|_| app.service.raw_connection(&request))).await;
        wait_for_status(&app, path, &token, StatusCode::TOO_MANY_REQUESTS).await;
        drop(unread);
        wait_for_status(&app, path, &token, StatusCode::OK).await;
    }
}
