//! Attempts at endpoints that take OAuth tokens.

use std::time::Duration;

use futures_util::future::join_all;
use serde_json::json;

use super::{
    EndpointClient, ResponseBody, TestMerchant, Tokens, client, decide, deliver, endpoint,
    endpoint_client, oauth,
};
use crate::outcome::{Decision, Outcome};

#[tokio::test]
async fn a_401_refreshes_the_token_and_is_no_attempt() {
    let merchant = TestMerchant::new();
    let endpoint = endpoint(&merchant.running.url("/rmas"), &oauth(&merchant));
    let endpoint_client = endpoint_client(5000);
    let (_, first) = deliver(&endpoint_client, &endpoint, ResponseBody::Ignored).await;
    assert_eq!(decide(&first, 1), Decision::Delivered);
    let expire = json!([{"do": "expire_token", "times": "always"}]);
    merchant.behave("/rmas", expire).await;
    let (unauthorized, second) = deliver(&endpoint_client, &endpoint, ResponseBody::Ignored).await;
    assert_eq!(decide(&second, 6), Decision::Delivered);
    assert_eq!(unauthorized.unwrap().outcome, Outcome::Unauthorized);

    let entries = merchant.journal("/rmas").await.entries;
    let tokens: Vec<_> =
        entries.iter().map(|entry| entry.headers["authorization"].as_str().unwrap()).collect();
    let token = |number: u32| format!("Bearer sandbox-token-{number}");
    assert_eq!(tokens, [token(1), token(1), token(2)]);
    assert!(entries.iter().all(|entry| entry.headers["webhook-id"] == "msg_1"));
}

#[tokio::test]
async fn a_second_401_is_a_failed_attempt() {
    let merchant = TestMerchant::new();
    let endpoint = endpoint(&merchant.running.url("/rmas"), &oauth(&merchant));
    let always = json!([{"do": "respond", "status": 401, "times": "always"}]);
    merchant.behave("/rmas", always).await;
    let (_, attempt) = deliver(&endpoint_client(5000), &endpoint, ResponseBody::Ignored).await;
    assert_eq!(attempt.outcome, Outcome::Unauthorized);
    assert!(matches!(decide(&attempt, 1), Decision::RetryAt(_)));
    assert_eq!(decide(&attempt, 6), Decision::Dead);
    assert_eq!(merchant.journal("/rmas").await.entries.len(), 2);
}

#[tokio::test]
async fn only_a_401_refreshes_the_token() {
    let merchant = TestMerchant::new();
    let endpoint = endpoint(&merchant.running.url("/rmas"), &oauth(&merchant));
    merchant.behave("/rmas", json!([{"do": "respond", "status": 403, "times": "always"}])).await;
    let (unauthorized, _) = deliver(&endpoint_client(5000), &endpoint, ResponseBody::Ignored).await;
    assert!(unauthorized.is_none());
    assert_eq!(merchant.journal("/rmas").await.entries.len(), 1);
}

#[tokio::test]
async fn a_message_is_retried_when_the_token_server_fails() {
    let merchant = TestMerchant::new();
    let endpoint = endpoint(&merchant.running.url("/rmas"), &oauth(&merchant));
    let failing = json!([{"do": "respond", "status": 410}, {"do": "hang"}]);
    merchant.behave("/oauth/token", failing).await;
    for _ in 0..2 {
        let (_, attempt) = deliver(&endpoint_client(300), &endpoint, ResponseBody::Ignored).await;
        assert!(matches!(attempt.outcome, Outcome::TokenRefused(_)), "{attempt:?}");
        assert!(matches!(decide(&attempt, 1), Decision::RetryAt(_)));
    }
    assert!(merchant.journal("/rmas").await.entries.is_empty());
}

#[tokio::test]
async fn a_thousand_concurrent_401s_cause_one_token_request() {
    let merchant = TestMerchant::new();
    let endpoint = endpoint(&merchant.running.url("/rmas"), &oauth(&merchant));
    // A busy machine needs long for a thousand connections.
    let timeout = Duration::from_secs(300);
    let tokens = Tokens::new(client(), timeout);
    let endpoint_client = EndpointClient { tokens, timeout, ..endpoint_client(5000) };
    deliver(&endpoint_client, &endpoint, ResponseBody::Ignored).await;
    let expire = json!([{"do": "expire_token", "times": "always"}]);
    merchant.behave("/rmas", expire).await;
    let attempts = (0..1000).map(|_| deliver(&endpoint_client, &endpoint, ResponseBody::Ignored));
    let attempts = join_all(attempts).await;
    for (_, attempt) in &attempts {
        assert_eq!(decide(attempt, 1), Decision::Delivered, "{attempt:?}");
    }
    let issued = merchant.request(reqwest::Method::GET, "/tokens", &json!({})).await;
    assert_eq!(issued, json!({"issued": 2}));
}
