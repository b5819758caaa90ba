use std::path::Path;

use domain::merchant::Settings;
use expect_test::{Expect, expect};

use super::*;

const FILE: &str = "
merchant: acme
name: Acme Outdoor
settings:
  currency: EUR
  return_window_days: 60
  base_url: https://api.acme.example/hooks
clients:
  - name: Acme shop
    scopes: [orders, returns]
endpoints:
  rma:
    timeout_ms: 5000
    paused: true
    headers: {X-Shop: '7'}
    authentication: {kind: bearer, token: t0p-secret}
warehouses:
  reno: {external_identifier: DC-7}
";

fn plan(merchant: Option<&Value>, clients: &Value, update_secrets: bool) -> anyhow::Result<Plan> {
    let file = MerchantFile::parse(FILE, Path::new("")).unwrap();
    Plan::new(&file, merchant, items(clients, ""), update_secrets)
}

#[track_caller]
fn check(plan: &Plan, expected: &Expect) {
    let changes = serde_json::to_value(&plan.changes).unwrap();
    assert!(!changes.to_string().contains("t0p-secret"), "{changes}");
    expected.assert_eq(&items(&changes, "").iter().map(describe).collect::<String>());
}

fn acme() -> Value {
    let mut acme = serde_json::to_value(Settings::new("Acme Outdoor".to_owned())).unwrap();
    let settings = json!({
        "identifier": "acme", "currency": "EUR", "return_window_days": 60,
        "base_url": "https://api.acme.example/hooks/",
        "endpoints": { "rma": {
            "url": null, "path": null, "timeout_ms": 5000, "paused": true, "signing_secrets": [],
            "headers": { "x-shop": REDACTED },
            "authentication": { "kind": "bearer", "token": REDACTED },
        } },
        "warehouses": { "reno": {
            "identifier": "reno", "external_identifier": "DC-7", "address": null,
            "settings": { "stock_transfer_identifier": null },
        } },
    });
    acme.as_object_mut().unwrap().extend(settings.as_object().unwrap().clone());
    acme
}

fn shop(scope: &str) -> Value {
    json!([{ "client_id": "bh_1", "name": "Acme shop", "scope": scope, "revoked_at": null }])
}

#[test]
fn a_new_merchant_gets_everything_in_the_file() {
    check(
        &plan(None, &json!([]), false).unwrap(),
        &expect![[r#"
            + merchant acme
                base_url: https://api.acme.example/hooks
                currency: EUR
                name: Acme Outdoor
                return_window_days: 60
            + warehouse reno
                external_identifier: DC-7
            + client Acme shop with the scopes orders, returns
            + endpoint rma
                authentication: {"kind":"bearer","token":"********"}
                headers: {"x-shop":"********"}
                timeout_ms: 5000
            ~ endpoint rma is paused
        "#]],
    );
}

#[test]
fn rules_of_a_new_merchant_follow_the_warehouses_that_they_name() {
    let file = "merchant: acme\nname: Acme\nsettings: {policy: {rules: [{id: outlet, then: {return_to: reno}}]}}\n\
                warehouses: {reno: {external_identifier: DC-7}}\n";
    let file = MerchantFile::parse(file, Path::new("")).unwrap();
    check(
        &Plan::new(&file, None, &[], false).unwrap(),
        &expect![[r#"
            + merchant acme
                name: Acme
            + warehouse reno
                external_identifier: DC-7
            ~ merchant acme
                policy.rules: none -> [{"id":"outlet","then":{"return_to":"reno"}}]
        "#]],
    );
}

#[test]
fn a_new_merchant_is_shown_with_the_values_that_are_defaults() {
    let file = "merchant: acme\nname: Acme\nsettings: {currency: USD, strict_amounts: false}\n";
    let file = MerchantFile::parse(file, Path::new("")).unwrap();
    check(
        &Plan::new(&file, None, &[], false).unwrap(),
        &expect![[r"
            + merchant acme
                currency: USD
                name: Acme
                strict_amounts: false
        "]],
    );
}

#[test]
fn a_merchant_as_in_the_file_does_not_change() {
    check(&plan(Some(&acme()), &shop("orders returns"), false).unwrap(), &expect![[""]]);
    check(
        &plan(Some(&acme()), &shop("orders returns"), true).unwrap(),
        &expect![[r"
            ~ endpoint rma
        "]],
    );
}

#[test]
fn changed_values_are_shown_before_and_after() {
    let mut merchant = acme();
    merchant["return_window_days"] = json!(30);
    merchant["endpoints"]["rma"]["timeout_ms"] = Value::Null;
    merchant["endpoints"]["rma"]["paused"] = json!(false);
    merchant["warehouses"]["reno"]["external_identifier"] = json!("DC-6");
    merchant["warehouses"]["reno"]["settings"]["stock_transfer_identifier"] = json!("STO-7");
    check(
        &plan(Some(&merchant), &shop("orders returns"), false).unwrap(),
        &expect![[r#"
            ~ warehouse reno
                external_identifier: DC-6 -> DC-7
                settings: {"stock_transfer_identifier":"STO-7"} -> {"stock_transfer_identifier":null}
            ~ merchant acme
                return_window_days: 30 -> 60
            ~ endpoint rma
                timeout_ms: none -> 5000
            ~ endpoint rma is paused
        "#]],
    );
}

#[test]
fn a_client_with_other_scopes_is_an_error() {
    let error = plan(Some(&acme()), &shop("orders"), false).unwrap_err().to_string();
    assert!(error.starts_with("client bh_1 (Acme shop) has the scopes orders, not "), "{error}");
}
