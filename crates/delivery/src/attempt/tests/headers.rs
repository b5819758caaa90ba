//! Headers in the attempt log.

use serde_json::Map;

use super::*;
use crate::attempt::{MessageFacts, derived_headers, parse_headers};

#[tokio::test]
async fn the_log_has_the_headers_that_the_merchant_received() {
    let merchant = TestMerchant::new();
    let key = Authentication::ApiKey { header: "x-api-key".into(), key: "k".into() };
    let endpoint = endpoint(&merchant.running.url("/rmas"), &key);
    let (_, attempt) = deliver(&endpoint_client(5000), &endpoint, ResponseBody::Ignored).await;
    let mut sent = merchant.journal("/rmas").await.entries.remove(0).headers;
    for secret in ["x-api-key", "x-tenant"] {
        sent[secret] = json!("********");
    }
    assert!(sent["webhook-signature"].as_str().unwrap().starts_with("v1,"), "{sent:?}");
    let facts = MessageFacts {
        id: "msg_1",
        merchant: "blue",
        event: "rma.created",
        sequence: 7,
        body_bytes: BODY.len(),
    };
    let derived = derived_headers(&facts, attempt.started_at);
    let logged = parse_headers(&attempt.headers.request).chain(derived);
    let logged: Map<String, Value> =
        logged.map(|(name, value)| (name, Value::from(value))).collect();
    assert_eq!(logged, sent);
    let response = attempt.headers.response;
    assert!(response.contains("content-type: application/json\n"), "{response}");
}

#[tokio::test]
async fn an_attempt_without_a_request_has_no_headers() {
    let merchant = TestMerchant::new();
    merchant.behave("/oauth/token", json!([{"do": "respond", "status": 400}])).await;
    let endpoint = endpoint(&merchant.running.url("/rmas"), &oauth(&merchant));
    let (_, attempt) = deliver(&endpoint_client(5000), &endpoint, ResponseBody::Ignored).await;
    assert!(matches!(attempt.outcome, Outcome::TokenRefused(_)), "{attempt:?}");
    assert_eq!((attempt.headers.request.as_str(), attempt.headers.response.as_str()), ("", ""));
}
