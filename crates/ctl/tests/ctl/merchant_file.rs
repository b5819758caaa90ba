//! `backhaul merchant apply`.

use serde_json::json;

use crate::app::TestApp;

const FILE: &str = "
merchant: acme
name: Acme Outdoor
settings:
  currency: EUR
  base_url: https://api.acme.example/hooks
  support_contact: {email: help@acme.example}
  returns:
    reasons:
      - {code: OTHER, label: Another}
    methods:
      - {method: mail-back}
clients:
  - name: Acme shop
    scopes: [orders, returns]
endpoints:
  rma:
    authentication: {kind: basic, username: backhaul, password_file: password.txt}
    headers: {X-Shop: '7'}
  exchange-order:
    url: https://orders.acme.example/exchanges?key=s3cret
    timeout_ms: 5000
    paused: true
warehouses:
  reno:
    external_identifier: DC-7
    address: {name: Dock 7, street: 7 Dock Street, city: Reno, state: NV, zip: '89501'}
";

#[tokio::test(flavor = "multi_thread")]
async fn a_merchant_is_made_as_its_file_says() {
    let app = TestApp::start().await;
    app.write("acme.yaml", FILE);
    let stderr = app.error("merchant apply acme.yaml", 1).await;
    assert!(stderr.contains("password.txt"), "{stderr}");
    app.write("password.txt", "s3cret\n");

    let plan = app.text("merchant apply acme.yaml --dry-run").await;
    assert!(plan.starts_with("+ merchant acme\n") && plan.contains("+ endpoint rma\n"), "{plan}");
    assert!(plan.ends_with("\n6 changes to make; nothing was changed.\n"), "{plan}");
    assert!(plan.contains("+ warehouse reno\n"), "{plan}");
    assert!(!plan.contains("s3cret"), "{plan}");
    app.error("merchant show acme", 1).await;

    let applied = app.json("merchant apply acme.yaml --json").await;
    assert_eq!(applied["changes"].as_array().unwrap().len(), 6, "{applied}");
    let secrets = applied["secrets"].as_object().unwrap();
    assert!(secrets["endpoint rma"].as_str().unwrap().starts_with("whsec_"), "{secrets:?}");
    assert!(secrets.keys().any(|name| name.ends_with("(Acme shop)")), "{secrets:?}");
    let acme = app.json("merchant show acme --json").await;
    assert_eq!((&acme["currency"], &acme["name"]), (&json!("EUR"), &json!("Acme Outdoor")));
    assert_eq!(acme["endpoints"]["exchange-order"]["paused"], json!(true));
    assert_eq!(acme["endpoints"]["rma"]["authentication"]["username"], json!("backhaul"));

    let reno = app.json("warehouse show acme reno --json").await;
    assert_eq!(
        (&reno["external_identifier"], &reno["address"]["zip"]),
        (&json!("DC-7"), &json!("89501"))
    );

    // The second time nothing changes, not even the version.
    assert_eq!(app.text("merchant apply acme.yaml").await, "acme is up to date.\n");
    assert_eq!(app.json("merchant show acme --json").await["version"], acme["version"]);

    let changed = FILE
        .replace("EUR", "USD")
        .replace("5000", "6000")
        .replace("paused: true", "paused: false")
        .replace("DC-7", "DC-8");
    app.write("acme.yaml", &changed);
    let plan = app.text("merchant apply acme.yaml --dry-run").await;
    for line in [
        "    currency: EUR -> USD\n",
        "    timeout_ms: 5000 -> 6000\n",
        "~ endpoint exchange-order is active\n",
        "~ warehouse reno\n    external_identifier: DC-7 -> DC-8\n",
    ] {
        assert!(plan.contains(line), "{line} in {plan}");
    }
    let applied = app.text("merchant apply acme.yaml").await;
    assert!(applied.ends_with("\n4 changes made.\n"), "{applied}");
    let resent = app.text("merchant apply acme.yaml --update-secrets").await;
    assert!(resent.contains("~ endpoint rma\n") && !resent.contains("merchant"), "{resent}");
    assert_eq!(app.text("merchant apply acme.yaml").await, "acme is up to date.\n");

    app.write("acme.yaml", &changed.replace("[orders, returns]", "[orders]"));
    let stderr = app.error("merchant apply acme.yaml", 1).await;
    assert!(stderr.contains("they cannot be changed"), "{stderr}");
    app.write("acme.yaml", "merchant: acme\nname: Acme\nsettings: {curency: EUR}\n");
    let stderr = app.error("merchant apply acme.yaml", 1).await;
    let expected = "error: acme.yaml: settings.curency: unknown field: known are appearance, ";
    assert!(stderr.starts_with(expected), "{stderr}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_the_service_would_reject_changes_nothing() {
    let app = TestApp::start().await;
    app.write("password.txt", "s3cret\n");
    app.write("acme.yaml", &FILE.replace("EUR", "EURO").replace("?key=s3cret", "#fragment"));
    for command in ["merchant apply acme.yaml --dry-run", "merchant apply acme.yaml"] {
        let stderr = app.error(command, 1).await;
        assert_eq!(
            stderr,
            "error: acme.yaml: settings.currency: must be an ISO 4217 currency code, like USD\n  \
             endpoints.exchange-order.url: must be an http or https URL without credentials or fragment\n"
        );
    }
    app.error("merchant show acme", 1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_secrets_before_a_failure_are_shown() {
    let app = TestApp::start().await;
    app.write("password.txt", "s3cret\n");
    // Only the service knows that this address is not allowed. The endpoint rma is set last.
    let private = FILE.replace("  rma:\n", "  rma:\n    url: http://10.0.0.1/rmas\n");
    app.write("acme.yaml", &private);
    let output = app.backhaul("merchant apply acme.yaml").await;
    let stdout = String::from_utf8(output.stdout).unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(
        stderr.starts_with("error: acme.yaml: endpoints.rma: 1 field is not valid\n"),
        "{stderr}"
    );
    assert!(stderr.contains("$.url: invalid (address 10.0.0.1 is refused"), "{stderr}");
    assert!(
        stdout.starts_with("+ merchant acme\n") && !stdout.contains("endpoint rma"),
        "{stdout}"
    );
    assert!(stdout.contains("\n5 changes made, 1 not made.\n"), "{stdout}");
    assert!(stdout.contains(" (Acme shop): bhs_"), "{stdout}");
    assert!(stdout.contains("\nendpoint exchange-order: whsec_"), "{stdout}");

    let output = app.backhaul("merchant apply acme.yaml --json").await;
    assert_eq!(output.status.code(), Some(1));
    assert!(output.stdout.is_empty(), "the second time nothing is made before the failure");
    app.write("acme.yaml", FILE);
    let applied = app.json("merchant apply acme.yaml --json").await;
    assert_eq!(applied["changes"].as_array().unwrap().len(), 1, "{applied}");
    assert!(applied["secrets"]["endpoint rma"].is_string(), "{applied}");
}

#[tokio::test(flavor = "multi_thread")]
async fn rules_name_the_warehouses_of_their_file() {
    let app = TestApp::start().await;
    app.write("password.txt", "s3cret\n");
    let rules = "  policy: {rules: [{id: outlet, then: {return_to: reno}}]}\nclients:\n";
    let file = FILE.replace("clients:\n", rules);
    app.write("acme.yaml", &file.replace("return_to: reno", "return_to: elko"));
    let stderr = app.error("merchant apply acme.yaml", 1).await;
    let expected = "error: acme.yaml: settings.policy.rules[0].then.return_to: the merchant has no warehouse elko\n";
    assert_eq!(stderr, expected);
    app.write("acme.yaml", &file);
    let applied = app.json("merchant apply acme.yaml --json").await;
    assert_eq!(applied["changes"].as_array().unwrap().len(), 7, "{applied}");
    let acme = app.json("merchant show acme --json").await;
    assert_eq!(acme["policy"]["rules"][0]["then"]["return_to"], json!("reno"));
    assert_eq!(app.text("merchant apply acme.yaml").await, "acme is up to date.\n");
    let stderr = app.error("warehouse delete acme reno", 1).await;
    assert!(stderr.contains("rule outlet returns units to warehouse reno"), "{stderr}");
}
