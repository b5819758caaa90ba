//! Tests of scopes and of malformed requests.

use std::cell::RefCell;

use domain::warehouse::sample::{inbound_asn, outbound_shipment};

use super::*;

#[tokio::test(flavor = "multi_thread")]
async fn a_warehouse_names_the_merchant_and_a_merchant_registers_its_own_asns() {
    let app = TestApp::start().await;
    let post = async |token: String, named: Option<&str>, path: &str, body: &Value| {
        let url = format!("{}{path}", app.service.url);
        let mut request = app.client.post(url).bearer_auth(token).json(body);
        if let Some(named) = named {
            request = request.header("X-Service-Id", app.service.own(named));
        }
        let (status, response) = send(request).await;
        (status, response["message"].as_str().unwrap_or_default().to_owned())
    };
    let token = |merchant, scope| app.issuer.token(merchant, scope);
    let asn = inbound_asn("IN-1", 1);
    let shipment = outbound_shipment("ASN-1", 1);
    let asns = "/v1/inbound_asns";
    let shipments = "/v1/outbound_shipments";

    let operator = token(None, "warehouse");
    let (status, message) = post(operator.clone(), None, shipments, &shipment).await;
    assert_eq!((status, message.as_str()), (400, "name the merchant in the X-Service-Id header"));
    assert_eq!(post(operator.clone(), Some("nobody"), shipments, &shipment).await.0, 404);
    assert_eq!(post(operator.clone(), Some("rival"), shipments, &shipment).await.0, 201);
    assert_eq!(post(operator, Some("acme"), asns, &asn).await.0, 201);

    let own = token(Some("rival"), "orders");
    assert_eq!(post(own.clone(), None, asns, &asn).await.0, 201);
    assert_eq!(post(own.clone(), Some("acme"), asns, &asn).await.0, 403);
    assert_eq!(post(own.clone(), None, shipments, &shipment).await.0, 403);
    assert_eq!(post(own, None, "/v1/receipts", &json!({})).await.0, 403);
    assert_eq!(post(token(Some("rival"), "returns"), None, asns, &asn).await.0, 403);
    let (status, _) = post("nonsense".to_owned(), None, shipments, &shipment).await;
    assert_eq!(status, 401);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_merchant_sees_its_own_shipments_and_receipts() {
    let app = TestApp::start().await;
    app.accept("/v1/outbound_shipments", &outbound_shipment("ASN-1", 1)).await;
    let get = async |merchant: &str, path: &str| {
        let token = app.issuer.token(Some(merchant), "orders");
        let url = format!("{}{path}", app.service.url);
        send(app.client.get(url).bearer_auth(token)).await.0
    };
    assert_eq!(get("acme", "/v1/outbound_shipments/ASN-1").await, 200);
    assert_eq!(get("rival", "/v1/outbound_shipments/ASN-1").await, 404);
    assert_eq!(get("acme", "/v1/receipts").await, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn malformed_requests_get_client_errors() {
    let app = TestApp::start().await;
    let raw = async |body: &str, kind: &str, key: &str| {
        let request = app.request(Method::POST, "acme", "/v1/outbound_shipments");
        let request = request.header("Content-Type", kind).header("Idempotency-Key", key);
        send(request.body(body.to_owned())).await.0
    };
    assert_eq!(raw("{", "application/json", "k").await, 400);
    assert_eq!(raw(r#"{"a": 1, "a": 2}"#, "application/json", "k").await, 400);
    assert_eq!(raw("{}", "text/plain", "k").await, 415);
    assert_eq!(raw("[]", "application/json", "k").await, 422);
    assert_eq!(raw("{}", "application/json", &"k".repeat(256)).await, 400);
    let large = " ".repeat(8 * 1024 * 1024 + 1);
    assert_eq!(raw(&large, "application/json", "k").await, 413);
    for path in [
        "/v1/outbound_shipments?limit=0",
        "/v1/outbound_shipments?after=%00",
        "/v1/outbound_shipments?after=x",
        "/v1/inbound_asns?limit=201",
        "/v1/inbound_asns?after=x",
        "/v1/drop_shipments?after=x",
        "/v1/warehouse_records",
        "/v1/warehouse_records?asn_number=A&tracking_number=1",
        "/v1/warehouse_records?asn_number=A&after=acme/x",
        "/v1/receipts?after=x",
        "/v1/receipts?asn_number=%00",
        "/v1/receipts?unknown=1",
    ] {
        assert_eq!(app.get("acme", path).await.0, 400, "{path}");
    }
    for path in ["/v1/outbound_shipments/%00", "/v1/inbound_asns/%00"] {
        assert_eq!(app.get("acme", path).await.0, 404, "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_counts_towards_the_memory_budget() {
    let app = TestApp::alone().await;
    let path = "/v1/outbound_shipments/ASN-1";
    let head = format!(
        "PATCH {path} HTTP/1.1\r\nHost: warehouse\r\nAuthorization: Bearer {}\r\n\
         X-Service-Id: acme\r\nContent-Type: application/json\r\nContent-Length: 8388608\r\n\r\n",
        app.warehouse_token(),
    );
    // The request reserves memory for a body that is never sent. One body of the maximum size and another
    // large one exceed half of the budget.
    let waiting = RefCell::new(Vec::new());
    let large = json!({ "status": " ".repeat(6 * 1024 * 1024) });
    eventually("the memory budget is used up", TIMEOUT, async || {
        // On a busy machine earlier ones may have waited for too long.
        let connection = app.service.raw_connection(&head).await;
        waiting.borrow_mut().push(connection);
        (app.patch(path, &large).await.0 == 429).then_some(())
    })
    .await;
    drop(waiting);
    eventually("memory is free again", TIMEOUT, async || {
        (app.patch(path, &large).await.0 == 422).then_some(())
    })
    .await;
}
