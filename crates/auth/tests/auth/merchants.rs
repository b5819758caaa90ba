//! Tests of merchants: changes, access, lists and events.

use reqwest::{Method, StatusCode, header};
use serde_json::{Value, json};
use testkit::eventually;

use crate::app::{TIMEOUT, TestApp, send};

pub(crate) const QUEUE: &str = "order-intake.merchant.changed.v1";

/// Waits until a version of a merchant is published.
pub(crate) async fn published_version(app: &TestApp, version: &Value) -> Value {
    eventually("the merchant is published", TIMEOUT, async || {
        let events = app.events(QUEUE).await.into_iter();
        events
            .map(|event| event["merchant"].clone())
            .find(|merchant| merchant["version"] == *version)
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_is_stored_published_and_audited() {
    let app = TestApp::start().await;
    let merchant = app.create_merchant("acme").await;
    assert_eq!(merchant["return_window_days"], 30);
    let change = json!({"return_window_days": 60, "strict_amounts": true, "final_sale_tags": ["Clearance"],
        "support_contact": {"email": "help@acme.example"}, "base_url": "https://acme.example/hooks"});
    let (status, changed) = app.call(Method::PATCH, "/v1/merchants/acme", Some(change)).await;
    assert_eq!(status, StatusCode::OK, "{changed}");
    assert!(changed["version"].as_i64() > merchant["version"].as_i64(), "{changed}");
    assert_eq!(changed["return_window_days"], 60);
    let (_, shown) = app.call(Method::GET, "/v1/merchants/acme", None).await;
    assert_eq!(shown, changed);

    let event = published_version(&app, &changed["version"]).await;
    assert_eq!(event["identifier"], "acme");
    assert_eq!(event["settings"]["support_contact"]["email"], "help@acme.example");
    assert_eq!(event["settings"]["strict_amounts"], true);

    let (_, audit) = app.call(Method::GET, "/v1/audit?merchant=acme", None).await;
    let records = audit["records"].as_array().unwrap();
    let actions: Vec<_> = records.iter().map(|record| record["action"].as_str().unwrap()).collect();
    assert_eq!(actions, ["merchant.updated", "merchant.created"]);
    assert_eq!(records[0]["actor"], "operator");
    assert_eq!(records[0]["detail"]["return_window_days"], 60);
}

#[tokio::test(flavor = "multi_thread")]
async fn express_max_weight_and_concept_are_unset_until_they_are_set() {
    let app = TestApp::start().await;
    let created = app.create_merchant("acme").await;
    assert_eq!((&created["express_max_weight"], &created["concept"]), (&json!(null), &json!(null)));
    assert_eq!(created["parcel_max_weight"], json!(null));
    let change =
        json!({"express_max_weight": 2.5, "parcel_max_weight": 20, "concept": "Acme Sport"});
    let (status, changed) = app.call(Method::PATCH, "/v1/merchants/acme", Some(change)).await;
    assert_eq!(status, StatusCode::OK, "{changed}");
    let event = published_version(&app, &changed["version"]).await;
    for settings in [&changed, &event["settings"]] {
        assert_eq!(settings["express_max_weight"], 2.5);
        assert_eq!(settings["parcel_max_weight"], 20.0);
        assert_eq!(settings["concept"], "Acme Sport");
    }
    let cleared = json!({"express_max_weight": null, "concept": null});
    let (_, cleared) = app.call(Method::PATCH, "/v1/merchants/acme", Some(cleared)).await;
    assert_eq!((&cleared["express_max_weight"], &cleared["concept"]), (&json!(null), &json!(null)));
    let invalid = json!({"express_max_weight": -1, "concept": ""});
    let (status, body) = app.call(Method::PATCH, "/v1/merchants/acme", Some(invalid)).await;
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY);
    assert_eq!(body["errors"][0]["field"], "$.express_max_weight");
    assert_eq!(body["errors"][1]["field"], "$.concept");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_token_is_checked_before_the_body() {
    let app = TestApp::start().await;
    for (method, path) in [
        (Method::POST, "/v1/merchants"),
        (Method::PATCH, "/v1/merchants/acme"),
        (Method::PUT, "/v1/merchants/acme/endpoints/rma"),
        (Method::POST, "/v1/merchants/acme/endpoints/rma/rotate_secret"),
        (Method::POST, "/v1/clients"),
        (Method::POST, "/v1/clients/bh_1/rotate"),
    ] {
        let request = || app.request(method.clone(), path).body("{");
        for request in [request(), request().bearer_auth("not-a-token")] {
            let (status, body) = send(request).await;
            assert_eq!(status, StatusCode::UNAUTHORIZED, "{path}: {body}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_error_names_every_invalid_field() {
    let app = TestApp::start().await;
    let invalid = json!({"identifier": "No!", "currency": "dollars", "strict_amounts": "yes"});
    let (status, body) = app.call(Method::POST, "/v1/merchants", Some(invalid)).await;
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY);
    let errors = body["errors"].as_array().unwrap();
    let fields: Vec<_> = errors
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
}

#[tokio::test(flavor = "multi_thread")]
async fn invalid_merchant_requests_are_rejected() {
    let app = TestApp::start().await;
    app.create_merchant("acme").await;
    let call = async |method, path, body| app.call(method, path, body).await.0;
    let duplicate = Some(json!({"identifier": "acme", "name": "Again"}));
    assert_eq!(call(Method::POST, "/v1/merchants", duplicate).await, StatusCode::CONFLICT);
    let invalid_limit = "/v1/merchants?limit=many";
    assert_eq!(call(Method::GET, invalid_limit, None).await, StatusCode::BAD_REQUEST);
    assert_eq!(call(Method::GET, "/v1/merchants/nobody", None).await, StatusCode::NOT_FOUND);
    let (status, body) = app.call(Method::PUT, "/v1/merchants", Some(json!({}))).await;
    assert_eq!(status, StatusCode::METHOD_NOT_ALLOWED, "{body}");
    let request = app.request(Method::POST, "/v1/merchants").bearer_auth(&app.operator_token);
    assert_eq!(send(request.body("hello")).await.0, StatusCode::UNSUPPORTED_MEDIA_TYPE);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_merchant_can_read_only_itself() {
    let app = TestApp::start().await;
    app.create_merchant("acme").await;
    app.create_merchant("rival").await;
    let (id, secret) = app.create_client(Some("acme"), &["orders"]).await;
    let token = app.token(&id, &secret).await;
    let get = async |path: &str| app.call_as(&token, Method::GET, path, None).await.0;
    assert_eq!(get("/v1/merchants/acme").await, StatusCode::OK);
    assert_eq!(get("/v1/merchants/rival").await, StatusCode::NOT_FOUND);
    assert_eq!(get("/v1/merchants/nobody").await, StatusCode::NOT_FOUND);
    assert_eq!(get("/v1/merchants").await, StatusCode::FORBIDDEN);
    assert_eq!(get("/v1/audit").await, StatusCode::FORBIDDEN);
    let (status, _) = app.call_as(&token, Method::POST, "/v1/clients", Some(json!({}))).await;
    assert_eq!(status, StatusCode::FORBIDDEN);

    let anonymous = app.request(Method::GET, "/v1/merchants").send().await.unwrap();
    assert_eq!(anonymous.status(), StatusCode::UNAUTHORIZED);
    assert_eq!(anonymous.headers()[header::WWW_AUTHENTICATE], "Bearer");
    for forged in ["garbage", &format!("{token}x"), "a.b.c"] {
        let (status, _) = app.call_as(forged, Method::GET, "/v1/merchants/acme", None).await;
        assert_eq!(status, StatusCode::UNAUTHORIZED);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn merchants_are_found_by_the_words_of_identifier_and_name() {
    let app = TestApp::alone().await;
    for (id, name) in [
        ("acme-outdoor", "Acme"),
        ("beta", "Beta OUTDOOR Gear"),
        ("gamma", "O'Neil's | Gamma & Sons"),
        ("zeta", "Zeta"),
    ] {
        let body = json!({"identifier": id, "name": name});
        let (status, created) = app.call(Method::POST, "/v1/merchants", Some(body)).await;
        assert_eq!(status, StatusCode::CREATED, "{created}");
    }
    let find = async |query: &str| -> Vec<String> {
        let (status, page) = app.call(Method::GET, &format!("/v1/merchants?{query}"), None).await;
        assert_eq!(status, StatusCode::OK, "{query}: {page}");
        let merchants = page["merchants"].as_array().unwrap().iter();
        merchants.map(|merchant| merchant["identifier"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(find("q=outd").await, ["acme-outdoor", "beta"]);
    assert_eq!(find("q=outd&after=acme-outdoor").await, ["beta"]);
    assert_eq!(find("q=GEAR+bet").await, ["beta"]);
    assert_eq!(find("q=acme-out").await, ["acme-outdoor"]);
    assert_eq!(find("q=o'neil").await, ["gamma"]);
    assert_eq!(find("q=%20").await.len(), 4);
    for none in ["q=acme+zeta", "q=eta+outdoor", "q=%7C", "q=%5C", "q=%27%29%3B"] {
        assert_eq!(find(none).await, Vec::<String>::new(), "{none}");
    }
    let (status, _) = app.call(Method::GET, "/v1/merchants?q=%00", None).await;
    assert_eq!(status, StatusCode::BAD_REQUEST);
    app.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_of_a_list_are_consecutive() {
    let app = TestApp::alone().await;
    for id in ["a", "b", "c", "d", "e", "f"] {
        app.create_merchant(id).await;
    }
    let mut identifiers = Vec::new();
    let mut after = String::new();
    loop {
        let path = format!("/v1/merchants?limit=2&after={after}");
        let (_, page) = app.call(Method::GET, &path, None).await;
        let merchants = page["merchants"].as_array().unwrap();
        assert_eq!(merchants.len(), 2, "there are three full pages and no empty one");
        let identifier = |merchant: &Value| merchant["identifier"].as_str().unwrap().to_owned();
        identifiers.extend(merchants.iter().map(identifier));
        match page["next"].as_str() {
            Some(next) => after = next.to_owned(),
            None => break,
        }
    }
    assert_eq!(identifiers, ["a", "b", "c", "d", "e", "f"]);
    app.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn merchants_can_be_republished() {
    let app = TestApp::alone().await;
    let created = app.create_merchant("acme").await;
    published_version(&app, &created["version"]).await;
    let (status, body) = app.call(Method::POST, "/v1/merchants/republish", None).await;
    assert_eq!((status, &body["merchants"]), (StatusCode::OK, &json!(1)));
    eventually("the merchant is published twice", TIMEOUT, async || {
        (app.events(QUEUE).await.len() == 2).then_some(())
    })
    .await;
    app.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn versions_published_after_a_restore_are_newer_than_lost_versions() {
    let app = TestApp::alone().await;
    let created = app.create_merchant("acme").await;
    let database = &app.service.database;
    database.execute_raw("CREATE TABLE backup AS TABLE merchants").await;
    let change = |days: u32| Some(json!({"return_window_days": days}));
    let mut lost = json!(null);
    for days in 50..60 {
        (_, lost) = app.call(Method::PATCH, "/v1/merchants/acme", change(days)).await;
    }
    database
        .execute_raw(
            "UPDATE merchants SET version = backup.version, document = backup.document FROM backup",
        )
        .await;
    app.call(Method::POST, "/v1/merchants/republish", None).await;
    let (_, restored) = app.call(Method::GET, "/v1/merchants/acme", None).await;
    assert!(restored["version"].as_i64() > lost["version"].as_i64(), "{restored}");
    let event = published_version(&app, &restored["version"]).await;
    assert_eq!(event["settings"]["return_window_days"], created["return_window_days"]);
    let (_, changed) = app.call(Method::PATCH, "/v1/merchants/acme", change(70)).await;
    assert!(changed["version"].as_i64() > restored["version"].as_i64(), "{changed}");
    app.stop().await;
}
