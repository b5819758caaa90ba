//! Commands of a merchant's engineer: validate orders, find out about messages and trigger samples.

use platform::Clock;
use serde_json::{Value, json};
use testkit::eventually;

use crate::app::{TIMEOUT, TestApp};

#[tokio::test(flavor = "multi_thread")]
async fn a_merchants_own_client_finds_its_messages() {
    let app = TestApp::with_delivery().await;
    app.add_client("--scope returns").await;
    app.respond_with(503).await;
    let dead = app.send_message(&json!({"number": 1})).await;
    app.wait_for_state(&dead, "dead").await;
    let list = app.text("deliveries list --as merchant").await;
    assert!(list.starts_with("ID") && list.contains("TRIES  LAST  NEXT"), "{list}");
    let row: Vec<_> = list.lines().nth(1).unwrap().split_whitespace().skip(2).collect();
    assert_eq!(row, ["rma.created", "rma:1", "dead", "2", "503", "-"], "{list}");
    // Without the operator's credentials the merchant's own are used.
    app.set("OPERATOR_CLIENT_ID", "");
    let shown = app.text(&format!("deliveries show {dead} --wide")).await;
    let sentence = "nothing: it was given up after 2 attempts: the endpoint responded with 503 to the \
                    last one; backhaul deliveries replay";
    assert!(shown.contains(sentence), "{shown}");
    let report = app.json("deliveries report --json").await;
    assert_eq!(report["endpoints"][0]["merchant"], "acme", "{report}");
    let stderr = app.error("merchant add rival --name Rival", 1).await;
    assert!(stderr.contains("scope"), "{stderr}");
    app.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sample_of_an_event_is_triggered() {
    let app = TestApp::with_delivery().await;
    let list = app.text("trigger --list").await;
    assert!(list.starts_with("rma.created "), "{list}");
    assert!(
        list.contains("\nrma.refunded ") && list.contains("a return was created (kind rma)\n"),
        "{list}"
    );
    let sent = app.json("trigger rma.refunded --merchant acme --json").await;
    let body: Value =
        serde_json::from_str(sent["results"][0]["request_body"].as_str().unwrap()).unwrap();
    assert_eq!(body["status"], "REFUNDED", "{sent}");
    assert_eq!(app.json("deliveries list --json").await["deliveries"], json!([]));
    app.error("trigger rma.lost --merchant acme", 2).await;
    let stderr = app.error("trigger rma.created", 2).await;
    assert!(stderr.contains("pass --merchant"), "{stderr}");
    app.add_client("--scope read").await;
    let stderr = app.error("trigger rma.created --as merchant", 1).await;
    assert!(stderr.starts_with("error: the client lacks the scope manage: "), "{stderr}");
    app.add_client("--scope manage").await;
    app.text("trigger rma.created --as merchant").await;

    app.text("merchant add rival --name Rival").await;
    let code = eventually("the service knows rival, which has no endpoint", TIMEOUT, async || {
        let output = app.backhaul("trigger rma.created --merchant rival --json").await;
        let sent: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
        (sent["results"][0]["outcome"] == "not_set").then_some(output.status.code())
    })
    .await;
    assert_eq!(code, Some(1));

    app.respond_with(401).await;
    let output = app.backhaul("trigger rma.created --merchant acme").await;
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains("\nrma: the endpoint refused the signature: "), "{text}");
    app.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_merchant_rotates_its_own_secret() {
    let app = TestApp::start().await;
    app.text("merchant add acme --name Acme").await;
    let id = app.add_client("--scope manage").await;
    let rotated = app.text(&format!("client rotate {id} --overlap 2h --as merchant")).await;
    assert!(rotated.contains("client secret: bhs_"), "{rotated}");
    assert!(rotated.contains("\nThe previous secret works until 20"), "{rotated}");
    // The client uses the previous secret, which the next rotation would end.
    let stderr = app.error(&format!("client rotate {id} --as merchant"), 1).await;
    assert!(stderr.starts_with("error: the secret was not rotated; --force"), "{stderr}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_simulation_without_the_scopes_creates_nothing() {
    let app = TestApp::start().await;
    app.text("merchant add acme --name Acme").await;
    app.add_client("--scope orders --scope returns").await;
    app.set("RMA_URL", "http://127.0.0.1:1");
    app.set("ORDERS_URL", "http://127.0.0.1:1");
    let stderr = app.error("returns simulate", 1).await;
    let expected = "error: the client lacks the scope carrier and the scope warehouse: ";
    assert!(stderr.starts_with(expected), "{stderr}");
}

#[tokio::test(flavor = "multi_thread")]
async fn orders_are_validated_in_every_layout() {
    let app = TestApp::start().await;
    let lines = app.text("orders generate --count 3 --seed 7").await;
    let orders: Vec<Value> =
        lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let message = json!({ "returns_portal_order": { "orders": orders } });
    let pretty: String = orders.iter().map(|order| format!("{order:#}\n")).collect();
    let array = json!(orders).to_string();
    for file in [lines, message.to_string(), format!("{message:#}"), array, pretty] {
        app.write("orders.json", &file);
        let checked = app.text("orders validate orders.json").await;
        assert_eq!(checked, "3 orders checked, 0 would be rejected\n", "{file}");
    }

    let mut order = orders[0].clone();
    let line = order["items"][0].as_object_mut().unwrap();
    line.remove("title");
    line.insert("titel".to_owned(), json!("Shirt"));
    app.write("orders.json", &format!("{order:#}"));
    let output = app.backhaul("orders validate orders.json").await;
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(1), "{text}");
    let identifier = order["identifier"].as_str().unwrap();
    let subject = format!("order {identifier}, line 1");
    let expected = format!(
        "orders.json:1: {subject}: $.items[0].title: missing_field\n\
         orders.json:1: warning: {subject}: $.items[0].titel: `titel` is not a field; did you mean \
         `title`?\n\
         1 order checked, 1 would be rejected, 1 warning\n"
    );
    assert_eq!(text, expected);
    let output = app.backhaul("orders validate orders.json --json").await;
    let result: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(result["errors"][0]["code"], "missing_field", "{result}");
    app.write("orders.csv", "identifier,status\n1001,Shipped\n");
    let stderr = app.error("orders validate orders.csv", 1).await;
    assert!(stderr.contains("orders.csv: line 1: this is not JSON"), "{stderr}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stuck_order_is_reset() {
    let app = TestApp::start().await;
    let (_database, intake) = app.start_service::<order_intake::App>(&[]).await;
    app.set("ORDERS_URL", &intake.url);
    app.text("merchant add acme --name Acme").await;
    app.add_client("--scope orders").await;
    let order = app.text("orders generate --count 1 --seed 7").await;
    let mut order: Value = serde_json::from_str(order.trim()).unwrap();
    order["updated_at"] = json!(Clock::system().now() + chrono::TimeDelta::hours(20));
    app.write("order.json", &order.to_string());
    eventually("the order intake knows acme", TIMEOUT, async || {
        app.backhaul("orders import order.json").await.status.success().then_some(())
    })
    .await;
    let identifier = order["identifier"].as_str().unwrap();
    let stderr = app.error(&format!("orders reset {identifier}"), 1).await;
    assert!(stderr.contains("scope"), "only operators: {stderr}");
    let reset = app.text(&format!("orders reset {identifier} --merchant acme")).await;
    assert!(reset.starts_with(&format!("order {identifier} is reset: ")), "{reset}");
    let stderr = app.error(&format!("orders reset {identifier} --merchant acme"), 1).await;
    assert!(stderr.contains("is not stuck"), "{stderr}");
    assert!(intake.stop().await);
}
