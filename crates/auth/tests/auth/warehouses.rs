//! Tests of warehouses.

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::app::TestApp;
use crate::merchants::published_version;
use crate::person::invalid_fields;

const WAREHOUSES: &str = "/v1/merchants/acme/warehouses";
const RENO: &str = "/v1/merchants/acme/warehouses/reno";

fn reno() -> Value {
    json!({
        "external_identifier": "DC-7",
        "address": {
            "name": "Dock 7", "street": "7 Dock Street", "city": "Reno", "state": "NV", "zip": "89501",
        },
        "settings": { "stock_transfer_identifier": "STO-7" },
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_warehouse_is_set_listed_published_and_deleted() {
    let app = TestApp::start().await;
    app.create_merchant("acme").await;
    let (status, set) = app.call(Method::PUT, RENO, Some(reno())).await;
    assert_eq!(status, StatusCode::OK, "{set}");
    assert_eq!((&set["identifier"], &set["external_identifier"]), (&json!("reno"), &json!("DC-7")));
    assert_eq!(app.call(Method::GET, RENO, None).await, (StatusCode::OK, set.clone()));
    let (_, list) = app.call(Method::GET, WAREHOUSES, None).await;
    assert_eq!(list, json!({ "warehouses": [set] }));
    let (_, merchant) = app.call(Method::GET, "/v1/merchants/acme", None).await;
    let event = published_version(&app, &merchant["version"]).await.to_string();
    assert!(event.contains("STO-7"), "{event}");
    let records = format!("{:?}", app.audit_records().await);
    assert!(records.contains("warehouse.set"), "{records}");

    assert_eq!(app.call(Method::DELETE, RENO, None).await.0, StatusCode::NO_CONTENT);
    for method in [Method::GET, Method::DELETE] {
        let (status, missing) = app.call(method, RENO, None).await;
        assert_eq!(status, StatusCode::NOT_FOUND);
        assert_eq!(missing["message"], "merchant acme has no warehouse reno");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn one_warehouse_receives_returns() {
    let app = TestApp::start().await;
    app.create_merchant("acme").await;
    let mut receiving = reno();
    receiving["settings"] = json!({ "country_code": "US", "receives_returns": true });
    let oslo = format!("{WAREHOUSES}/oslo");
    for path in [RENO, &oslo] {
        let (status, set) = app.call(Method::PUT, path, Some(receiving.clone())).await;
        assert_eq!(status, StatusCode::OK, "{set}");
        assert_eq!(set["settings"]["receives_returns"], true);
    }
    let (_, first) = app.call(Method::GET, RENO, None).await;
    assert_eq!(
        first["settings"],
        json!({ "stock_transfer_identifier": null, "country_code": "US" })
    );
    // A label needs the whole address.
    receiving["settings"]["country_code"] = Value::Null;
    let mut nowhere = json!({ "settings": { "country_code": "US", "receives_returns": true } });
    for incomplete in [&receiving, &nowhere] {
        let (status, body) = app.call(Method::PUT, RENO, Some(incomplete.clone())).await;
        assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{body}");
        assert_eq!(invalid_fields(&body), ["$.settings"]);
    }
    nowhere["settings"] = json!({ "country_code": "U1", "receives_returns": null });
    let (_, body) = app.call(Method::PUT, RENO, Some(nowhere)).await;
    assert_eq!(invalid_fields(&body), ["$.settings.country_code", "$.settings.receives_returns"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn invalid_warehouses_are_rejected() {
    let app = TestApp::start().await;
    app.create_merchant("acme").await;
    let mut incomplete = reno();
    incomplete["address"].as_object_mut().unwrap().remove("zip");
    incomplete["colour"] = json!("red");
    let (status, body) = app.call(Method::PUT, RENO, Some(incomplete)).await;
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY);
    let errors = body["errors"].as_array().unwrap();
    let fields: Vec<_> = errors.iter().map(|error| error["field"].as_str().unwrap()).collect();
    assert_eq!(fields, ["$.colour", "$.address.zip"]);
    let spaces = format!("{WAREHOUSES}/a%20b");
    let (status, body) = app.call(Method::PUT, &spaces, Some(reno())).await;
    assert_eq!(
        (status, &body["errors"][0]["field"]),
        (StatusCode::UNPROCESSABLE_ENTITY, &json!("$.identifier"))
    );
    let mut incomplete = reno();
    incomplete["address"].as_object_mut().unwrap().remove("zip");
    let (_, body) = app.call(Method::PUT, &spaces, Some(incomplete)).await;
    assert_eq!(invalid_fields(&body), ["$.identifier", "$.address.zip"]);
    let unknown = "/v1/merchants/nova/warehouses/reno";
    assert_eq!(app.call(Method::PUT, unknown, Some(reno())).await.0, StatusCode::NOT_FOUND);
}
