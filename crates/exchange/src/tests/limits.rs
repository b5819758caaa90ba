//! Memory for bodies and answers has a bound.

use futures_util::future::join_all;
use reqwest::{Method, StatusCode};
use serde_json::json;
use testkit::eventually;

use super::stage::{SOON, Stage, carded, confirmed};

/// Memory for one body of the largest size: 5 MiB.
const LITTLE_ROOM: [(&str, &str); 2] =
    [("HTTP__MAX_INFLIGHT_BYTES", "0"), ("HTTP__MAX_BODY_BYTES", "524288")];

/// Waits until this is answered so.
async fn answered(stage: &Stage, path: &str, token: &str, status: StatusCode) {
    eventually(&format!("{path} is answered with {status}"), SOON, async || {
        let asked = stage.client.get(format!("{}{path}", stage.started.url)).bearer_auth(token);
        // It may also be too busy with the others.
        asked.send().await.is_ok_and(|answer| answer.status() == status).then_some(())
    })
    .await;
}

#[tokio::test]
async fn bodies_that_do_not_come_are_bounded() {
    let stage = Stage::with(&LITTLE_ROOM).await;
    let operator = stage.issuer.token(None, "operator");
    let replay = async || {
        let url = format!("{}/v1/replays", stage.started.url);
        let body = json!({"filter": {}, "dry_run": true});
        let request = stage.client.request(Method::POST, url).bearer_auth(&operator).json(&body);
        request.send().await.unwrap().status()
    };
    assert_eq!(replay().await, StatusCode::OK);
    let head = format!(
        "POST /v1/replays HTTP/1.1\r\nHost: exchange\r\nAuthorization: Bearer {}\r\n\
         Content-Type: application/json\r\nContent-Length: 524288\r\n\r\n",
        stage.issuer.token(Some("acme"), "returns"),
    );
    let waiting = stage.started.raw_connection(&head).await;
    eventually("there is no room", SOON, async || {
        (replay().await == StatusCode::SERVICE_UNAVAILABLE).then_some(())
    })
    .await;
    drop(waiting);
    eventually("there is room again", SOON, async || {
        (replay().await == StatusCode::OK).then_some(())
    })
    .await;
}

#[tokio::test]
async fn answers_that_nobody_reads_are_bounded() {
    let stage = Stage::with(&LITTLE_ROOM).await;
    stage.confirm(&confirmed("R-1", "1001", &[carded("L1", 1)])).await;
    let placed = stage.placed().await;
    assert_eq!(placed.original_order_id, "1001");
    stage.quiet().await;
    let longer = "UPDATE exchange_orders SET message = to_json(repeat('x', 400000)), units = \
                  '[' || repeat(trim(units, '[]') || ',', 3999) || trim(units, '[]') || ']'";
    stage.execute(longer).await;
    let longer = "UPDATE delivery_messages SET body = convert_to(repeat('x', 400000), 'UTF8')";
    stage.execute(longer).await;
    let sizes =
        (0..1000).map(|size| json!({"sku": format!("TEE-{size}"), "title": "x".repeat(250)}));
    let sizes = json!([{"do": "answer", "body": sizes.collect::<Vec<_>>(), "times": "always"}]);
    stage.behave("/sku/TEE/variants", sizes).await;
    let token = stage.issuer.token(Some("acme"), "returns");
    let (_, shown) = stage.get("/v1/exchange_orders/1001", "acme").await;
    let delivery = format!("/v1/deliveries/{}", shown["delivery"].as_str().unwrap());
    let one = "/v1/exchange_orders/1001";
    for path in ["/v1/variants/TEE", one, "/v1/exchange_orders", delivery.as_str()] {
        // More than the buffers of the connection take.
        let asked = format!(
            "GET {path} HTTP/1.1\r\nHost: exchange\r\nAuthorization: Bearer {token}\r\n\r\n",
        )
        .repeat(24);
        let unread = join_all((0..6).map(|_| stage.started.raw_connection(&asked))).await;
        answered(&stage, path, &token, StatusCode::SERVICE_UNAVAILABLE).await;
        drop(unread);
        answered(&stage, path, &token, StatusCode::OK).await;
    }
}
