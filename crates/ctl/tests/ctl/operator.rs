//! Commands of an operator: replays with progress, short IDs, status, orders, completions and man pages.

use serde_json::{Value, json};
use testkit::eventually;

use crate::app::{TIMEOUT, TestApp};

#[tokio::test(flavor = "multi_thread")]
async fn a_replay_is_followed_until_it_is_finished() {
    let app = TestApp::with_delivery().await;
    app.respond_with(500).await;
    let mut dead = Vec::new();
    for number in 0..2 {
        let id = app.send_message(&json!({"number": number})).await;
        app.wait_for_state(&id, "dead").await;
        dead.push(id);
    }
    app.respond_with(200).await;
    let waited = app.text("deliveries replay --merchant acme --status 500 --force --wait").await;
    let (result, list) = waited.split_once("\nSee what arrived with: backhaul ").unwrap();
    assert_eq!(result, "2 messages are queued again.");
    assert!(list.starts_with("deliveries list --merchant acme --from 20"), "{waited}");
    let list = app.json(&format!("{} --json", list.trim_end())).await;
    let listed = list["deliveries"].as_array().unwrap().iter().map(|it| it["id"].clone());
    assert_eq!(listed.collect::<Vec<_>>(), [json!(dead[1]), json!(dead[0])]);
    for id in &dead {
        app.wait_for_state(id, "delivered").await;
    }
    for command in ["deliveries replay --merchant acme --wait", "deliveries replay --merchant acme"]
    {
        assert_eq!(app.text(command).await, "No message matches.\n");
    }
    let none = app.json("deliveries replay --merchant acme --wait --json").await;
    assert_eq!(none["replays"], json!([]));
    // A service in which nothing matches starts no replay.
    let list = app.json("replays list --json").await;
    let replays = list["replays"].as_array().unwrap();
    assert_eq!((replays.len(), &replays[0]["state"]), (1, &json!("finished")), "{list}");

    let first = &dead[0];
    let waited = app.text(&format!("deliveries replay {first} --force --wait")).await;
    assert_eq!(waited, "The message was delivered.\n");
    app.respond_with(500).await;
    let stderr = app.error(&format!("deliveries replay {first} --force --wait"), 1).await;
    assert!(stderr.contains("the message was not delivered"), "{stderr}");
    app.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_short_id_names_one_delivery() {
    let app = TestApp::with_delivery().await;
    let id = app.send_message(&json!({"number": 1})).await;
    app.wait_for_state(&id, "delivered").await;
    for length in [18, 23, 35] {
        let shown = app.json(&format!("deliveries show {} --json", &id[..length])).await;
        assert_eq!(shown["id"], json!(id), "{length} characters");
    }
    let upper = id[..18].to_uppercase();
    assert_eq!(app.json(&format!("deliveries show {upper} --json")).await["id"], json!(id));
    let stderr = app.error("deliveries show 00000000-0000-7", 1).await;
    assert_eq!(stderr, "error: there is no delivery whose ID begins with 00000000-0000-7\n");
    let stderr = app.error("deliveries show RMA-1", 2).await;
    assert!(
        stderr.starts_with("error: rma-1 is not the ID of any delivery: pass a whole ID"),
        "{stderr}"
    );

    // The first eight characters change once a minute.
    let mut ids = vec![id];
    while !ids.windows(2).any(|pair| pair[0][..8] == pair[1][..8]) {
        ids.push(app.send_message(&json!({"number": ids.len()})).await);
    }
    let last = ids.last().unwrap();
    let stderr = app.error(&format!("deliveries show {}", &last[..8]), 1).await;
    assert!(stderr.contains("several deliveries begin with") && stderr.contains(last), "{stderr}");
    app.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_merchant_is_an_error_everywhere() {
    let app = TestApp::with_delivery().await;
    for command in [
        "deliveries list --merchant acmee",
        "deliveries report --merchant acmee",
        "deliveries hourly rma --merchant acmee",
        "deliveries replay --merchant acmee --dry-run",
        "endpoint backlog acmee",
        "endpoint list acmee",
        "client list acmee",
        "person list acmee",
        "audit acmee",
    ] {
        let stderr = app.error(command, 1).await;
        assert!(stderr.starts_with("error: there is no merchant acmee\n"), "{command}: {stderr}");
    }
    app.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_status_of_all_services_is_on_one_screen() {
    let app = TestApp::with_delivery().await;
    let status = app.text("status").await;
    assert!(status.starts_with("SERVICE     READY  UNPUBLISHED  QUEUED  DEAD LETTERS"), "{status}");
    assert!(status.ends_with("\nAll services are ready.\n"), "{status}");
    let json = app.json("status --json").await;
    let names: Vec<_> = json["services"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["service"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["auth", "rma-engine"]);
    assert_eq!(json["services"][1]["endpoints"]["failing"], 0, "{json}");
    assert_eq!(json["services"][1]["backlog"]["broker"], "available", "{json}");

    app.set("ORDERS_URL", "http://127.0.0.1:1");
    let output = app.backhaul("status").await;
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(
        text.contains("\n1 service is not ready.\n") || text.contains("order-intake"),
        "{text}"
    );
    assert!(text.contains("rma-engine"), "the others are shown: {text}");

    // Without auth only the readiness is known.
    let output =
        app.command("status").env("AUTH_URL", "http://127.0.0.1:1").output().await.unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(text.contains("2 services are not ready."), "{text}");
    app.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn orders_are_listed_newest_first_and_shown() {
    let app = TestApp::start().await;
    let (_database, intake) = app.start_service::<order_intake::App>(&[]).await;
    app.set("ORDERS_URL", &intake.url);
    app.text("merchant add acme --name Acme").await;
    app.add_client("--scope orders").await;
    app.write("orders.json", &app.text("orders generate --count 3 --seed 7").await);
    eventually("the order intake knows acme", TIMEOUT, async || {
        app.backhaul("orders list").await.status.success().then_some(())
    })
    .await;
    app.text("orders import orders.json").await;

    let orders = app.json("orders list --json").await;
    let orders = orders["orders"].as_array().unwrap();
    let times: Vec<_> =
        orders.iter().map(|it| it["created_at"].as_str().unwrap().to_owned()).collect();
    assert!(times.len() == 3 && times.is_sorted_by(|a, b| a >= b), "{times:?}");
    let identifier = orders[0]["identifier"].as_str().unwrap();
    let list = app.text("orders list --limit 1").await;
    assert!(list.starts_with("ORDER") && list.lines().count() == 2, "{list}");
    assert!(list.contains(identifier), "{list}");
    let found = app.json(&format!("orders list --order {identifier} --all-merchants --json")).await;
    assert_eq!(found["orders"][0]["identifier"], json!(identifier));
    // `orders show` needs the merchant and the whole identifier.
    let found = app.text(&format!("orders list --order {identifier} --all-merchants")).await;
    let row: Vec<_> = found.lines().nth(1).unwrap().split_whitespace().collect();
    assert!(row[0] == identifier && row.contains(&"acme"), "{found}");
    let shown = app.text(&format!("orders show {identifier}")).await;
    assert!(shown.contains(identifier) && shown.contains("\nLINE"), "{shown}");
    let as_operator = format!("orders show {identifier} --merchant acme --json");
    assert_eq!(app.json(&as_operator).await["merchant"], "acme");
    let stderr = app.error("orders show NONE", 1).await;
    assert!(stderr.starts_with("error: there is no order NONE\n"), "{stderr}");
    let stderr = app.error("orders list --merchant acmee", 1).await;
    assert!(stderr.contains("there is no merchant acmee"), "{stderr}");
    app.error("orders list --all-merchants", 2).await;
    assert!(intake.stop().await);
}

#[tokio::test(flavor = "multi_thread")]
async fn completions_and_man_pages_are_generated() {
    let app = TestApp::start().await;
    for (shell, part) in
        [("bash", "_backhaul()"), ("zsh", "#compdef backhaul"), ("fish", "complete -c backhaul")]
    {
        let script = app.text(&format!("completions {shell}")).await;
        assert!(script.contains(part), "{shell}");
        assert!(script.contains("deliveries"), "{shell}");
    }
    app.error("completions tcsh", 2).await;
    app.text("man pages/man1").await;
    let page = |name: &str| {
        std::fs::read_to_string(app.checkout.path().join("deep/pages/man1").join(name)).unwrap()
    };
    assert!(page("backhaul.1").contains("Exit codes"), "{}", page("backhaul.1"));
    let replay = page("backhaul-deliveries-replay.1");
    assert!(replay.contains("wait") && replay.contains(".SH EXAMPLES\n"), "{replay}");
    let version = app.text("--version").await;
    assert!(
        version.starts_with(concat!("backhaul ", env!("CARGO_PKG_VERSION"), " (commit ")),
        "{version}"
    );
}

/// The longest line of every table has 80 columns, with long values too.
#[tokio::test(flavor = "multi_thread")]
async fn tables_fit_eighty_columns() {
    let app = TestApp::with_delivery().await;
    let name = "A-very-long-name-of-a-merchant-that-has-no-end-".repeat(3);
    app.text(&format!("merchant add a-merchant-with-a-long-name --name {name}")).await;
    app.text("client add acme --scope orders --scope returns --scope read --scope replay").await;
    let id = app.send_message(&json!({"number": 1})).await;
    app.wait_for_state(&id, "delivered").await;
    let show = format!("deliveries show {id}");
    for command in [
        "merchant list",
        "client list",
        "audit",
        "deliveries list",
        "deliveries report",
        "deliveries report --by hour",
        "deliveries hourly rma",
        "replays list",
        "endpoint list acme",
        "endpoint backlog",
        "endpoint check acme",
        "merchant show acme",
        "person list",
        "status",
        show.as_str(),
    ] {
        let text = app.text(command).await;
        let widest = text.lines().map(|line| line.chars().count()).max().unwrap_or_default();
        assert!(widest <= 80, "{command}: {widest} columns\n{text}");
    }
    let wide = app.text("merchant list --wide").await;
    assert!(wide.contains(&name), "{wide}");
    let json: Value = app.json("merchant list --json --wide").await;
    assert_eq!(json["merchants"][0]["name"], json!(name));
    app.stop().await;
}
