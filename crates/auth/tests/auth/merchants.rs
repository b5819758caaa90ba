//! What operators do, and what nobody else may.

use std::time::Duration;

use reqwest::{Method, StatusCode, header};
use serde_json::{Value, json};
use testkit::eventually;

use crate::{Auth, SOON, send};

const QUEUE: &str = "order-intake.merchant.changed.v1";

async fn announced(auth: &Auth, version: &Value) -> Value {
    eventually("the change is announced", SOON, async || {
        let letters = auth.service.namespace.peek(QUEUE).await;
        let events = letters.iter().map(|letter| {
            serde_json::from_str::<Value>(letter["payload"].as_str().unwrap()).unwrap()
        });
        events
            .map(|event| event["data"]["merchant"].clone())
            .find(|merchant| merchant["version"] == *version)
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_merchant_is_added_changed_shown_announced_and_recorded() {
    let auth = Auth::start().await;
    let merchant = auth.add_merchant("acme").await;
    assert_eq!(merchant["return_window_days"], 30);
    let change = json!({"return_window_days": 60, "strict_amounts": true, "final_sale_tags": ["Clearance"],
        "support_contact": {"email": "help@acme.example"}, "base_url": "https://acme.example/hooks"});
    let (status, changed) = auth.call(Method::PATCH, "/v1/merchants/acme", Some(change)).await;
    assert_eq!(status, StatusCode::OK, "{changed}");
    assert!(changed["version"].as_i64() > merchant["version"].as_i64(), "{changed}");
    assert_eq!(changed["return_window_days"], 60);
    let (_, shown) = auth.call(Method::GET, "/v1/merchants/acme", None).await;
    assert_eq!(shown, changed);

    let event = announced(&auth, &changed["version"]).await;
    assert_eq!(event["identifier"], "acme");
    assert_eq!(event["settings"]["support_contact"]["email"], "help@acme.example");
    assert_eq!(event["settings"]["strict_amounts"], true);

    let (_, audit) = auth.call(Method::GET, "/v1/audit?merchant=acme", None).await;
    let actions: Vec<_> = audit["records"]
        .as_array()
        .unwrap()
        .iter()
        .map(|r| r["action"].as_str().unwrap())
        .collect();
    assert_eq!(actions, ["merchant.changed", "merchant.added"]);
    assert_eq!(audit["records"][0]["actor"], "operator");
    assert_eq!(audit["records"][0]["detail"]["return_window_days"], 60);
    auth.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_endpoints_secrets_are_shown_once_sealed_at_rest_and_rotated() {
    let auth = Auth::start().await;
    auth.add_merchant("acme").await;
    let endpoint = json!({"url": "https://acme.example/rmas", "headers": {"X-Shop": "1"},
        "authentication": {"kind": "basic", "username": "u", "password": "open-sesame"}, "timeout_ms": 5000});
    let path = "/v1/merchants/acme/endpoints/rma";
    let (status, set) = auth.call(Method::PUT, path, Some(endpoint.clone())).await;
    assert_eq!(status, StatusCode::OK, "{set}");
    let secret = set["signing_secret"].as_str().unwrap().to_owned();
    assert!(secret.starts_with("whsec_"));
    assert_eq!(set["endpoint"]["authentication"]["password"], "********");
    let (_, again) = auth.call(Method::PUT, path, Some(endpoint)).await;
    assert_eq!(again.get("signing_secret"), None);

    let (_, rotated) = auth
        .call(Method::POST, &format!("{path}/rotate_secret"), Some(json!({"overlap_seconds": 60})))
        .await;
    assert_ne!(rotated["signing_secret"].as_str().unwrap(), secret);
    let secrets = rotated["endpoint"]["signing_secrets"].as_array().unwrap();
    assert_eq!(secrets.len(), 2);
    assert!(secrets[0]["expires_at"].is_null() && secrets[1]["expires_at"].is_string());

    let (_, paused) = auth.call(Method::POST, &format!("{path}/pause"), None).await;
    assert_eq!(paused["endpoints"]["rma"]["paused"], true);
    let (_, resumed) = auth.call(Method::POST, &format!("{path}/resume"), None).await;
    assert_eq!(resumed["endpoints"]["rma"]["paused"], false);

    let event = announced(&auth, &resumed["version"]).await.to_string();
    assert!(!event.contains("open-sesame") && !event.contains("whsec_"), "a secret is in an event");
    let (_, audit) = auth.call(Method::GET, "/v1/audit", None).await;
    assert!(!audit.to_string().contains("open-sesame"), "a secret is on record");

    assert_eq!(auth.call(Method::DELETE, path, None).await.0, StatusCode::NO_CONTENT);
    assert_eq!(auth.call(Method::DELETE, path, None).await.0, StatusCode::NOT_FOUND);
    auth.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn bad_input_is_refused_with_every_failing_field() {
    let auth = Auth::start().await;
    auth.add_merchant("acme").await;
    let bad = json!({"identifier": "No!", "currency": "dollars", "strict_amounts": "yes"});
    let (status, body) = auth.call(Method::POST, "/v1/merchants", Some(bad)).await;
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY);
    let fields: Vec<_> = body["errors"]
        .as_array()
        .unwrap()
        .iter()
        .map(|error| (error["field"].as_str().unwrap(), error["code"].as_str().unwrap()))
        .collect();
    assert_eq!(
        fields,
        [
            ("$.identifier", "invalid"),
            ("$.name", "missing_field"),
            ("$.currency", "invalid"),
            ("$.strict_amounts", "invalid_type"),
        ]
    );
    assert!(body["request_id"].is_string());
    let taken = json!({"identifier": "acme", "name": "Again"});
    assert_eq!(auth.call(Method::POST, "/v1/merchants", Some(taken)).await.0, StatusCode::CONFLICT);
    let lonely = json!({"name": "x", "scopes": ["orders"], "merchant": "nobody"});
    assert_eq!(auth.call(Method::POST, "/v1/clients", Some(lonely)).await.0, StatusCode::NOT_FOUND);
    let mighty = json!({"name": "x", "scopes": ["operator"], "merchant": "acme"});
    assert_eq!(
        auth.call(Method::POST, "/v1/clients", Some(mighty)).await.0,
        StatusCode::UNPROCESSABLE_ENTITY
    );
    let nowhere = auth.call(Method::PUT, "/v1/merchants/acme/endpoints/rma", Some(json!({}))).await;
    assert_eq!(nowhere.0, StatusCode::CONFLICT, "{}", nowhere.1);
    let variants = "/v1/merchants/acme/endpoints/exchange-variants";
    let placeless = json!({"url": "https://acme.example/variants"});
    let refused = auth.call(Method::PUT, variants, Some(placeless)).await;
    assert_eq!(refused.0, StatusCode::UNPROCESSABLE_ENTITY, "{}", refused.1);
    let place = json!({"url": "https://acme.example/sku/{variant_identifier}/variants"});
    let (status, set) = auth.call(Method::PUT, variants, Some(place)).await;
    assert_eq!((status, set.get("signing_secret")), (StatusCode::OK, None), "{set}");
    let unsigned =
        auth.call(Method::POST, &format!("{variants}/rotate_secret"), Some(json!({}))).await;
    assert_eq!(unsigned.0, StatusCode::UNPROCESSABLE_ENTITY, "{}", unsigned.1);
    let odd =
        auth.call(Method::PUT, "/v1/merchants/acme/endpoints/telegram", Some(json!({}))).await;
    assert_eq!(odd.0, StatusCode::NOT_FOUND);
    assert_eq!(
        auth.call(Method::GET, "/v1/merchants?limit=many", None).await.0,
        StatusCode::BAD_REQUEST
    );
    assert_eq!(auth.call(Method::GET, "/v1/merchants/nobody", None).await.0, StatusCode::NOT_FOUND);
    let (status, body) = auth.call(Method::PUT, "/v1/merchants", Some(json!({}))).await;
    assert_eq!(status, StatusCode::METHOD_NOT_ALLOWED, "{body}");
    let plain =
        auth.request(Method::POST, "/v1/merchants").bearer_auth(&auth.operator).body("hello");
    assert_eq!(send(plain).await.0, StatusCode::UNSUPPORTED_MEDIA_TYPE);
    auth.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn merchants_see_themselves_and_nothing_else() {
    let auth = Auth::start().await;
    auth.add_merchant("acme").await;
    auth.add_merchant("rival").await;
    let (id, secret) = auth.add_client(Some("acme"), &["orders"]).await;
    let token = auth.token(&id, &secret).await;
    assert_eq!(
        auth.call_as(&token, Method::GET, "/v1/merchants/acme", None).await.0,
        StatusCode::OK
    );
    let rival = auth.call_as(&token, Method::GET, "/v1/merchants/rival", None).await;
    let nobody = auth.call_as(&token, Method::GET, "/v1/merchants/nobody", None).await;
    assert_eq!((rival.0, nobody.0), (StatusCode::NOT_FOUND, StatusCode::NOT_FOUND));
    assert_eq!(
        auth.call_as(&token, Method::GET, "/v1/merchants", None).await.0,
        StatusCode::FORBIDDEN
    );
    assert_eq!(
        auth.call_as(&token, Method::POST, "/v1/clients", Some(json!({}))).await.0,
        StatusCode::FORBIDDEN
    );
    assert_eq!(auth.call_as(&token, Method::GET, "/v1/audit", None).await.0, StatusCode::FORBIDDEN);

    let anonymous = auth.request(Method::GET, "/v1/merchants").send().await.unwrap();
    assert_eq!(anonymous.status(), StatusCode::UNAUTHORIZED);
    assert_eq!(anonymous.headers()[header::WWW_AUTHENTICATE], "Bearer");
    for forged in ["garbage", &format!("{token}x"), "a.b.c"] {
        assert_eq!(
            auth.call_as(forged, Method::GET, "/v1/merchants/acme", None).await.0,
            StatusCode::UNAUTHORIZED
        );
    }
    auth.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_go_on_where_the_page_before_ended() {
    let auth = Auth::start().await;
    for id in ["a", "b", "c", "d", "e", "f"] {
        auth.add_merchant(id).await;
    }
    let (mut seen, mut after) = (Vec::new(), String::new());
    loop {
        let (_, page) =
            auth.call(Method::GET, &format!("/v1/merchants?limit=2&after={after}"), None).await;
        let merchants = page["merchants"].as_array().unwrap();
        assert_eq!(merchants.len(), 2, "there are three full pages and no empty one");
        seen.extend(
            merchants.iter().map(|merchant| merchant["identifier"].as_str().unwrap().to_owned()),
        );
        match page["next"].as_str() {
            Some(next) => after = next.to_owned(),
            None => break,
        }
    }
    assert_eq!(seen, ["a", "b", "c", "d", "e", "f"]);
    auth.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn merchants_are_announced_again_on_demand() {
    let auth = Auth::start().await;
    let added = auth.add_merchant("acme").await;
    announced(&auth, &added["version"]).await;
    let (status, body) = auth.call(Method::POST, "/v1/merchants/republish", None).await;
    assert_eq!((status, &body["merchants"]), (StatusCode::OK, &json!(1)));
    eventually("it was announced twice", Duration::from_secs(10), async || {
        (auth.service.namespace.peek(QUEUE).await.len() == 2).then_some(())
    })
    .await;
    auth.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restored_database_announces_newer_versions_than_it_has_forgotten() {
    let auth = Auth::start().await;
    let added = auth.add_merchant("acme").await;
    let database = &auth.service.database;
    database.execute_raw("CREATE TABLE backup AS TABLE merchants").await;
    let change = |days: u32| Some(json!({"return_window_days": days}));
    let mut forgotten = json!(null);
    for days in 50..60 {
        (_, forgotten) = auth.call(Method::PATCH, "/v1/merchants/acme", change(days)).await;
    }
    database
        .execute_raw(
            "UPDATE merchants SET version = backup.version, document = backup.document FROM backup",
        )
        .await;
    auth.call(Method::POST, "/v1/merchants/republish", None).await;
    let (_, shown) = auth.call(Method::GET, "/v1/merchants/acme", None).await;
    assert!(shown["version"].as_i64() > forgotten["version"].as_i64(), "{shown}");
    let told = announced(&auth, &shown["version"]).await;
    assert_eq!(told["settings"]["return_window_days"], added["return_window_days"]);
    let (_, changed) = auth.call(Method::PATCH, "/v1/merchants/acme", change(70)).await;
    assert!(changed["version"].as_i64() > shown["version"].as_i64(), "{changed}");
    auth.stop().await;
}
