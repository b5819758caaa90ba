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

#[tokio::test(flavor = "multi_thread")]
async fn a_warehouse_that_a_rule_names_stays_with_its_address() {
    let app = TestApp::start().await;
    app.create_merchant("acme").await;
    let save_rules = async |rules: Value| {
        let change = json!({ "policy": { "rules": rules } });
        app.call(Method::PATCH, "/v1/merchants/acme", Some(change)).await
    };
    let to_reno = json!([{ "id": "outlet", "then": { "return_to": "reno" } }]);
    let return_to = ["$.policy.rules[0].then.return_to"];
    let (status, refused) = save_rules(to_reno.clone()).await;
    assert_eq!(
        (status, invalid_fields(&refused)),
        (StatusCode::UNPROCESSABLE_ENTITY, return_to.to_vec())
    );
    assert_eq!(refused["errors"][0]["detail"], "the merchant has no warehouse reno");
    let bare = json!({ "external_identifier": "DC-7" });
    assert_eq!(app.call(Method::PUT, RENO, Some(bare.clone())).await.0, StatusCode::OK);
    let (_, refused) = save_rules(to_reno.clone()).await;
    assert_eq!(refused["errors"][0]["detail"], "warehouse reno has no address");
    assert_eq!(app.call(Method::PUT, RENO, Some(reno())).await.0, StatusCode::OK);
    let (status, saved) = save_rules(to_reno).await;
    assert_eq!(status, StatusCode::OK, "{saved}");
    assert_eq!(saved["policy"]["rules"][0]["then"]["return_to"], "reno");

    let (status, refused) = app.call(Method::PUT, RENO, Some(bare)).await;
    assert_eq!(
        (status, invalid_fields(&refused)),
        (StatusCode::UNPROCESSABLE_ENTITY, vec!["$.address"])
    );
    let (status, refused) = app.call(Method::DELETE, RENO, None).await;
    assert_eq!(status, StatusCode::CONFLICT);
    let message =
        "rule outlet returns units to warehouse reno of merchant acme: change the rule first";
    assert_eq!(refused["message"], message);
    assert_eq!(save_rules(json!([])).await.0, StatusCode::OK);
    assert_eq!(app.call(Method::DELETE, RENO, None).await.0, StatusCode::NO_CONTENT);
}
