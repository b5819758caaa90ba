//! Tests of `POST /returns_portal_orders`.

use std::io::Write as _;

use domain::json::Document;
use domain::order::OrderPolicy;
use flate2::{Compression, write::GzEncoder};

use super::*;

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

#[tokio::test]
async fn orders_are_stored_and_their_events_reach_the_queue() {
    let app = TestApp::start().await;
    let message = sample_message(3);
    let (status, response) = app.publish("acme", &message).await;
    assert_eq!((status, &response["message"]), (StatusCode::OK, &json!("3 orders: 3 stored")));
    let identifiers: Vec<_> = sample_orders(3).iter().map(|it| it["identifier"].clone()).collect();
    let results = response["orders"].as_array().unwrap();
    let published: Vec<_> = results.iter().map(|it| it["identifier"].clone()).collect();
    assert_eq!(published, identifiers);

    let first = app.stored_events(3).await.remove(0);
    assert_eq!(first["type"], "order.stored.v1");
    assert_eq!(first["data"]["merchant"], "acme");
    assert_eq!(first["data"]["order"]["identifier"], identifiers[0]);

    let (_, again) = app.publish("acme", &message).await;
    assert_eq!(again["message"], "3 orders: 3 unchanged");
}

#[tokio::test]
async fn orders_of_a_message_with_many_units_have_a_queue_of_their_own() {
    let app = TestApp::start().await;
    let order = |identifier: &str, units: i64| {
        let mut order = sample_orders(1).remove(0);
        order["identifier"] = json!(identifier);
        let line = &mut order["items"][0];
        line["quantity"] = json!(units);
        line["quantity_shipped"] = json!(0);
        line["quantity_canceled"] = json!(0);
        line["refunds"] = json!([]);
        order["items"] = json!([line]);
        order["refunds"] = json!([]);
        order
    };
    for orders in [vec![order("S", 50)], vec![order("L", 51)], vec![order("A", 25), order("B", 26)]]
    {
        let (status, response) = app.publish("acme", &order_message(&orders)).await;
        assert_eq!(status, StatusCode::OK, "{response}");
    }
    let listener = app.service.listener(&QUEUES).await;
    let identifiers = |events: Vec<Value>| -> Vec<_> {
        events.iter().map(|event| event["data"]["order"]["identifier"].clone()).collect()
    };
    let stored = app.service.events_in(&listener, STORED, 1).await;
    assert_eq!(identifiers(stored), ["S"]);
    let stored = app.service.events_in(&listener, STORED_IN_BULK, 3).await;
    assert_eq!(stored[0]["type"], "order.stored_in_bulk.v1");
    assert_eq!(identifiers(stored), ["L", "A", "B"]);
}

#[tokio::test]
async fn one_invalid_order_rejects_the_whole_message_with_all_errors() {
    let app = TestApp::start().await;
    let mut orders = sample_orders(4);
    orders[1]["items"][0]["sku"] = json!(7);
    orders[1]["currency"] = json!("DOLLARS");
    orders[3].as_object_mut().unwrap().remove("refunds");
    let message = order_message(&orders);
    let (status, response) = app.publish("acme", &message).await;
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY);
    assert_eq!(response["message"], "3 fields are not valid");
    let now = platform::Clock::system().now();
    let expected =
        OrderMessage::read(&Document::from(message), OrderPolicy::default(), now).unwrap_err();
    assert_eq!(response["errors"], json!(expected.errors));
    assert_eq!(
        response["errors"][2],
        json!({ "field": "$.returns_portal_order.orders[3].refunds", "code": "missing_field" })
    );
    assert!(response["request_id"].is_string());
    let listed: Value = app.get("/v1/orders", "acme").await.json().await.unwrap();
    assert_eq!(listed, json!({ "orders": [] }));
}

#[tokio::test]
async fn unauthorized_requests_are_rejected_with_a_reason() {
    let app = TestApp::start().await;
    let body = sample_message(1).to_string();
    let refused = async |request: RequestBuilder| {
        let response = request.body(body.clone()).send().await.unwrap();
        let challenge = response.headers().get("www-authenticate").is_some();
        let (status, response) = read(response).await;
        (status.as_u16(), challenge, response["message"].as_str().unwrap().to_owned())
    };
    let token = |token: String| app.request().bearer_auth(token);
    let case = |status, challenge, message: &str| (status, challenge, message.to_owned());
    assert_eq!(refused(app.request()).await, case(401, true, "a bearer token is required"));
    assert_eq!(
        refused(token("nonsense".to_owned())).await,
        case(401, true, "the bearer token is not valid")
    );
    let expired = app.issuer.expired_token(Some("acme"), "orders");
    assert_eq!(refused(token(expired)).await, case(401, true, "the bearer token has expired"));
    let other = app.issuer.token(Some("acme"), "returns");
    assert_eq!(refused(token(other)).await, case(403, true, "this needs the scope orders"));
    let operator = app.issuer.token(None, "operator");
    assert_eq!(
        refused(token(operator.clone())).await,
        case(400, false, "name the merchant in the X-Service-Id header")
    );
    let named = token(operator).header("X-Service-Id", "nobody");
    assert_eq!(refused(named).await, case(404, false, "there is no merchant nobody"));
}

#[tokio::test]
async fn the_authorization_scheme_is_case_insensitive() {
    let app = TestApp::start().await;
    let token = format!("bEARER {}", app.token("acme"));
    let request = app.request().header("Authorization", token);
    let response = request.body(sample_message(1).to_string()).send().await.unwrap();
    assert_eq!(response.status(), StatusCode::OK);
}

#[tokio::test]
async fn headers_are_checked() {
    let app = TestApp::start().await;
    let url = format!("{}/returns_portal_orders", app.service.url);
    let refused = async |headers: &[(&'static str, &'static str)]| {
        let mut request = app.client.post(&url).bearer_auth(app.token("acme"));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let (status, response) = read(request.body("{}").send().await.unwrap()).await;
        (status.as_u16(), response["message"].as_str().unwrap().to_owned())
    };
    let json = ("Content-Type", "application/json");
    let version = (400, "the Api-Version header must be 3".to_owned());
    assert_eq!(refused(&[json]).await, version);
    assert_eq!(refused(&[json, ("Api-Version", "2")]).await, version);
    let kind = (415, "content type must be application/json".to_owned());
    assert_eq!(refused(&[("Api-Version", "3")]).await, kind);
    assert_eq!(refused(&[("Api-Version", "3"), ("Content-Type", "text/plain")]).await, kind);
    let unknown = app.client.post(&url).body("{}").send().await.unwrap();
    assert_eq!(unknown.status(), 401, "authentication is checked first");
    let brotli = refused(&[("Api-Version", "3"), json, ("Content-Encoding", "br")]).await;
    assert_eq!(brotli.0, 415);
}

#[tokio::test]
async fn invalid_bodies_are_rejected_with_a_reason() {
    const MIB: usize = 1024 * 1024;
    let app = TestApp::start().await;
    let response = async |body: Vec<u8>, gzipped: bool| {
        let mut request = app.request().bearer_auth(app.token("acme")).body(body);
        if gzipped {
            request = request.header("Content-Encoding", "gzip");
        }
        let (status, response) = read(request.send().await.unwrap()).await;
        (status.as_u16(), response["message"].as_str().unwrap().to_owned())
    };
    let check = async |body: &[u8], status: u16, words: &str| {
        let (seen, message) = response(body.to_vec(), false).await;
        assert!(seen == status && message.contains(words), "{seen} {message}");
    };
    check(b"", 400, "the body is empty").await;
    check(b"{", 400, "at line 1 column 1").await;
    check(b"{\"a\xff\": 1}", 400, "not UTF-8").await;
    check(br#"{"a": 1, "a": 2}"#, 400, r#"the key "a" appears twice"#).await;
    check("[".repeat(100_000).as_bytes(), 400, "nested deeper than 64 levels").await;
    check(b"[]", 422, "1 field is not valid").await;
    check(br#"{"returns_portal_order": {"orders": []}}"#, 422, "1 field is not valid").await;
    check(br#"{"returns_portal_order": 1e400}"#, 400, "number out of range").await;
    check(&vec![b' '; 5 * MIB + 1], 413, "larger than 5242880 bytes").await;
    check(&vec![b' '; 5 * MIB], 400, "the body is empty").await;
    for value in [json!("a\0b"), json!(u64::MAX), json!(1.5), json!([]), json!(null), json!("")] {
        let mut orders = sample_orders(1);
        for key in ["identifier", "total_amount_cents", "currency", "created_at", "items"] {
            orders[0][key] = value.clone();
        }
        check(order_message(&orders).to_string().as_bytes(), 422, "fields are not valid").await;
    }

    let good = sample_message(1).to_string();
    assert_eq!(response(gzip(good.as_bytes()), true).await.0, 200);
    assert_eq!(response(gzip(&vec![b' '; 5 * MIB + 1]), true).await.0, 413);
    let half = gzip(good.as_bytes());
    assert_eq!(response(half[..half.len() / 2].to_vec(), true).await.0, 400);
    assert_eq!(response(good.into_bytes(), true).await.0, 400);
}

#[tokio::test]
async fn a_message_may_hold_five_hundred_orders() {
    let app = TestApp::start().await;
    let (status, response) = app.publish("acme", &sample_message(500)).await;
    assert_eq!((status, &response["message"]), (StatusCode::OK, &json!("500 orders: 500 stored")));
    let (status, _) = app.publish("acme", &sample_message(501)).await;
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY);
}
