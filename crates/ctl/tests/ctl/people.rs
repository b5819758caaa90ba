//! Commands for people and their sessions.

use std::time::Duration;

use reqwest::StatusCode;
use serde_json::{Value, json};

use crate::app::TestApp;

const JOE: &str = "joe@acme.example";

/// Accepts an invitation, which starts a session.
async fn accept(app: &TestApp, invitation: &Value) {
    let body =
        json!({"token": invitation["invitation"]["token"], "password": "correct horse battery"});
    let client = platform::http_client(Duration::from_secs(300)).unwrap();
    let url = format!("{}/v1/invitations/accept", app.auth_url());
    let response = client.post(url).json(&body).send().await.unwrap();
    assert_eq!(response.status(), StatusCode::CREATED, "{}", response.text().await.unwrap());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_is_invited_changed_and_disabled() {
    let app = TestApp::start().await;
    app.text("merchant add acme --name Acme").await;
    let invited =
        app.text(&format!("person invite {JOE} --role merchant-admin --merchant acme")).await;
    for expected in
        ["/invitation?token=", "expires at ", "by a secure channel", "is not shown again"]
    {
        assert!(invited.contains(expected), "{expected}: {invited}");
    }
    let person = app.json(&format!("person show {JOE} --json")).await;
    assert_eq!((&person["role"], &person["state"]), (&json!("merchant-admin"), &json!("invited")));
    let stderr = app.error(&format!("person invite {JOE} --role support"), 1).await;
    assert!(stderr.contains("--renew creates a new link"), "{stderr}");
    assert!(stderr.contains(&format!("person {JOE} already exists\n")), "{stderr}");

    let renewed = app.json(&format!("person invite {JOE} --renew --json")).await;
    accept(&app, &renewed).await;
    let person = app.json(&format!("person show {JOE} --json")).await;
    assert_eq!(person["state"], "active");
    let viewer =
        app.json(&format!("person role {JOE} merchant-viewer --merchant acme --json")).await;
    assert_eq!(viewer["role"], "merchant-viewer");
    let support = app.json(&format!("person role {JOE} support --json")).await;
    assert_eq!((&support["role"], &support["merchant"]), (&json!("support"), &Value::Null));
    // The managers of the merchant may know the password, so the person sets a new one.
    accept(&app, &support).await;
    assert_eq!(app.json(&format!("person disable {JOE} --json")).await["state"], "disabled");
    assert_eq!(app.json(&format!("person enable {JOE} --json")).await["state"], "active");

    let list = app.text("person list").await;
    assert!(list.starts_with("E-MAIL"), "{list}");
    assert_eq!(list.lines().count(), 2);
    let of_acme = app.json("person list acme --json").await;
    assert_eq!(of_acme["people"], json!([]));
    let stderr = app.error("person show nobody@acme.example", 1).await;
    assert!(stderr.starts_with("error: there is no person nobody@acme.example\n"), "{stderr}");
    let stderr = app.error("person invite x@acme.example --role merchant-viewer", 2).await;
    assert!(stderr.contains("belongs to a merchant: pass --merchant"), "{stderr}");
    for misuse in [
        "person invite x@acme.example",
        "person invite x@acme.example --role owner",
        "person invite x@acme.example --role support --renew",
        "session end",
        "session list",
    ] {
        app.error(misuse, 2).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_sessions_of_a_person_are_listed_and_ended() {
    let app = TestApp::start().await;
    app.text("merchant add acme --name Acme").await;
    let invite = format!("person invite {JOE} --role merchant-viewer --merchant acme --json");
    accept(&app, &app.json(&invite).await).await;
    let sessions = async || {
        let list = app.json(&format!("session list {JOE} --json")).await;
        list["sessions"].as_array().unwrap().clone()
    };
    let found = sessions().await;
    assert_eq!((found.len(), &found[0]["person"]), (1, &json!(JOE)));
    let table = app.text(&format!("session list {JOE} --wide")).await;
    assert!(table.starts_with("SESSION") && table.contains(JOE), "{table}");
    let id = found[0]["id"].as_str().unwrap();
    assert_eq!(app.text(&format!("session end {id}")).await, format!("ended session {id}\n"));
    assert_eq!(sessions().await, Vec::<Value>::new());
    let stderr = app.error(&format!("session end {id}"), 1).await;
    assert!(stderr.starts_with(&format!("error: there is no session {id}\n")), "{stderr}");

    accept(&app, &app.json(&format!("person invite {JOE} --renew --json")).await).await;
    assert_eq!(sessions().await.len(), 1);
    let ended = app.text(&format!("session end --person {JOE}")).await;
    assert_eq!(ended, format!("ended all sessions of {JOE}\n"));
    assert_eq!(sessions().await, Vec::<Value>::new());
}
