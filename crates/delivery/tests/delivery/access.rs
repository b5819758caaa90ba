//! Rights of tokens by their scopes and merchants.

use expect_test::expect;
use reqwest::Method;
use serde_json::{Value, json};
use testkit::eventually;
use uuid::Uuid;

use crate::test_app::{TIMEOUT, TestApp, message, token};

/// Starts a replay that matches nothing, and returns its id when it is finished.
async fn finished_replay(app: &TestApp) -> String {
    let request = json!({"filter": {"merchant": "acme", "status": 599}});
    let (status, replay) = app.operator_request(Method::POST, "/v1/replays", &request).await;
    assert_eq!(status, 202, "{replay}");
    let id = replay["id"].as_str().unwrap().to_owned();
    eventually("the replay is finished", TIMEOUT, async || {
        (app.get(&format!("/v1/replays/{id}")).await["state"] == "finished").then_some(())
    })
    .await;
    id
}

/// One request for each right.
fn requests(dead: Uuid, replay: &str) -> [(Method, String, Value); 17] {
    let (get, post) = (Method::GET, Method::POST);
    let dry_run = json!({"all": true, "dry_run": true});
    [
        (get.clone(), "/v1/deliveries".to_owned(), json!({})),
        (get.clone(), format!("/v1/deliveries/{dead}"), json!({})),
        (get.clone(), "/v1/endpoints".to_owned(), json!({})),
        (get.clone(), "/v1/endpoints/worst".to_owned(), json!({})),
        (get.clone(), "/v1/reports/deliveries".to_owned(), json!({})),
        (get.clone(), "/v1/reports/hourly".to_owned(), json!({})),
        (get.clone(), "/v1/reports/endpoints".to_owned(), json!({})),
        (get.clone(), "/v1/replays".to_owned(), json!({})),
        (get.clone(), format!("/v1/replays/{replay}"), json!({})),
        (post.clone(), format!("/v1/deliveries/{dead}/retry"), json!({})),
        (post.clone(), format!("/v1/deliveries/{dead}/replay"), json!({})),
        (post.clone(), "/v1/replays".to_owned(), dry_run),
        (post.clone(), format!("/v1/replays/{replay}/pause"), json!({})),
        (post.clone(), format!("/v1/replays/{replay}/resume"), json!({})),
        (post.clone(), format!("/v1/replays/{replay}/stop"), json!({})),
        (post.clone(), "/v1/endpoints/acme/check".to_owned(), json!({})),
        (get, "/v1/messages?merchant=acme".to_owned(), json!({})),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn each_scope_has_its_rights() {
    let app = TestApp::with_api(&[]).await;
    app.add_merchant("other", "/other").await;
    // The delivery is superseded, so that an allowed replay is a conflict and changes nothing.
    let dead = app.append_unsent_dead(&[message(Some("rma:1"), "rma.created", 1)]).await[0];
    app.append(&[message(Some("rma:1"), "rma.refunded", 2)]).await;
    app.wait_until_settled(TIMEOUT).await;
    let replay = finished_replay(&app).await;
    let requests = requests(dead, &replay);
    let mut table = String::new();
    for (scope, merchant) in [
        ("operator", None),
        ("read", None),
        ("replay", None),
        ("read replay", None),
        ("orders returns", None),
        ("read", Some("acme")),
        ("orders", Some("acme")),
        ("returns", Some("acme")),
        ("replay", Some("acme")),
        ("manage", Some("acme")),
        ("warehouse carrier", Some("acme")),
        ("read replay manage", Some("other")),
    ] {
        let token = token(scope, merchant);
        let mut statuses = Vec::new();
        for (method, path, body) in &requests {
            let (status, _) = app.api_request(&token, method.clone(), path, body).await;
            statuses.push(status.to_string());
        }
        let merchant = merchant.unwrap_or("-");
        table.push_str(&format!("{scope:18} {merchant:5} {}\n", statuses.join(" ")));
    }
    // Settled, superseded and finished resources conflict: 409 means that the caller has the right.
    expect![[r#"
        operator           -     200 200 200 200 200 200 200 200 200 409 409 200 409 409 409 200 200
        read               -     200 200 200 200 200 200 200 200 200 403 403 403 403 403 403 403 200
        replay             -     403 403 403 403 403 403 403 403 403 409 409 200 409 409 409 403 403
        read replay        -     200 200 200 200 200 200 200 200 200 409 409 200 409 409 409 403 200
        orders returns     -     403 403 403 403 403 403 403 403 403 403 403 403 403 403 403 403 403
        read               acme  200 200 200 200 200 200 200 200 200 403 403 403 403 403 403 403 200
        orders             acme  200 200 200 200 200 200 200 200 200 403 403 403 403 403 403 403 200
        returns            acme  200 200 200 200 200 200 200 200 200 403 403 403 403 403 403 403 200
        replay             acme  403 403 403 403 403 403 403 403 403 409 409 200 409 409 409 403 403
        manage             acme  403 403 403 403 403 403 403 403 403 403 403 403 403 403 403 200 403
        warehouse carrier  acme  403 403 403 403 403 403 403 403 403 403 403 403 403 403 403 403 403
        read replay manage other 200 404 200 200 200 200 200 200 404 404 404 200 404 404 404 404 403
    "#]]
    .assert_eq(&table);
    app.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_foreign_resource_is_described_like_a_missing_one() {
    let app = TestApp::with_api(&[]).await;
    app.add_merchant("other", "/other").await;
    let dead = app.append_unsent_dead(&[message(None, "rma.created", 1)]).await[0];
    let foreign = token("read replay manage", Some("other"));
    let missing = Uuid::now_v7();
    let text = async |token: &str, method: Method, path: &str| {
        let (status, response) = app.api_request(token, method, path, &json!({})).await;
        assert_eq!(status, 404, "{path}: {response}");
        response["message"].as_str().unwrap().to_owned()
    };
    for action in ["replay", "retry"] {
        let path = |id| format!("/v1/deliveries/{id}/{action}");
        let shown = text(&foreign, Method::POST, &path(dead)).await;
        let expected = text(&foreign, Method::POST, &path(missing)).await;
        assert_eq!(shown.replace(&dead.to_string(), &missing.to_string()), expected);
    }
    let shown = text(&foreign, Method::POST, "/v1/endpoints/acme/check").await;
    let expected = text(&foreign, Method::POST, "/v1/endpoints/nobody/check").await;
    assert_eq!(shown.replace("acme", "nobody"), expected);
    app.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_merchants_token_replays_its_own_deliveries_only() {
    let app = TestApp::with_api(&[]).await;
    app.add_merchant("other", "/other").await;
    let mut foreign = message(None, "rma.created", 2);
    foreign.merchant = "other".parse().unwrap();
    app.append_unsent_dead(&[message(None, "rma.created", 1), foreign]).await;
    let own = token("replay", Some("acme"));
    let named = json!({"filter": {"merchant": "other"}, "dry_run": true});
    assert_eq!(app.api_request(&own, Method::POST, "/v1/replays", &named).await.0, 403);
    let post = async |token: &str, body: Value| {
        app.api_request(token, Method::POST, "/v1/replays", &body).await
    };
    for body in [json!({"dry_run": true}), json!({"all": true, "dry_run": true})] {
        let (_, run) = post(&own, body).await;
        assert_eq!(run["by_merchant"], json!([{"merchant": "acme", "matches": 1}]), "{run}");
        assert_eq!(run["matches"], 1, "{run}");
    }
    let support = token("read replay", None);
    let (_, run) = post(&support, json!({"all": true, "dry_run": true})).await;
    assert_eq!(run["matches"], 2, "{run}");
    let (status, replay) = post(&own, json!({"all": true})).await;
    assert_eq!((status, &replay["filter"]["merchant"]), (202, &json!("acme")), "{replay}");
    let path = format!("/v1/replays/{}", replay["id"].as_str().unwrap());
    eventually("the replay is finished", TIMEOUT, async || {
        (app.get(&path).await["state"] == "finished").then_some(())
    })
    .await;
    app.wait_until_settled(TIMEOUT).await;
    let dead = app.get("/v1/deliveries?state=dead").await;
    assert_eq!(dead["deliveries"].as_array().unwrap().len(), 1, "{dead}");
    assert_eq!(dead["deliveries"][0]["merchant"], "other");
    app.stop().await;
}
