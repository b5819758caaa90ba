//! `backhaul shopper` against a running order intake.

use serde_json::{Value, json};
use testkit::eventually;

use crate::app::{TIMEOUT, TestApp};

/// Requests an erasure as the operator for acme, and returns its ID.
async fn erase(app: &TestApp, intake: &str) -> String {
    let token = app.text("token --as operator").await;
    let client = platform::http_client(TIMEOUT).unwrap();
    let request = client.post(format!("{intake}/v1/erasures")).bearer_auth(token.trim());
    let request = request.header("X-Service-Id", "acme");
    let response = request.json(&json!({ "order_identifiers": ["1001"] })).send().await.unwrap();
    assert_eq!(response.status(), 202);
    let erasure: Value = response.json().await.unwrap();
    erasure["id"].as_str().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_erasure_is_listed_and_shown_by_its_short_id() {
    let app = TestApp::start().await;
    let (_database, intake) = app.start_service::<order_intake::App>(&[]).await;
    app.set("ORDERS_URL", &intake.url);
    app.text("merchant add acme --name Acme").await;
    let client = app.add_client("--scope orders").await;
    eventually("the order intake knows acme", TIMEOUT, async || {
        app.backhaul("orders list").await.status.success().then_some(())
    })
    .await;
    let id = erase(&app, &intake.url).await;

    let list = app.text("shopper erasures --merchant acme").await;
    let short = list.lines().nth(1).unwrap().split_whitespace().next().unwrap();
    assert_eq!(short, &id[..18], "{list}");
    let shown = app.json(&format!("shopper erasure {short} --merchant acme --json")).await;
    assert_eq!(shown["id"], json!(id));
    let stderr = app.error("shopper erasure RMA-1 --merchant acme", 2).await;
    assert!(stderr.starts_with("error: rma-1 is not the ID of any erasure: "), "{stderr}");
    let stderr = app.error("shopper erasure 00000000-0000-7 --merchant acme", 1).await;
    assert_eq!(stderr, "error: there is no erasure whose ID begins with 00000000-0000-7\n");

    // Without --merchant, the merchant's client is used. It lacks the scope.
    let stderr = app.error("shopper erasures", 1).await;
    let expected = format!(
        "error: this needs the scope manage\n  \
         client {client} was used; --merchant acts as the operator for a merchant\n  request id "
    );
    assert!(stderr.starts_with(&expected), "{stderr}");
    let stderr = app.error("shopper erase --merchant acme", 2).await;
    for flag in ["--email <EMAIL>", "--order <ORDER>"] {
        assert!(stderr.contains(flag), "{stderr}");
    }
    assert!(intake.stop().await);
}
