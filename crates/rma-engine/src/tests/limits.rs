//! What holds under any load.

use futures_util::future::join_all;

use super::projecting::order;
use super::*;

/// Memory for one body of the largest size: 640 KiB.
const SMALL: [(&str, &str); 2] =
    [("HTTP__MAX_BODY_BYTES", "65536"), ("HTTP__MAX_INFLIGHT_BYTES", "0")];

/// Much is written before all buffers are full.
const PATIENCE: Duration = Duration::from_secs(60);

/// An order with 300 units in a return. Both are small as bodies and large as answers.
async fn large_return(stage: &Stage) -> String {
    let mut order = order("A", 300);
    let line = &mut order.items[0];
    line.image_url = Some(format!("https://shop.example/{}", "x".repeat(5_000)));
    (line.sku, line.upc) = (Some("s".repeat(255)), Some("u".repeat(255)));
    stage.store("acme", &order).await;
    stage.start_return(&refund_of("A", &Vec::from_iter(1..=300))).await
}

/// Asks for a page often and reads nothing, until there is no room for it; then lets go.
async fn check_bound(stage: &Stage, path: &str, connections: usize) {
    let token = stage.issuer.token(Some("acme"), "returns");
    // More than the buffers of the connection take.
    let asked =
        format!("GET {path} HTTP/1.1\r\nHost: rma\r\nAuthorization: Bearer {token}\r\n\r\n")
            .repeat(16);
    let answer =
        async |status: StatusCode| (stage.get(path, "acme").await.0 == status).then_some(());
    let unread = join_all((0..connections).map(|_| stage.started.raw_connection(&asked))).await;
    eventually("there is no room", PATIENCE, || answer(StatusCode::SERVICE_UNAVAILABLE)).await;
    drop(unread);
    eventually("there is room again", PATIENCE, || answer(StatusCode::OK)).await;
}

#[tokio::test]
async fn bodies_that_do_not_come_shut_out_nobody_else() {
    let stage = Stage::set().await;
    let head = format!(
        "POST /v1/returns/quote HTTP/1.1\r\nHost: rma\r\nAuthorization: Bearer {}\r\n\
         Content-Type: application/json\r\nContent-Length: 1048576\r\n\r\n",
        stage.issuer.token(Some("acme"), "returns"),
    );
    let waiting = join_all((0..8).map(|_| stage.started.raw_connection(&head))).await;
    let large = json!({ "padding": " ".repeat(1_000_000) });
    let quote = async |merchant: &str| stage.post("/v1/returns/quote", merchant, &large).await.0;
    eventually("acme has no room", SOON, || async {
        (quote("acme").await == StatusCode::SERVICE_UNAVAILABLE).then_some(())
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
async fn returns_that_nobody_reads_are_bounded() {
    let stage = Stage::with_settings(&SMALL, |_| {}).await;
    let rma = large_return(&stage).await;
    check_bound(&stage, "/v1/returns", 5).await;
    check_bound(&stage, &format!("/v1/returns/{rma}"), 5).await;
}

#[tokio::test]
async fn orders_that_nobody_reads_are_bounded_and_larger_than_the_room() {
    let stage = Stage::with_settings(&SMALL, |_| {}).await;
    large_return(&stage).await;
    check_bound(&stage, "/v1/orders/A/returnable", 16).await;
    let (_, shown) = stage.get("/v1/orders/A/returnable", "acme").await;
    let units = shown["units"].as_array().unwrap();
    assert!(units.iter().map(|unit| unit["unit"].as_i64().unwrap()).eq(1..=300));
    assert!(shown.to_string().len() > 10 * 65_536);
    assert!(shown["reasons"].is_array());
}
