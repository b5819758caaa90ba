//! Who may do what, and what is no request at all.

use domain::warehouse::sample::{inbound_asn, outbound_shipment};

use super::*;

#[tokio::test(flavor = "multi_thread")]
async fn warehouses_name_the_merchant_and_merchants_announce_for_themselves() {
    let warehouse = Warehouse::open().await;
    let ask = async |token: String, named: Option<&str>, path: &str, body: &Value| {
        let url = format!("{}{path}", warehouse.started.url);
        let mut request = warehouse.client.post(url).bearer_auth(token).json(body);
        if let Some(named) = named {
            request = request.header("X-Service-Id", named);
        }
        let (status, answer) = answer(request).await;
        (status, answer["message"].as_str().unwrap_or_default().to_owned())
    };
    let token = |merchant, scope| warehouse.issuer.token(merchant, scope);
    let (asn, shipment) = (inbound_asn("IN-1", 1), outbound_shipment("ASN-1", 1));
    let (asns, shipments) = ("/v1/inbound_asns", "/v1/outbound_shipments");

    let operator = token(None, "warehouse");
    let (status, message) = ask(operator.clone(), None, shipments, &shipment).await;
    assert_eq!((status, message.as_str()), (400, "name the merchant in the X-Service-Id header"));
    assert_eq!(ask(operator.clone(), Some("nobody"), shipments, &shipment).await.0, 404);
    assert_eq!(ask(operator.clone(), Some("rival"), shipments, &shipment).await.0, 201);
    assert_eq!(ask(operator, Some("acme"), asns, &asn).await.0, 201);

    let own = token(Some("rival"), "orders");
    assert_eq!(ask(own.clone(), None, asns, &asn).await.0, 201);
    assert_eq!(ask(own.clone(), Some("acme"), asns, &asn).await.0, 403);
    assert_eq!(ask(own.clone(), None, shipments, &shipment).await.0, 403);
    assert_eq!(ask(own, None, "/v1/receipts", &json!({})).await.0, 403);
    assert_eq!(ask(token(Some("rival"), "returns"), None, asns, &asn).await.0, 403);
    let (status, _) = ask("nonsense".to_owned(), None, shipments, &shipment).await;
    assert_eq!(status, 401);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_merchant_sees_its_own_shipments_and_receipts() {
    let warehouse = Warehouse::open().await;
    warehouse.accept("/v1/outbound_shipments", &outbound_shipment("ASN-1", 1)).await;
    let look = async |merchant: &str, path: &str| {
        let token = warehouse.issuer.token(Some(merchant), "orders");
        let url = format!("{}{path}", warehouse.started.url);
        answer(warehouse.client.get(url).bearer_auth(token)).await.0
    };
    assert_eq!(look("acme", "/v1/outbound_shipments/ASN-1").await, 200);
    assert_eq!(look("rival", "/v1/outbound_shipments/ASN-1").await, 404);
    assert_eq!(look("acme", "/v1/receipts").await, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_request_is_answered_clearly() {
    let warehouse = Warehouse::open().await;
    let raw = async |body: &str, kind: &str, key: &str| {
        let request = warehouse.request(Method::POST, "acme", "/v1/outbound_shipments");
        let request = request.header("Content-Type", kind).header("Idempotency-Key", key);
        answer(request.body(body.to_owned())).await.0
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
        "/v1/inbound_asns?limit=201",
        "/v1/receipts?after=x",
        "/v1/receipts?asn_number=%00",
        "/v1/receipts?unknown=1",
    ] {
        assert_eq!(warehouse.get("acme", path).await.0, 400, "{path}");
    }
    for path in ["/v1/outbound_shipments/%00", "/v1/inbound_asns/%00"] {
        assert_eq!(warehouse.get("acme", path).await.0, 404, "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_needs_room_like_everything_else() {
    let warehouse = Warehouse::open().await;
    let path = "/v1/outbound_shipments/ASN-1";
    let head = format!(
        "PATCH {path} HTTP/1.1\r\nHost: warehouse\r\nAuthorization: Bearer {}\r\n\
         X-Service-Id: acme\r\nContent-Type: application/json\r\nContent-Length: 8388608\r\n\r\n",
        warehouse.warehouse_token(),
    );
    // A body that does not come: one of the largest and most of another are more than half.
    let waiting = warehouse.started.raw_connection(&head).await;
    let large = json!({ "status": " ".repeat(6 * 1024 * 1024) });
    eventually("there is no room", SOON, async || {
        (warehouse.patch(path, &large).await.0 == 503).then_some(())
    })
    .await;
    drop(waiting);
    eventually("there is room again", SOON, async || {
        (warehouse.patch(path, &large).await.0 == 422).then_some(())
    })
    .await;
}
