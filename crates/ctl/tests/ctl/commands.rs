//! Commands for merchants, clients, endpoints and tokens.

use serde_json::Value;

use crate::app::{OPERATOR_SECRET, TestApp};

#[tokio::test(flavor = "multi_thread")]
async fn a_merchant_is_added_changed_and_shown() {
    let app = TestApp::start().await;
    let added = app.json("merchant add acme --name Acme --currency EUR --json").await;
    assert_eq!(added["currency"], "EUR");
    let changed = app
        .json(
            "merchant set acme --return-window-days 60 --strict-amounts true --final-sale-tag Sale \
             --support-email help@acme.example --base-url https://acme.example/hooks --json",
        )
        .await;
    assert_eq!(
        (&changed["return_window_days"], &changed["final_sale_tags"][0]),
        (&60.into(), &"Sale".into())
    );
    assert!(changed["version"].as_i64() > added["version"].as_i64(), "{changed}");
    let emptied = app
        .json("merchant set acme --no-base-url --no-support-contact --no-final-sale-tags --json")
        .await;
    assert_eq!(emptied["base_url"], Value::Null);
    assert_eq!(emptied["support_contact"], Value::Null);
    assert_eq!(emptied["final_sale_tags"], Value::Array(vec![]));
    assert_eq!(app.json("merchant show acme --json").await, emptied);
    // A gift card is set with its bonus, so that changing one does not drop the other.
    for flag in ["--gift-card-sku GIFT", "--gift-card-bonus-cents 500"] {
        app.error(&format!("merchant set acme {flag}"), 2).await;
    }
    app.text("merchant add zeta --name Zeta").await;
    let list = app.text("merchant list").await;
    assert!(list.starts_with("MERCHANT  NAME  TIME ZONE  CURRENCY  ENDPOINTS"), "{list}");
    assert_eq!(list.lines().count(), 3);
    let republished = app.json("merchant republish --json").await;
    assert_eq!(republished["merchants"], 2);
    let audit = app.json("audit acme --json").await;
    let actions: Vec<_> = audit["records"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["action"].as_str().unwrap())
        .collect();
    assert_eq!(actions, ["merchant.updated", "merchant.updated", "merchant.created"]);
    assert_eq!(app.json("audit --limit 1 --json").await["records"].as_array().unwrap().len(), 1);
    let count = async |line: &str| app.json(line).await["records"].as_array().unwrap().len();
    assert_eq!(count("audit acme --action merchant.created --from 1h --json").await, 1);
    assert_eq!(count("audit acme --actor nobody@example.com --json").await, 0);
    assert_eq!(count("audit acme --to 1h --json").await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_works_until_it_is_revoked() {
    let app = TestApp::start().await;
    app.text("merchant add acme --name Acme").await;
    let client = app.json("client add acme --scope orders --scope returns --json").await;
    let id = client["client_id"].as_str().unwrap();
    let secret = client["client_secret"].as_str().unwrap();
    let token = async |secret: &str, more: &str| {
        let line = format!("token --client-id {id} --client-secret-file -{more}");
        let output = app.backhaul_with_input(&line, &format!("{secret}\n")).await;
        output.status.success().then(|| String::from_utf8(output.stdout).unwrap())
    };
    let response: Value =
        serde_json::from_str(&token(secret, " --scope orders --json").await.unwrap()).unwrap();
    assert_eq!((&response["scope"], &response["expires_in"]), (&"orders".into(), &90_000.into()));

    let rotated = app.json(&format!("client rotate {id} --overlap 1h --json")).await;
    let newer = rotated["client_secret"].as_str().unwrap();
    assert!(token(secret, "").await.is_some() && token(newer, "").await.is_some());
    let stderr = app.error(&format!("client rotate {id} --overlap 0s"), 1).await;
    assert!(stderr.contains("--force") && stderr.contains("is still in use"), "{stderr}");
    let shown = app.text(&format!("client rotate {id} --overlap 1h --force")).await;
    assert!(shown.contains("\nThe previous secret works until 20"), "{shown}");
    let rotated = app.json(&format!("client rotate {id} --overlap 0s --force --json")).await;
    let newest = rotated["client_secret"].as_str().unwrap();
    assert!(token(secret, "").await.is_none() && token(newer, "").await.is_none());
    assert!(token(newest, "").await.is_some());

    let list = app.json("client list acme --json").await;
    assert_eq!(list["clients"].as_array().unwrap().len(), 1);
    assert!(!list.to_string().contains("secret"));
    app.text(&format!("client revoke {id}")).await;
    assert!(token(newest, "").await.is_none());
    let stderr = app.error(&format!("client rotate {id}"), 1).await;
    assert!(stderr.starts_with(&format!("error: client {id} was revoked\n")), "{stderr}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_endpoint_is_set_paused_and_removed() {
    let app = TestApp::start().await;
    app.text("merchant add acme --name Acme").await;
    let stderr = app.error("endpoint set acme rma", 1).await;
    assert!(stderr.contains("base_url"), "{stderr}");
    let set = app
        .json("endpoint set acme rma --url https://acme.example/rmas --header x-shop:7 --json")
        .await;
    assert!(set["signing_secret"].as_str().unwrap().starts_with("whsec_"));
    let line = "endpoint set acme rma --url https://acme.example/rmas --auth basic --username us \
                --password-file - --timeout-ms 5000 --json";
    let set: Value =
        serde_json::from_slice(&app.backhaul_with_input(line, "hunter2\n").await.stdout).unwrap();
    assert_eq!(set["endpoint"]["authentication"]["password"], "********");
    assert_eq!(set["signing_secret"], Value::Null);
    app.text("endpoint pause acme rma").await;
    let list = app.text("endpoint list acme --wide").await;
    assert_eq!(
        list.lines().last().unwrap(),
        "rma        paused  https://acme.example/rmas  basic           5000 ms  3"
    );
    app.text("endpoint resume acme rma").await;
    let rotated = app.text("endpoint rotate-secret acme rma --overlap 2days").await;
    assert!(rotated.contains("whsec_") && rotated.contains("not shown again"), "{rotated}");
    assert!(rotated.contains("\nThe previous secret signs until 20"), "{rotated}");
    let secrets = async || {
        let endpoints = app.json("endpoint list acme --json").await;
        endpoints["endpoints"]["rma"]["signing_secrets"].clone()
    };
    let before = secrets().await;
    let stderr = app.error("endpoint rotate-secret acme rma", 1).await;
    assert!(stderr.starts_with("error: the secret was not rotated; --force"), "{stderr}");
    assert!(stderr.contains("is still in use"), "{stderr}");
    assert_eq!(secrets().await, before);
    app.text("endpoint rotate-secret acme rma --force").await;
    assert_eq!(secrets().await[1]["id"], before[0]["id"]);
    let endpoints = app.json("endpoint list acme --json").await;
    let rma = &endpoints["endpoints"]["rma"];
    assert_eq!(
        (&rma["paused"], rma["signing_secrets"].as_array().unwrap().len()),
        (&false.into(), 2)
    );
    app.text("endpoint remove acme rma").await;
    let stderr = app.error("endpoint remove acme rma", 1).await;
    assert!(stderr.contains("merchant acme has no endpoint for rma\n  request id "), "{stderr}");
}

#[tokio::test(flavor = "multi_thread")]
async fn errors_are_shown_in_full() {
    let app = TestApp::start().await;
    let stderr =
        app.error("merchant add acme --name Acme --currency usd --time-zone Mars", 1).await;
    assert!(
        stderr.starts_with(
            "error: 2 fields are not valid\n  \
             $.time_zone: invalid (must be an IANA time zone, like Europe/Berlin)\n  \
             $.currency: invalid (must be an ISO 4217 currency code, like USD)\n  request id "
        ),
        "{stderr}"
    );
    let stderr = app.error("merchant show unknown", 1).await;
    assert!(stderr.starts_with("error: there is no merchant unknown\n"), "{stderr}");
    let stderr = app.error("client add unknown --scope orders", 1).await;
    assert!(stderr.starts_with("error: there is no merchant unknown\n"), "{stderr}");
    for misuse in [
        "merchant set acme",
        "merchant show ACME",
        "client add acme",
        "client add acme --scope admin",
        "endpoint set acme letters --url https://x.example",
        "endpoint set acme rma --url https://x.example --username u",
        "endpoint set acme rma --url https://x.example --path /x",
    ] {
        app.error(misuse, 2).await;
    }
    let stderr = app.error("token", 2).await;
    assert!(
        stderr.starts_with(
            "error: the client id is not set: set CLIENT_ID or pass --client-id, or start the stack in "
        ),
        "{stderr}"
    );
    let stderr = app.error("merchant list --operator-id unknown", 1).await;
    assert!(
        stderr.starts_with(
            "error: no token for client unknown: client authentication failed (invalid_client)\n"
        ),
        "{stderr}"
    );
    let stderr = app.error("merchant list --auth-url http://127.0.0.1:1", 1).await;
    assert!(stderr.starts_with("error: no token from http://127.0.0.1:1/oauth/token"), "{stderr}");
    // The error names the flag of the command.
    app.set("OPERATOR_CLIENT_ID", "");
    for (command, expected) in [
        ("merchant list", "set OPERATOR_CLIENT_ID or pass --operator-id, or start"),
        ("token --as operator", "set OPERATOR_CLIENT_ID or pass --client-id, or start"),
        ("returns list --merchant acme", "set OPERATOR_CLIENT_ID or pass --client-id, or start"),
    ] {
        let stderr = app.error(command, 2).await;
        assert!(stderr.contains(expected), "{stderr}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_empty_identifier_is_wrong_usage() {
    let app = TestApp::start().await;
    app.set("RMA_URL", "http://127.0.0.1:1");
    // The last argument is empty.
    let stderr = app.error("returns show --merchant acme ", 2).await;
    assert_eq!(stderr, "error: an identifier is empty\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_secret_from_standard_input_is_used_for_two_services() {
    let app = TestApp::start().await;
    app.set("RMA_URL", "http://127.0.0.1:1");
    app.set("ORDERS_URL", "http://127.0.0.1:1");
    let line = "returns simulate 1001 --merchant acme --client-secret-file -";
    let output = app.backhaul_with_input(line, &format!("{OPERATOR_SECRET}\n")).await;
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(stderr.starts_with("error: the service does not respond"), "{stderr}");
}

#[tokio::test(flavor = "multi_thread")]
async fn flags_override_the_environment_and_the_checkout() {
    let app = TestApp::start().await;
    let token = async |url: &str, flags: &str| {
        let mut command = app.command(&format!("token --as operator{flags}"));
        command.env("AUTH_URL", url).output().await.unwrap().status.success()
    };
    assert!(token(app.auth_url(), "").await);
    assert!(!token("http://127.0.0.1:1", "").await);
    assert!(token("http://127.0.0.1:1", &format!(" --auth-url {}", app.auth_url())).await);
}
