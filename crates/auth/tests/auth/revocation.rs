//! Secrets that change and tokens that end early.

use reqwest::{Method, RequestBuilder, StatusCode, header};
use serde_json::{Value, json};
use testkit::eventually;

use crate::{Auth, OPERATOR, OPERATOR_SECRET, SOON, send, settings};

fn about(auth: &Auth, path: &str, (id, secret): (&str, &str), token: &str) -> RequestBuilder {
    let fields = format!("token={token}&client_id={id}&client_secret={secret}");
    let request = auth.request(Method::POST, path);
    request.header(header::CONTENT_TYPE, "application/x-www-form-urlencoded").body(fields)
}

async fn is_active(auth: &Auth, token: &str) -> bool {
    let (status, body) =
        send(about(auth, "/oauth/introspect", (OPERATOR, OPERATOR_SECRET), token)).await;
    assert_eq!(status, StatusCode::OK);
    body["active"].as_bool().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn two_secrets_work_during_a_rotation_and_a_third_ends_the_first() {
    let auth = Auth::start().await;
    let (id, first) = auth.add_client(None, &["warehouse"]).await;
    let rotate = async || {
        let (status, body) =
            auth.call(Method::POST, &format!("/v1/clients/{id}/rotate"), Some(json!({}))).await;
        assert_eq!(status, StatusCode::OK, "{body}");
        body["client_secret"].as_str().unwrap().to_owned()
    };
    let second = rotate().await;
    auth.token(&id, &first).await;
    auth.token(&id, &second).await;
    let third = rotate().await;
    assert_eq!(auth.grant(&id, &first).await.0, StatusCode::UNAUTHORIZED);
    auth.token(&id, &second).await;
    auth.token(&id, &third).await;
    let at_once = Some(json!({"overlap_seconds": 0}));
    let (_, body) = auth.call(Method::POST, &format!("/v1/clients/{id}/rotate"), at_once).await;
    for old in [&second, &third] {
        assert_eq!(auth.grant(&id, old).await.0, StatusCode::UNAUTHORIZED);
    }
    auth.token(&id, body["client_secret"].as_str().unwrap()).await;
    auth.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_revoked_client_is_out_everywhere_also_after_a_restart() {
    let auth = Auth::start().await;
    auth.add_merchant("acme").await;
    let (id, secret) = auth.add_client(Some("acme"), &["orders"]).await;
    let token = auth.token(&id, &secret).await;
    let replica = testkit::run::<auth::App>(
        &settings(&[]),
        platform::Clock::system(),
        &auth.service.database,
        &auth.service.namespace,
    )
    .await;
    let at_replica = async || {
        let request =
            auth.http.get(format!("{}/v1/merchants/acme", replica.url)).bearer_auth(&token);
        request.send().await.unwrap().status()
    };
    assert_eq!(at_replica().await, StatusCode::OK);
    let (status, body) = auth.call(Method::POST, &format!("/v1/clients/{id}/revoke"), None).await;
    assert_eq!((status, body["revoked_at"].is_string()), (StatusCode::OK, true));
    assert_eq!(
        auth.call_as(&token, Method::GET, "/v1/merchants/acme", None).await.0,
        StatusCode::UNAUTHORIZED
    );
    assert_eq!(auth.grant(&id, &secret).await.0, StatusCode::UNAUTHORIZED);
    eventually("the other replica refuses the token", SOON, async || {
        (at_replica().await == StatusCode::UNAUTHORIZED).then_some(())
    })
    .await;
    let event = eventually("the revocation is announced", SOON, async || {
        let letters = auth.service.namespace.peek("order-intake.token.revoked.v1").await;
        Some(serde_json::from_str::<Value>(letters.first()?["payload"].as_str()?).unwrap())
    })
    .await;
    assert_eq!((&event["data"]["kind"], &event["data"]["id"]), (&json!("client"), &json!(id)));
    assert!(replica.stop().await);

    let auth = auth.restart().await;
    eventually("it is still refused", SOON, async || {
        let (status, _) = auth.call_as(&token, Method::GET, "/v1/merchants/acme", None).await;
        (status == StatusCode::UNAUTHORIZED).then_some(())
    })
    .await;
    auth.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_revokes_its_own_tokens_and_only_those() {
    let auth = Auth::start().await;
    let (id, secret) = auth.add_client(None, &["warehouse"]).await;
    let (other_id, other_secret) = auth.add_client(None, &["carrier"]).await;
    let token = auth.token(&id, &secret).await;
    assert!(is_active(&auth, &token).await);
    let revoke = async |credentials, token: &str| {
        send(about(&auth, "/oauth/revoke", credentials, token)).await.0
    };
    assert_eq!(revoke((&other_id, &other_secret), &token).await, StatusCode::OK);
    assert!(is_active(&auth, &token).await, "another client revoked it");
    assert_eq!(revoke((&id, "wrong"), &token).await, StatusCode::UNAUTHORIZED);
    assert_eq!(revoke((&id, &secret), "not a token").await, StatusCode::OK);
    assert_eq!(revoke((&id, &secret), &token).await, StatusCode::OK);
    assert!(!is_active(&auth, &token).await);
    assert!(
        is_active(&auth, &auth.token(&id, &secret).await).await,
        "the client itself is still welcome"
    );
    auth.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_learns_only_of_its_own_tokens() {
    let auth = Auth::start().await;
    let (id, secret) = auth.add_client(None, &["warehouse"]).await;
    let token = auth.token(&id, &secret).await;
    let (_, own) = send(about(&auth, "/oauth/introspect", (&id, &secret), &token)).await;
    assert_eq!(
        (&own["active"], &own["client_id"], &own["scope"]),
        (&json!(true), &json!(id), &json!("warehouse"))
    );
    let (_, other) = send(about(&auth, "/oauth/introspect", (&id, &secret), &auth.operator)).await;
    assert_eq!(other, json!({"active": false}));
    auth.stop().await;
}
