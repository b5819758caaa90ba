//! `backhaul events` against auth and a delivering service.

use reqwest::StatusCode;
use serde_json::json;
use testkit::eventually;

use crate::app::{TIMEOUT, TestApp};

#[tokio::test(flavor = "multi_thread")]
async fn kept_events_are_counted_and_published_again() {
    let app = TestApp::with_delivery().await;
    assert_eq!(app.json("events progress --json").await["services"], json!([]));

    // The merchant and its endpoint changed.
    let counted = eventually("both events are kept", TIMEOUT, async || {
        let dry_run = app.json("events republish --since 1h --dry-run --json").await;
        (dry_run["services"][0]["total"] == 2).then_some(dry_run)
    })
    .await;
    let services = counted["services"].as_array().unwrap().iter();
    let names: Vec<_> = services.map(|service| &service["service"]).collect();
    assert_eq!(names, ["auth", "rma-engine"]);
    assert_eq!(app.json("events progress --json").await["services"], json!([]), "nothing began");

    let done = app.json("events republish --since 1h --service auth --wait --json").await;
    let [auth] = done["services"].as_array().unwrap().as_slice() else { panic!("{done}") };
    assert_eq!((&auth["state"], &auth["requested_by"]), (&json!("finished"), &json!("operator")));
    assert_eq!((&auth["done"], &auth["total"]), (&json!(2), &json!(2)));

    let none = "events republish --since 1h --service auth --type order.stored.v1 --wait --json";
    assert_eq!(app.json(none).await["services"][0]["done"], 0);
    let table = app.text("events progress").await;
    let row: Vec<_> = table.lines().nth(1).unwrap().split_whitespace().take(2).collect();
    assert_eq!(row, ["auth", "finished"]);

    let wrong = app.backhaul("events republish --since 1h --until 2h").await;
    assert_eq!(wrong.status.code(), Some(2));
    let stderr = app.error("events republish --since 1h --type order.sotred.v1", 2).await;
    assert!(stderr.contains("order.stored.v1"), "the types are listed: {stderr}");
    // Events are kept for a week.
    let old = app.backhaul("events republish --since 8d --dry-run").await;
    let stderr = String::from_utf8(old.stderr).unwrap();
    assert!(stderr.starts_with("warning: auth has no events from before 20"), "{stderr}");
    app.stop().await;
}

/// Five thousand kept events, which take a hundred seconds to publish.
const KEEP_MANY: &str = "INSERT INTO published_events \
    SELECT now() - INTERVAL '1 minute', number, gen_random_uuid(), kept.routing_key, kept.event, \
        kept.created_at \
    FROM (SELECT * FROM published_events LIMIT 1) AS kept, generate_series(1, 5000) AS number";

#[tokio::test(flavor = "multi_thread")]
async fn publishing_again_can_be_stopped_and_is_listed() {
    let app = TestApp::with_delivery().await;
    assert_eq!(app.json("events stop --json").await["services"], json!([]), "nothing is running");
    eventually("an event is kept", TIMEOUT, async || {
        let dry_run = app.json("events republish --since 1h --dry-run --json").await;
        (dry_run["services"][0]["total"] != 0).then_some(())
    })
    .await;
    app.execute_at_auth(KEEP_MANY).await;
    let republish = "events republish --since 1h --service auth --json";
    assert_eq!(app.json(republish).await["services"][0]["state"], "running");
    let stopped = app.json("events stop --json").await;
    let [stopped] = stopped["services"].as_array().unwrap().as_slice() else { panic!("{stopped}") };
    assert_eq!((&stopped["service"], &stopped["state"]), (&json!("auth"), &json!("stopped")));
    assert!(stopped["finished_at"].is_string(), "{stopped}");
    assert!(stopped["done"].as_i64() < stopped["total"].as_i64(), "{stopped}");

    // Another request can start at once.
    let none = "events republish --since 1h --service auth --type order.stored.v1 --wait --json";
    assert_eq!(app.json(none).await["services"][0]["state"], "finished");
    let listed = app.json("events republishes --json").await;
    let states: Vec<_> =
        listed["republishes"].as_array().unwrap().iter().map(|it| &it["state"]).collect();
    assert_eq!(states, ["finished", "stopped"]);
    let newest = app.json("events republishes --limit 1 --json").await;
    assert_eq!(newest["republishes"].as_array().unwrap().len(), 1);
    app.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_merchant_can_neither_publish_events_again_nor_see_the_progress() {
    let app = TestApp::with_delivery().await;
    let client = app.json("client add acme --scope read --json").await;
    let [id, secret] = ["client_id", "client_secret"].map(|name| client[name].as_str().unwrap());
    let line = format!("token --client-id {id} --client-secret-file -");
    let token = String::from_utf8(app.backhaul_with_input(&line, secret).await.stdout).unwrap();
    let http = platform::http_client(TIMEOUT).unwrap();
    let url = format!("{}/v1/events/republish", app.auth_url());
    let body = json!({ "since": "2026-11-15T00:00:00Z" });
    let stop = format!("{url}/stop");
    let list = format!("{}/v1/events/republishes", app.auth_url());
    for request in [http.post(&url).json(&body), http.get(&url), http.post(stop), http.get(list)] {
        let response = request.bearer_auth(token.trim()).send().await.unwrap();
        assert_eq!(response.status(), StatusCode::FORBIDDEN);
    }
    app.stop().await;
}
