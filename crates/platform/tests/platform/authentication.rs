//! Responses to missing, invalid and insufficient tokens, and the headers around them.

use std::sync::{Arc, Mutex};

use platform::Running;
use reqwest::{Method, Response, StatusCode, header};

use crate::{
    client, start,
    tokens::{Key, publish, start_with_jwks, wait_for_keys},
};

/// A service, and a key whose tokens it accepts.
pub(crate) async fn service_with_key() -> (Running, Key) {
    let key = Key::new("k1");
    let service = start_with_jwks(&publish(&Arc::new(Mutex::new(vec![key.public()])))).await;
    wait_for_keys(&service, &key.token(|_, _| {})).await;
    (service, key)
}

async fn get_orders(service: &Running, token: &str) -> Response {
    client().get(format!("{}/orders", service.url)).bearer_auth(token).send().await.unwrap()
}

fn challenge(response: &Response) -> (u16, &str) {
    let challenge = response.headers().get(header::WWW_AUTHENTICATE);
    (response.status().as_u16(), challenge.map_or("", |value| value.to_str().unwrap()))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_challenge_names_the_error_and_the_scope() {
    let (service, key) = service_with_key().await;
    let response = client().get(format!("{}/orders", service.url)).send().await.unwrap();
    assert_eq!(challenge(&response), (401, "Bearer"));
    let invalid = "Bearer error=\"invalid_token\", error_description=\"the bearer token";
    let response = get_orders(&service, "nonsense").await;
    assert_eq!(challenge(&response), (401, format!("{invalid} is not valid\"").as_str()));
    let expired = key.token(|_, claims| claims.exp = claims.iat - 1);
    let response = get_orders(&service, &expired).await;
    assert_eq!(challenge(&response), (401, format!("{invalid} has expired\"").as_str()));
    let other_scope = key.token(|_, claims| claims.scope = "returns".parse().unwrap());
    let response = get_orders(&service, &other_scope).await;
    let insufficient = "Bearer error=\"insufficient_scope\", scope=\"orders\"";
    assert_eq!(challenge(&response), (403, insufficient));
    let other_merchant = key.token(|_, claims| claims.merchant = Some("acme".parse().unwrap()));
    let request = client().get(format!("{}/orders", service.url)).bearer_auth(other_merchant);
    let response = request.header("x-service-id", "rival").send().await.unwrap();
    assert_eq!(challenge(&response), (403, "Bearer error=\"insufficient_scope\""));
    let response = get_orders(&service, &key.token(|_, _| {})).await;
    assert_eq!(challenge(&response), (200, ""));
    assert!(service.stop().await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_keeps_its_known_scopes() {
    let (service, key) = service_with_key().await;
    let rolled_out = key.token_with("scope", "archive orders reports".into());
    assert_eq!(get_orders(&service, &rolled_out).await.status(), StatusCode::OK);
    let unknown = key.token_with("scope", "archive".into());
    assert_eq!(get_orders(&service, &unknown).await.status(), StatusCode::FORBIDDEN);
    assert!(service.stop().await);
}

#[tokio::test(flavor = "multi_thread")]
async fn repeated_headers_are_rejected() {
    let (service, key) = service_with_key().await;
    let good = key.token(|_, _| {});
    let url = format!("{}/orders", service.url);
    for token in [&good, "nonsense"] {
        let twice = client().get(&url).bearer_auth(&good).bearer_auth(token).send().await.unwrap();
        assert_eq!(twice.status(), StatusCode::BAD_REQUEST);
    }
    for (name, values, status) in [
        ("api-version", ["3", "3"], StatusCode::OK),
        ("api-version", ["3", "2"], StatusCode::BAD_REQUEST),
        ("x-service-id", ["acme", "rival"], StatusCode::BAD_REQUEST),
    ] {
        let request = client().get(&url).bearer_auth(&good);
        let request = request.header(name, values[0]).header(name, values[1]);
        assert_eq!(request.send().await.unwrap().status(), status, "{name}: {values:?}");
    }
    assert!(service.stop().await);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_token_is_checked_before_the_other_headers() {
    let (service, key) = service_with_key().await;
    let good = key.token(|_, _| {});
    let unknown_key = Key::new("k9").token(|_, _| {});
    for (name, value, status) in [
        ("idempotency-key", "x".repeat(256), StatusCode::BAD_REQUEST),
        ("content-type", "text/plain".to_owned(), StatusCode::UNSUPPORTED_MEDIA_TYPE),
        ("content-encoding", "br".to_owned(), StatusCode::UNSUPPORTED_MEDIA_TYPE),
        ("content-length", "1048577".to_owned(), StatusCode::PAYLOAD_TOO_LARGE),
    ] {
        let send = async |token: Option<&str>| {
            let mut request = client().post(format!("{}/orders", service.url));
            if name != "content-type" {
                request = request.header("content-type", "application/json");
            }
            if name == "content-length" {
                request = request.body(vec![b' '; 1_048_577]);
            } else {
                request = request.header(name, &value).body("{}");
            }
            let request = token.into_iter().fold(request, reqwest::RequestBuilder::bearer_auth);
            request.send().await.unwrap().status()
        };
        assert_eq!(send(None).await, StatusCode::UNAUTHORIZED, "{name}");
        assert_eq!(send(Some(&unknown_key)).await, StatusCode::UNAUTHORIZED, "{name}");
        assert_eq!(send(Some(&good)).await, status, "{name}");
    }
    let two_versions = client().get(format!("{}/orders", service.url));
    let two_versions = two_versions.header("api-version", "3").header("api-version", "2");
    assert_eq!(two_versions.send().await.unwrap().status(), StatusCode::UNAUTHORIZED);
    assert!(service.stop().await);
}

#[tokio::test(flavor = "multi_thread")]
async fn head_is_get_without_a_body() {
    let (service, key) = service_with_key().await;
    let good = key.token(|_, _| {});
    for (path, status) in [
        ("/orders", StatusCode::OK),
        ("/healthz", StatusCode::OK),
        ("/openapi.json", StatusCode::OK),
        ("/nowhere", StatusCode::NOT_FOUND),
        ("/echo", StatusCode::METHOD_NOT_ALLOWED),
    ] {
        let send = async |method: Method| {
            let request = client().request(method, format!("{}{path}", service.url));
            request.bearer_auth(&good).header("x-request-id", "same").send().await.unwrap()
        };
        let get = send(Method::GET).await;
        let head = send(Method::HEAD).await;
        assert_eq!((head.status(), get.status()), (status, status), "{path}");
        let headers = |response: &Response| {
            let mut headers = response.headers().clone();
            headers.remove(header::DATE);
            headers
        };
        assert_eq!(headers(&head), headers(&get), "{path}");
        assert!(!get.bytes().await.unwrap().is_empty(), "{path}");
        assert!(head.bytes().await.unwrap().is_empty(), "{path}");
    }
    let anonymous = client().head(format!("{}/orders", service.url)).send().await.unwrap();
    assert_eq!(challenge(&anonymous), (401, "Bearer"));
    assert!(service.stop().await);
}

#[tokio::test(flavor = "multi_thread")]
async fn no_response_may_be_sniffed() {
    let service = start(&[("HTTP__REQUEST_TIMEOUT", "200ms")]).await;
    for (path, status) in [
        ("/address", StatusCode::OK),
        ("/metrics", StatusCode::OK),
        ("/nowhere", StatusCode::NOT_FOUND),
        ("/who", StatusCode::UNAUTHORIZED),
        ("/slow/60000", StatusCode::SERVICE_UNAVAILABLE),
    ] {
        let response = client().get(format!("{}{path}", service.url)).send().await.unwrap();
        assert_eq!(response.status(), status, "{path}");
        assert_eq!(response.headers()[header::X_CONTENT_TYPE_OPTIONS], "nosniff", "{path}");
    }
    assert!(service.stop().await);
}
