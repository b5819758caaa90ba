//! The sandbox over HTTP.

mod catalogue;
mod mails;

use std::error::Error;
use std::time::{Duration, Instant};

use reqwest::{Client, Method, Response};
use serde_json::{Value, json};

use crate::journal::Page;
use crate::settings::Settings;
use crate::signature::SignatureStatus;
use crate::{Running, start};

struct TestApp {
    running: Running,
    client: Client,
}

impl TestApp {
    fn new() -> Self {
        let running = start(&Settings::for_tests().unwrap()).unwrap();
        Self { running, client: platform::http_client(Duration::from_secs(300)).unwrap() }
    }

    async fn send(&self, method: Method, path: &str, body: &Value) -> reqwest::Result<Response> {
        self.client.request(method, self.running.url(path)).json(body).send().await
    }

    async fn post(&self, path: &str, body: &Value) -> (u16, Value) {
        let response = self.send(Method::POST, path, body).await.unwrap();
        (response.status().as_u16(), response.json().await.unwrap())
    }

    async fn get(&self, path: &str) -> Value {
        self.client.get(self.running.url(path)).send().await.unwrap().json().await.unwrap()
    }

    async fn put(&self, path: &str, body: &Value) -> u16 {
        self.send(Method::PUT, path, body).await.unwrap().status().as_u16()
    }

    async fn set_behaviour(&self, path: &str, step: Value) {
        let rule = json!({"path": path, "steps": [step]});
        assert_eq!(self.put("/behaviour", &rule).await, 204);
    }

    async fn journal(&self, filter: &str) -> Page {
        serde_json::from_value(self.get(&format!("/journal?{filter}")).await).unwrap()
    }
}

#[tokio::test]
async fn every_endpoint_responds() {
    let app = TestApp::new();
    for kind in domain::message_kind::MessageKind::WEBHOOKS {
        let body = json!({"original_order_id": "1001"});
        assert_eq!(app.post(kind.default_path(), &body).await.0, 200, "{kind}");
    }
    let (_, order) = app.post("/exchange_orders", &json!({"original_order_id": "7"})).await;
    assert_eq!(order, json!({"order_identifier": "EX-7"}));
    assert_eq!(app.post("/exchange_orders", &json!({})).await.0, 422);
    let variants = app.get("/blue/sku/TEE/variants").await;
    assert_eq!(variants[1]["sku"], "TEE-M");
    let variants = app.get("/sku/TEE%20%2F%C3%A9/variants").await;
    assert_eq!(variants[1]["sku"], "TEE /é-M");
    assert_eq!(app.get("/healthz").await, json!({"status": "ok"}));
    assert_eq!(app.get("/readyz").await, json!({"status": "ok"}));
    assert_eq!(app.post("/nowhere", &json!({})).await.0, 404);
    let wrong = app.send(Method::GET, "/rmas", &json!({})).await.unwrap();
    assert_eq!(wrong.status(), 405);
}

#[tokio::test]
async fn the_journal_lists_received_requests() {
    let app = TestApp::new();
    app.post("/blue/rmas", &json!({"rma_identifier": "R1"})).await;
    app.client
        .post(app.running.url("/rmas"))
        .header("X-Service-Event", "rma.created")
        .header("webhook-id", "msg_2")
        .bearer_auth("confidential")
        .body("not json")
        .send()
        .await
        .unwrap();
    let all = app.journal("").await;
    assert_eq!((all.total, all.entries.len()), (2, 2));
    assert_eq!(all.entries[0].body, json!({"rma_identifier": "R1"}));
    assert_eq!(all.entries[1].body, json!("not json"));
    assert_eq!(all.entries[1].headers["authorization"], "Bearer …");
    for (filter, expected) in [
        ("path=/rmas", 2),
        ("event=rma.created", 2),
        ("webhook_id=msg_2", 2),
        ("after=1", 2),
        ("limit=1", 1),
        ("signature=unchecked&path=/blue/rmas", 1),
    ] {
        let found = app.journal(filter).await.entries;
        assert_eq!(
            found.iter().map(|entry| entry.number).collect::<Vec<_>>(),
            [expected],
            "{filter}"
        );
    }
    assert!(app.journal("event=rma.refunded").await.entries.is_empty());
    let unknown = app.client.get(app.running.url("/journal?pth=/rmas")).send().await;
    assert_eq!(unknown.unwrap().status(), 400);
    app.send(Method::DELETE, "/journal", &json!({})).await.unwrap();
    assert_eq!(app.journal("").await.total, 0);
}

#[tokio::test]
async fn a_journal_stores_the_newest_requests_or_only_counts() {
    for (enabled, kept) in [(true, 2), (false, 0)] {
        let mut settings = Settings::for_tests().unwrap();
        settings.journal.capacity = 2;
        settings.journal.enabled = enabled;
        let app = TestApp { running: start(&settings).unwrap(), ..TestApp::new() };
        for number in 1..=3 {
            app.post("/rmas", &json!(number)).await;
        }
        let page = app.journal("").await;
        assert_eq!((page.total, page.entries.len()), (3, kept));
        assert!(page.entries.first().is_none_or(|oldest| oldest.body == json!(2)));
    }
}

#[tokio::test]
async fn a_rule_sets_the_responses() {
    let app = TestApp::new();
    app.set_behaviour(
        "/rmas",
        json!({"do": "respond", "status": 503, "retry_after": "7", "delay_ms": 20}),
    )
    .await;
    let started_at = Instant::now();
    let response = app.send(Method::POST, "/rmas", &json!({})).await.unwrap();
    assert!(started_at.elapsed() >= Duration::from_millis(20));
    assert_eq!(
        (response.status().as_u16(), &response.headers()["retry-after"]),
        (503, &"7".parse().unwrap())
    );
    assert_eq!(app.post("/rmas", &json!({})).await.0, 200);

    app.set_behaviour("/rmas", json!({"do": "respond", "body": {"a": 1}})).await;
    assert_eq!(app.post("/rmas", &json!({})).await, (200, json!({"a": 1})));

    app.set_behaviour("/rmas", json!({"do": "respond", "status": 204})).await;
    let response = app.send(Method::POST, "/rmas", &json!({})).await.unwrap();
    assert_eq!((response.status().as_u16(), response.headers().get("content-type")), (204, None));

    app.set_behaviour("/rmas", json!({"do": "redirect", "location": "http://elsewhere/"})).await;
    let response = app.send(Method::POST, "/rmas", &json!({})).await.unwrap();
    assert_eq!(response.status(), 302);
    assert_eq!(response.headers()["location"], "http://elsewhere/");

    app.set_behaviour("/rmas", json!({"do": "huge", "bytes": 200_000})).await;
    let response = app.send(Method::POST, "/rmas", &json!({})).await.unwrap();
    assert_eq!(response.bytes().await.unwrap().len(), 200_000);

    app.set_behaviour("/rmas", json!({"do": "drip", "bytes": 3, "every_ms": 10})).await;
    let response = app.send(Method::POST, "/rmas", &json!({})).await.unwrap();
    assert_eq!(response.text().await.unwrap(), "...");
    assert_eq!(app.get("/behaviour").await[0]["path"], "/rmas");
    let without_type = app.client.put(app.running.url("/behaviour"));
    let without_type =
        without_type.body(r#"{"path": "/rmas", "steps": [{"do": "hang"}]}"#).send().await;
    assert_eq!(without_type.unwrap().status(), 204);
    let unknown_step = json!({"path": "/rmas", "steps": [{"do": "unknown"}]});
    assert_eq!(app.put("/behaviour", &unknown_step).await, 400);
    let unknown_path = json!({"path": "/rma", "steps": [{"do": "hang"}]});
    assert_eq!(app.put("/behaviour", &unknown_path).await, 400);
}

#[tokio::test]
async fn a_connection_can_hang_or_be_reset() {
    let app = TestApp::new();
    app.set_behaviour("/rmas", json!({"do": "hang"})).await;
    let hung =
        app.client.post(app.running.url("/rmas")).timeout(Duration::from_millis(200)).send().await;
    assert!(hung.unwrap_err().is_timeout());

    app.set_behaviour("/rmas", json!({"do": "reset"})).await;
    let reset = app.send(Method::POST, "/rmas", &json!({})).await.unwrap_err();
    let mut source: &dyn Error = &reset;
    while let Some(next) = source.source() {
        source = next;
    }
    let kind = source.downcast_ref::<std::io::Error>().map(std::io::Error::kind);
    assert_eq!(kind, Some(std::io::ErrorKind::ConnectionReset), "{source}");
    let journal = app.journal("").await;
    let responses: Vec<_> = journal.entries.iter().map(|entry| entry.response.as_str()).collect();
    assert_eq!(responses, ["hang", "reset"]);
}

#[tokio::test]
async fn an_expired_token_is_rejected_until_a_new_one_is_used() {
    let app = TestApp::new();
    let request =
        json!({"grant_type": "client_credentials", "client_id": "a", "client_secret": "b"});
    let token = async || {
        let (status, response) = app.post("/oauth/token", &request).await;
        assert_eq!(status, 200);
        response["access_token"].as_str().unwrap().to_owned()
    };
    let send = async |token: &str| {
        let request = app.client.post(app.running.url("/rmas")).bearer_auth(token);
        request.send().await.unwrap().status().as_u16()
    };
    let old = token().await;
    assert_eq!(send(&old).await, 200);
    app.set_behaviour("/rmas", json!({"do": "expire_token", "times": "always"})).await;
    assert_eq!(send(&old).await, 401);
    assert_eq!(send("made-up").await, 401);
    let new = token().await;
    assert_eq!(send(&new).await, 200);
    assert_eq!(send(&old).await, 401);
    assert_eq!(app.get("/tokens").await, json!({"issued": 2}));
    let body = &app.journal("path=/oauth/token").await.entries[0].body;
    assert_eq!(body, &json!("…"), "the client secret is redacted");
}

#[tokio::test]
async fn signatures_are_checked_when_the_sandbox_has_a_secret() {
    let mut settings = Settings::for_tests().unwrap();
    settings.signing.required = true;
    let app = TestApp { running: start(&settings).unwrap(), ..TestApp::new() };
    assert_eq!(app.post("/rmas", &json!({})).await.0, 200);
    let secrets = json!({"secrets": ["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"]});
    assert_eq!(app.put("/secrets", &secrets).await, 204);
    assert_eq!(app.post("/rmas", &json!({})).await.0, 400);
    assert_eq!(app.journal("").await.entries[1].signature, SignatureStatus::Missing);
    assert_eq!(app.put("/secrets", &json!({"secrets": ["?"]})).await, 400);
}
