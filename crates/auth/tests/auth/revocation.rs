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

/// The first revocation that the other services are told of.
async fn announced(auth: &Auth) -> Value {
    eventually("the revocation is announced", SOON, async || {
        let letters = auth.service.namespace.peek("order-intake.token.revoked.v1").await;
        Some(serde_json::from_str::<Value>(letters.first()?["payload"].as_str()?).unwrap())
    })
    .await
}

/// When it will have been forgotten.
fn end(event: &Value) -> platform::Timestamp {
    event["data"]["expires_at"].as_str().unwrap().parse().unwrap()
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
    let event = announced(&auth).await;
    assert_eq!((&event["data"]["kind"], &event["data"]["id"]), (&json!("client"), &json!(id)));
    assert!(replica.stop().await);

    let auth = auth.restart().await;
    let (status, _) = auth.call_as(&token, Method::GET, "/v1/merchants/acme", None).await;
    assert_eq!(status, StatusCode::UNAUTHORIZED);
    auth.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn until_the_revocations_were_read_no_token_is_believed() {
    let auth = Auth::start().await;
    let token = auth.operator.clone();
    let sql = "ALTER TABLE revocations RENAME TO out_of_reach";
    auth.service.database.execute_raw(sql).await;
    let replica = testkit::launch::<auth::App>(
        &settings(&[]),
        platform::Clock::system(),
        &auth.service.database,
        &auth.service.namespace,
    )
    .await;
    let ready = async || {
        let answer = auth.http.get(format!("{}/readyz", replica.url)).send().await.unwrap();
        answer.json::<Value>().await.unwrap()
    };
    eventually("the replica has everything else", SOON, async || {
        let parts = ready().await["parts"].clone();
        assert_eq!(parts["revocations"], "not read yet");
        (parts["keys"] == "ok").then_some(())
    })
    .await;
    let at_replica = async || {
        let request = auth.http.get(format!("{}/v1/merchants", replica.url)).bearer_auth(&token);
        request.send().await.unwrap().status()
    };
    assert_eq!(at_replica().await, StatusCode::SERVICE_UNAVAILABLE);
    let sql = "ALTER TABLE out_of_reach RENAME TO revocations";
    auth.service.database.execute_raw(sql).await;
    eventually("the replica believes it", SOON, async || {
        (at_replica().await == StatusCode::OK).then_some(())
    })
    .await;
    assert!(replica.stop().await);
    auth.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_revoked_again_is_announced_again_and_recorded() {
    let auth = Auth::start().await;
    let (id, secret) = auth.add_client(None, &["warehouse"]).await;
    let token = auth.token(&id, &secret).await;
    for _ in 0..2 {
        let (status, _) = send(about(&auth, "/oauth/revoke", (&id, &secret), &token)).await;
        assert_eq!(status, StatusCode::OK);
    }
    for _ in 0..2 {
        auth.call(Method::POST, &format!("/v1/clients/{id}/revoke"), None).await;
    }
    let events = eventually("each is announced twice", SOON, async || {
        let letters = auth.service.namespace.peek("order-intake.token.revoked.v1").await;
        let read = |letter: &Value| {
            let event: Value = serde_json::from_str(letter["payload"].as_str().unwrap()).unwrap();
            event["data"].clone()
        };
        (letters.len() == 4).then(|| letters.iter().map(read).collect::<Vec<_>>())
    })
    .await;
    let kinds: Vec<_> = events.iter().map(|event| event["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["token", "token", "client", "client"]);
    assert!(!is_active(&auth, &token).await);
    let (_, audit) = auth.call(Method::GET, "/v1/audit", None).await;
    let revoked = |record: &&Value| record["action"] == "token.revoked";
    let revoked: Vec<_> = audit["records"].as_array().unwrap().iter().filter(revoked).collect();
    assert_eq!((revoked.len(), &revoked[0]["actor"]), (2, &json!(id)));
    assert_eq!(revoked[0]["detail"]["client_id"], json!(id));
    auth.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_revoked_token_is_remembered_until_it_would_have_expired() {
    let auth = Auth::with(&[("TOKENS__LIFETIME", "1h")]).await;
    let (id, secret) = auth.add_client(None, &["warehouse"]).await;
    let token = auth.token(&id, &secret).await;
    let (_, claims) = send(about(&auth, "/oauth/introspect", (&id, &secret), &token)).await;
    send(about(&auth, "/oauth/revoke", (&id, &secret), &token)).await;
    let event = announced(&auth).await;
    assert_eq!(end(&event).timestamp(), claims["exp"].as_i64().unwrap());
    auth.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_revoked_client_stays_out_for_as_long_as_its_tokens_of_longer_life() {
    let auth = Auth::with(&[("TOKENS__LIFETIME", "1h")]).await;
    let (id, _) = auth.add_client(None, &["warehouse"]).await;
    let granted_before = platform::Clock::system().now() + chrono::TimeDelta::seconds(90_000);
    auth.call(Method::POST, &format!("/v1/clients/{id}/revoke"), None).await;
    assert!(end(&announced(&auth).await) > granted_before);
    auth.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_recorded_does_not_happen() {
    let auth = Auth::start().await;
    auth.add_merchant("acme").await;
    let (id, secret) = auth.add_client(None, &["warehouse"]).await;
    let token = auth.token(&id, &secret).await;
    let database = &auth.service.database;
    database
        .execute_raw("ALTER TABLE audit_records ADD CONSTRAINT no_room CHECK (false) NOT VALID")
        .await;
    let failed = StatusCode::INTERNAL_SERVER_ERROR;
    assert_eq!(auth.call(Method::POST, "/v1/signing_keys/rotate", None).await.0, failed);
    assert_eq!(auth.call(Method::POST, "/v1/merchants/republish", None).await.0, failed);
    assert_eq!(send(about(&auth, "/oauth/revoke", (&id, &secret), &token)).await.0, failed);
    database.execute_raw("ALTER TABLE audit_records DROP CONSTRAINT no_room").await;
    assert!(is_active(&auth, &token).await);
    let (_, keys) = send(auth.request(Method::GET, "/.well-known/jwks.json")).await;
    assert_eq!(keys["keys"].as_array().unwrap().len(), 1);

    let (_, republished) = auth.call(Method::POST, "/v1/merchants/republish", None).await;
    assert_eq!(republished["merchants"], 1);
    let change = json!({"return_window_days": 60});
    auth.call(Method::PATCH, "/v1/merchants/acme", Some(change)).await;
    eventually("it is announced as added, once more, and as changed", SOON, async || {
        let letters = auth.service.namespace.peek("order-intake.merchant.changed.v1").await;
        let versions = letters.iter().map(|letter| {
            let event: Value = serde_json::from_str(letter["payload"].as_str().unwrap()).unwrap();
            event["data"]["merchant"]["version"].as_i64().unwrap()
        });
        let versions: Vec<_> = versions.collect();
        (versions.len() == 3).then(|| assert!(versions.is_sorted_by(|a, b| a < b), "{versions:?}"))
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
