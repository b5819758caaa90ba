//! `backhaul deliveries`, `endpoint check` and `verify` against a delivering service.

use serde_json::{Value, json};
use testkit::eventually;

use crate::app::{TIMEOUT, TestApp};

/// The cells of each row below the headings.
fn rows(table: &str) -> Vec<Vec<&str>> {
    table.lines().skip(1).map(|line| line.split_whitespace().collect()).collect()
}

/// Checks the reports about two rejected and two accepted attempts.
async fn check_reports(app: &TestApp) {
    let report = app.json("deliveries report --merchant acme --by day --json").await;
    let attempts = |status: u16| -> i64 {
        let counts = report["counts"].as_array().unwrap().iter();
        counts.filter(|it| it["status"] == status).filter_map(|it| it["attempts"].as_i64()).sum()
    };
    assert_eq!((attempts(503), attempts(200)), (2, 2), "{report}");
    let table = app.text("deliveries report --by hour").await;
    assert!(table.starts_with("FROM") && table.contains("acme"), "{table}");
    let report = app.json("deliveries report --from today --json").await;
    assert_eq!(report["endpoints"][0]["merchant"], "acme", "{report}");
    let table = app.text("deliveries report --from 2h").await;
    let row: Vec<_> = rows(&table)[0].iter().take(6).map(|cell| (*cell).to_owned()).collect();
    assert_eq!(row, ["acme", "rma", "50.0", "%", "4", "2"], "{table}");
}

/// Checks the dry runs of a dead message and of the newer one that supersedes it.
async fn check_dry_runs_by_id(app: &TestApp, dead: &str, delivered: &str) {
    let stderr = app.error(&format!("deliveries replay {dead} --dry-run"), 1).await;
    let expected = format!(
        "error: delivery {dead} is superseded, because the newer message {delivered} was delivered; \
         --force sends it anyway\n"
    );
    assert_eq!(stderr, expected);
    for (id, flags) in [(dead, "--force --dry-run"), (delivered, "--dry-run")] {
        let counted = app.text(&format!("deliveries replay {id} {flags}")).await;
        assert!(counted.starts_with("1 message matches.") && counted.contains(&id[..18]));
        assert!(!counted.contains("--force"), "{counted}");
        let counted = app.json(&format!("deliveries replay {id} {flags} --json")).await;
        assert_eq!(counted["replays"][0]["samples"][0]["id"], json!(id), "{counted}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_is_listed_shown_replayed_and_counted() {
    let app = TestApp::with_delivery().await;
    app.respond_with(503).await;
    let dead = app.send_message(&json!({"number": 1})).await;
    app.wait_for_state(&dead, "dead").await;
    app.respond_with(200).await;
    let delivered = app.send_message(&json!({"number": 2})).await;
    app.wait_for_state(&delivered, "delivered").await;

    let list = app.text("deliveries list").await;
    assert!(list.starts_with("ID"), "{list}");
    let found: Vec<_> = rows(&list).iter().map(|row| row[0].to_owned()).collect();
    assert_eq!(found, [&delivered[..18], &dead[..18]], "newest first: {list}");
    let wide = app.text("deliveries list --wide").await;
    let found: Vec<_> = rows(&wide).iter().map(|row| row[0].to_owned()).collect();
    assert_eq!(found, [delivered.clone(), dead.clone()], "{wide}");
    for filter in [
        "--state dead",
        "--status 503",
        "--outcome rejected",
        "--merchant acme --kind rma --state dead",
    ] {
        let page = app.json(&format!("deliveries list {filter} --json")).await;
        let ids: Vec<_> =
            page["deliveries"].as_array().unwrap().iter().map(|it| &it["id"]).collect();
        assert_eq!(ids, [&json!(dead)], "{filter}");
    }
    let page = app.json("deliveries list --limit 1 --json").await;
    assert_eq!(page["deliveries"].as_array().unwrap().len(), 1);
    for none in ["--ordering-key rma:2", "--text 2", "--event rma.refunded"] {
        let none = app.json(&format!("deliveries list {none} --json")).await;
        assert_eq!(none["deliveries"], json!([]));
    }
    let both = app.json("deliveries list --text 1 --event rma.created --json").await;
    assert_eq!(both["deliveries"].as_array().unwrap().len(), 2);

    let shown = app.text(&format!("deliveries show {dead}")).await;
    assert!(shown.contains("{\"number\":1}") && shown.contains("dead"), "{shown}");
    let is_attempt = |line: &&str| line.contains(" rejected ") && line.contains(" 503 ");
    assert_eq!(shown.lines().filter(is_attempt).count(), 2, "{shown}");
    let shown = app.json(&format!("deliveries show {dead} --json")).await;
    assert_eq!(shown["attempts"].as_array().unwrap().len(), 2);
    assert_eq!(shown["superseded_by"], json!(delivered));
    let shown = app.json(&format!("deliveries show {delivered} --json")).await;
    assert_eq!(shown.get("superseded_by"), None);

    let counted = app.text("deliveries replay --merchant acme --dry-run").await;
    let skipped =
        "\nWithout --force, messages are skipped if a newer one of their key was delivered.\n";
    assert!(counted.starts_with("1 message matches.") && counted.contains(skipped), "{counted}");

    check_dry_runs_by_id(&app, &dead, &delivered).await;
    let stderr = app.error(&format!("deliveries replay {dead}"), 1).await;
    assert!(stderr.starts_with("error: the message was not sent again; --force"), "{stderr}");
    assert!(stderr.contains("is superseded"), "{stderr}");
    let replayed = app.json(&format!("deliveries replay {dead} --force --json")).await;
    assert_eq!(replayed["replayed"], json!(dead));
    app.wait_for_state(&dead, "delivered").await;

    check_reports(&app).await;
    app.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn dead_messages_are_replayed_by_filter() {
    let app = TestApp::with_delivery().await;
    app.respond_with(500).await;
    let mut dead = Vec::new();
    for number in 0..3 {
        let id = app.send_message(&json!({"number": number})).await;
        app.wait_for_state(&id, "dead").await;
        dead.push(id);
    }
    app.respond_with(200).await;
    let replay = "deliveries replay --merchant acme --status 500 --force";
    let counted = app.json(&format!("{replay} --dry-run --json")).await;
    assert_eq!(counted["replays"][0]["matches"], 3);
    let counted = app.text(&format!("{replay} --dry-run")).await;
    let summary = "3 messages match. A replay takes about 1 s. Nothing was sent.\n";
    assert!(counted.starts_with(summary) && !counted.contains("--force"), "{counted}");
    for row in ["acme      3\n", "rma   3\n", "  rma:1  500\n"] {
        assert!(counted.contains(row), "{row:?} in {counted}");
    }
    let (first, _) = dead.split_first().unwrap();
    assert_eq!(app.json(&format!("deliveries show {first} --json")).await["state"], "dead");
    let started = app.json(&format!("{replay} --per-second 100 --json")).await;
    assert!(started["replays"][0]["id"].is_string(), "{started}");
    assert_eq!(started["replays"][0]["service"], "rma-engine", "{started}");
    for id in &dead {
        app.wait_for_state(id, "delivered").await;
    }
    let none = app.json("deliveries replay --all --dry-run --json").await;
    assert_eq!(none["replays"][0]["matches"], 0);

    let id = started["replays"][0]["id"].as_str().unwrap();
    eventually("the replay is finished", TIMEOUT, async || {
        let list = app.json("replays list --json").await;
        (list["replays"][0]["state"] == "finished").then_some(())
    })
    .await;
    let list = app.text("replays list").await;
    assert_eq!(rows(&list)[0][0], &id[..18], "{list}");
    assert!(list.contains("3 of 3"), "{list}");
    let wide = app.text("replays list --wide").await;
    assert!(wide.contains("merchant=acme") && wide.contains("operator"), "{wide}");
    assert!(wide.contains(" SERVICE ") && wide.contains(" rma-engine "), "{wide}");
    let shown = app.text(&format!("replays show {id}")).await;
    assert!(shown.contains("finished") && shown.contains("status=500"), "{shown}");
    assert!(shown.contains("\nservice          rma-engine\n"), "{shown}");
    for action in ["pause", "resume", "stop"] {
        let stderr = app.error(&format!("replays {action} {id}"), 1).await;
        assert!(stderr.contains(&format!("replay {id} is finished")), "{stderr}");
    }
    let hours = app.text("deliveries hourly rma --merchant acme").await;
    let attempts: u32 = rows(&hours).iter().map(|row| row[2].parse::<u32>().unwrap()).sum();
    assert_eq!(attempts, 9, "two attempts and a replay of each: {hours}");

    app.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unreachable_service_does_not_hide_the_others() {
    let app = TestApp::with_delivery().await;
    let id = app.send_message(&json!({"number": 1})).await;
    app.wait_for_state(&id, "delivered").await;
    app.add_unreachable_service();
    app.text(&format!("deliveries show {id}")).await;
    app.text(&format!("deliveries replay {id} --force --wait")).await;
    let partly = async |line: &str, key: &str| {
        let output = app.backhaul(line).await;
        assert_eq!(output.status.code(), Some(1), "{line}");
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert!(stderr.starts_with("error: the service does not respond"), "{line}: {stderr}");
        let response: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert!(!response[key].as_array().unwrap().is_empty(), "{line}: {response}");
    };
    partly("deliveries list --json", "deliveries").await;
    partly("deliveries report --json", "endpoints").await;
    partly("deliveries replay --merchant acme --state delivered --force --json", "replays").await;
    partly("endpoint check acme --json", "results").await;
    // The unreachable service may have the delivery, so this is not a 404.
    let unknown = "0198c0de-0000-7000-8000-000000000000";
    let stderr = app.error(&format!("deliveries show {unknown}"), 1).await;
    assert!(stderr.starts_with("error: the service does not respond"), "{stderr}");
    app.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn invalid_delivery_commands_fail_with_an_error() {
    let app = TestApp::with_delivery().await;
    let unknown = "0198c0de-0000-7000-8000-000000000000";
    let stderr = app.error(&format!("deliveries show {unknown}"), 1).await;
    assert!(stderr.starts_with(&format!("error: there is no delivery {unknown}\n")), "{stderr}");
    let stderr = app.error(&format!("deliveries retry {unknown}"), 1).await;
    assert!(stderr.contains("there is no delivery"), "{stderr}");
    let stderr = app.error(&format!("replays show {unknown}"), 1).await;
    assert!(stderr.contains("there is no replay"), "{stderr}");
    for flag in ["", " --dry-run"] {
        let stderr = app.error(&format!("deliveries replay {unknown}{flag}"), 1).await;
        assert!(stderr.contains("there is no delivery"), "{stderr}");
    }
    for misuse in [
        "deliveries list --state lost",
        "deliveries list --kind parcel",
        "deliveries list --from someday",
        "deliveries show RMA-1",
        "deliveries retry 0198c0d",
        "replays show 17",
        "deliveries replay --all --dry-run --wait",
        "deliveries replay 1 --merchant acme",
        "deliveries replay 1 --all",
        "deliveries replay --all --merchant acme",
        "deliveries replay --status 503",
        "deliveries list --outcome lost",
        "endpoint backlog --state gone",
        "deliveries replay",
        "deliveries replay --force --per-second 9",
        "deliveries replay --all --per-second 0",
        "deliveries replay --all --per-second 1001",
        "deliveries list --limit 501",
        "deliveries report --by minute",
        "deliveries hourly letters",
        "deliveries hourly rma --hours 0",
    ] {
        app.error(misuse, 2).await;
    }
    let stderr = app.error("deliveries list --service-url http://127.0.0.1:1", 1).await;
    assert!(stderr.contains("127.0.0.1:1"), "{stderr}");
    app.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_to_a_paused_endpoint_waits_until_it_is_resumed() {
    let app = TestApp::with_delivery().await;
    app.text("endpoint pause acme rma").await;
    let paused = async || app.json("endpoint backlog --state paused --json").await;
    eventually("the endpoint is paused", TIMEOUT, async || {
        (paused().await["endpoints"][0]["kind"] == "rma").then_some(())
    })
    .await;
    let waiting = app.send_message(&json!({"number": 1})).await;
    let shown = app.text(&format!("deliveries show {waiting}")).await;
    assert!(shown.contains("it waits because the endpoint is paused"), "{shown}");
    let stderr = app.error(&format!("deliveries retry {waiting}"), 1).await;
    assert!(stderr.contains("paused"), "{stderr}");
    let stderr = app.error(&format!("deliveries replay {waiting} --dry-run"), 1).await;
    assert_eq!(stderr, format!("error: delivery {waiting} is still pending\n"));
    assert_eq!(paused().await["endpoints"][0]["waiting"], 1);
    app.text("endpoint resume acme rma").await;
    app.wait_for_state(&waiting, "delivered").await;
    let list = app.text("endpoint list acme").await;
    assert!(list.contains(" active "), "{list}");
    app.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_endpoint_check_shows_failures() {
    let app = TestApp::with_delivery().await;
    let check = app.json("endpoint check acme --json").await;
    assert_eq!(check["results"].as_array().unwrap().len(), 1);
    assert_eq!(
        (&check["results"][0]["kind"], &check["results"][0]["accepted"]),
        (&json!("rma"), &json!(true))
    );
    app.respond_with(404).await;
    let refused = app.backhaul("endpoint check acme").await;
    assert_eq!(refused.status.code(), Some(1));
    let table = String::from_utf8(refused.stdout).unwrap();
    assert!(table.starts_with("KIND"), "{table}");
    assert!(table.contains(" no ") && table.contains(" 404 "), "{table}");
    app.text("endpoint set acme rma --url http://127.0.0.1:1/rmas").await;
    eventually("the new URL is known", TIMEOUT, async || {
        let check = app.backhaul("endpoint check acme --json").await;
        let check: Value = serde_json::from_slice(&check.stdout).unwrap();
        (check["results"][0]["status"] == Value::Null).then_some(())
    })
    .await;
    app.text("merchant set acme --base-url http://127.0.0.1:1").await;
    app.text("endpoint set acme rma --path /rmas").await;
    app.text("merchant set acme --no-base-url").await;
    let unusable = eventually("an endpoint without a URL fails the check", TIMEOUT, async || {
        let check = app.backhaul("endpoint check acme --json").await;
        let code = check.status.code();
        let check: Value = serde_json::from_slice(&check.stdout).unwrap();
        (check["results"][0]["endpoint"] == Value::Null).then_some((code, check))
    })
    .await;
    assert_eq!(unusable.0, Some(1), "{}", unusable.1);
    app.text("endpoint remove acme rma").await;
    eventually("a missing endpoint does not fail the check", TIMEOUT, async || {
        let check = app.backhaul("endpoint check acme").await;
        check.status.success().then_some(())
    })
    .await;
    let stderr = app.error("endpoint check unknown", 1).await;
    assert!(stderr.starts_with("error: there is no merchant unknown\n"), "{stderr}");
    app.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_captured_message_is_verified() {
    let app = TestApp::with_delivery().await;
    let body = json!({"number": 7});
    let id = app.send_message(&body).await;
    app.wait_for_state(&id, "delivered").await;
    let request = app.received_request(&id).await;
    let header = |name: &str| request["headers"][name].as_str().unwrap().to_owned();
    let timestamp = header("webhook-timestamp");
    let signature = header("webhook-signature");
    app.write("secret", &format!("{}\n", app.signing_secret()));
    app.write("other", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\n");
    app.write("body", &body.to_string());
    app.write("forged", "{\"number\":8}");
    let verify = async |secret: &str, body: &str, more: &str| {
        let line = format!(
            "verify --secret-file {secret} --id {id} --timestamp {timestamp} \
             --signature {signature}{more} {body}"
        );
        let output = app.backhaul(&line).await;
        (output.status.code(), String::from_utf8(output.stdout).unwrap())
    };
    assert_eq!(
        verify("secret", "body", "").await,
        (Some(0), "the signature is valid\n".to_owned())
    );
    // During a secret rotation either secret is accepted.
    let both = verify("other", "body", " --secret-file secret").await;
    assert_eq!(both.0, Some(0), "{}", both.1);
    for (secret, body, more) in [
        ("secret", "forged", ""),
        ("other", "body", ""),
        ("secret", "body", " --at 2020-01-01T00:00:00Z"),
    ] {
        let (code, stdout) = verify(secret, body, more).await;
        assert_eq!(code, Some(1), "{secret} {body}{more}: {stdout}");
        assert!(stdout.starts_with("the signature is invalid: "), "{stdout}");
    }
    assert_eq!(verify("missing", "body", "").await.0, Some(1));
    assert_eq!(verify("body", "body", "").await.0, Some(1));
    app.stop().await;
}
