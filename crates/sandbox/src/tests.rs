//! The sandbox over HTTP, as its users meet it.

use std::error::Error;
use std::time::{Duration, Instant};

use reqwest::{Client, Method, Response};
use serde_json::{Value, json};

use crate::journal::Page;
use crate::settings::Settings;
use crate::signature::Verdict;
use crate::{Running, start};

struct Merchant {
    running: Running,
    client: Client,
}

impl Merchant {
    fn new() -> Self {
        let running = start(&Settings::for_tests().unwrap()).unwrap();
        Self { running, client: platform::http_client(Duration::from_secs(5)).unwrap() }
    }

    async fn send(&self, method: Method, path: &str, body: &Value) -> reqwest::Result<Response> {
        self.client.request(method, self.running.url(path)).json(body).send().await
    }

    async fn post(&self, path: &str, body: &Value) -> (u16, Value) {
        let answer = self.send(Method::POST, path, body).await.unwrap();
        (answer.status().as_u16(), answer.json().await.unwrap())
    }

    async fn get(&self, path: &str) -> Value {
        self.client.get(self.running.url(path)).send().await.unwrap().json().await.unwrap()
    }

    async fn put(&self, path: &str, body: &Value) -> u16 {
        self.send(Method::PUT, path, body).await.unwrap().status().as_u16()
    }

    async fn behave(&self, path: &str, step: Value) {
        let rule = json!({"path": path, "steps": [step]});
        assert_eq!(self.put("/behaviour", &rule).await, 204);
    }

    async fn journal(&self, filter: &str) -> Page {
        serde_json::from_value(self.get(&format!("/journal?{filter}")).await).unwrap()
    }
}

#[tokio::test]
async fn every_endpoint_of_a_merchant_answers() {
    let merchant = Merchant::new();
    for kind in domain::message_kind::MessageKind::ALL {
        let body = json!({"original_order_id": "1001"});
        assert_eq!(merchant.post(kind.default_path(), &body).await.0, 200, "{kind}");
    }
    let (_, order) = merchant.post("/exchange_orders", &json!({"original_order_id": "7"})).await;
    assert_eq!(order, json!({"order_identifier": "EX-7"}));
    assert_eq!(merchant.post("/exchange_orders", &json!({})).await.0, 422);
    let variants = merchant.get("/blue/sku/TEE/variants").await;
    assert_eq!(variants[1]["sku"], "TEE-M");
    let variants = merchant.get("/sku/TEE%20%2F%C3%A9/variants").await;
    assert_eq!(variants[1]["sku"], "TEE /é-M");
    assert_eq!(merchant.get("/healthz").await, json!({"status": "ok"}));
    assert_eq!(merchant.get("/readyz").await, json!({"status": "ok"}));
    assert_eq!(merchant.post("/nowhere", &json!({})).await.0, 404);
    let wrong = merchant.send(Method::GET, "/rmas", &json!({})).await.unwrap();
    assert_eq!(wrong.status(), 405);
}

#[tokio::test]
async fn the_journal_tells_what_arrived() {
    let merchant = Merchant::new();
    merchant.post("/blue/rmas", &json!({"rma_identifier": "R1"})).await;
    merchant
        .client
        .post(merchant.running.url("/rmas"))
        .header("X-Service-Event", "rma.created")
        .header("webhook-id", "msg_2")
        .bearer_auth("confidential")
        .body("not json")
        .send()
        .await
        .unwrap();
    let all = merchant.journal("").await;
    assert_eq!((all.total, all.entries.len()), (2, 2));
    assert_eq!(all.entries[0].body, json!({"rma_identifier": "R1"}));
    assert_eq!(all.entries[1].body, json!("not json"));
    assert_eq!(all.entries[1].headers["authorization"], "Bearer …");
    for (filter, want) in [
        ("path=/rmas", 2),
        ("event=rma.created", 2),
        ("webhook_id=msg_2", 2),
        ("after=1", 2),
        ("limit=1", 1),
        ("signature=unchecked&path=/blue/rmas", 1),
    ] {
        let found = merchant.journal(filter).await.entries;
        assert_eq!(found.iter().map(|entry| entry.number).collect::<Vec<_>>(), [want], "{filter}");
    }
    assert!(merchant.journal("event=rma.refunded").await.entries.is_empty());
    let unknown = merchant.client.get(merchant.running.url("/journal?pth=/rmas")).send().await;
    assert_eq!(unknown.unwrap().status(), 400);
    merchant.send(Method::DELETE, "/journal", &json!({})).await.unwrap();
    assert_eq!(merchant.journal("").await.total, 0);
}

#[tokio::test]
async fn a_journal_keeps_the_newest_or_only_counts() {
    for (enabled, kept) in [(true, 2), (false, 0)] {
        let mut settings = Settings::for_tests().unwrap();
        settings.journal.capacity = 2;
        settings.journal.enabled = enabled;
        let merchant = Merchant { running: start(&settings).unwrap(), ..Merchant::new() };
        for number in 1..=3 {
            merchant.post("/rmas", &json!(number)).await;
        }
        let page = merchant.journal("").await;
        assert_eq!((page.total, page.entries.len()), (3, kept));
        assert!(page.entries.first().is_none_or(|oldest| oldest.body == json!(2)));
    }
}

#[tokio::test]
async fn answers_can_be_ordered() {
    let merchant = Merchant::new();
    merchant
        .behave("/rmas", json!({"do": "answer", "status": 503, "retry_after": "7", "delay_ms": 20}))
        .await;
    let begun = Instant::now();
    let answer = merchant.send(Method::POST, "/rmas", &json!({})).await.unwrap();
    assert!(begun.elapsed() >= Duration::from_millis(20));
    assert_eq!(
        (answer.status().as_u16(), &answer.headers()["retry-after"]),
        (503, &"7".parse().unwrap())
    );
    assert_eq!(merchant.post("/rmas", &json!({})).await.0, 200);

    merchant.behave("/rmas", json!({"do": "answer", "body": {"a": 1}})).await;
    assert_eq!(merchant.post("/rmas", &json!({})).await, (200, json!({"a": 1})));

    merchant.behave("/rmas", json!({"do": "answer", "status": 204})).await;
    let answer = merchant.send(Method::POST, "/rmas", &json!({})).await.unwrap();
    assert_eq!((answer.status().as_u16(), answer.headers().get("content-type")), (204, None));

    merchant.behave("/rmas", json!({"do": "redirect", "location": "http://elsewhere/"})).await;
    let answer = merchant.send(Method::POST, "/rmas", &json!({})).await.unwrap();
    assert_eq!(answer.status(), 302);
    assert_eq!(answer.headers()["location"], "http://elsewhere/");

    merchant.behave("/rmas", json!({"do": "huge", "bytes": 200_000})).await;
    let answer = merchant.send(Method::POST, "/rmas", &json!({})).await.unwrap();
    assert_eq!(answer.bytes().await.unwrap().len(), 200_000);

    merchant.behave("/rmas", json!({"do": "drip", "bytes": 3, "every_ms": 10})).await;
    let answer = merchant.send(Method::POST, "/rmas", &json!({})).await.unwrap();
    assert_eq!(answer.text().await.unwrap(), "...");
    assert_eq!(merchant.get("/behaviour").await[0]["path"], "/rmas");
    let by_hand = merchant.client.put(merchant.running.url("/behaviour"));
    let by_hand = by_hand.body(r#"{"path": "/rmas", "steps": [{"do": "hang"}]}"#).send().await;
    assert_eq!(by_hand.unwrap().status(), 204);
    let nonsense = json!({"path": "/rmas", "steps": [{"do": "sing"}]});
    assert_eq!(merchant.put("/behaviour", &nonsense).await, 400);
    let nowhere = json!({"path": "/rma", "steps": [{"do": "hang"}]});
    assert_eq!(merchant.put("/behaviour", &nowhere).await, 400);
}

#[tokio::test]
async fn a_connection_can_hang_or_be_reset() {
    let merchant = Merchant::new();
    merchant.behave("/rmas", json!({"do": "hang"})).await;
    let hung = merchant
        .client
        .post(merchant.running.url("/rmas"))
        .timeout(Duration::from_millis(200))
        .send()
        .await;
    assert!(hung.unwrap_err().is_timeout());

    merchant.behave("/rmas", json!({"do": "reset"})).await;
    let reset = merchant.send(Method::POST, "/rmas", &json!({})).await.unwrap_err();
    let mut source: &dyn Error = &reset;
    while let Some(next) = source.source() {
        source = next;
    }
    let kind = source.downcast_ref::<std::io::Error>().map(std::io::Error::kind);
    assert_eq!(kind, Some(std::io::ErrorKind::ConnectionReset), "{source}");
    let journal = merchant.journal("").await;
    let answers: Vec<_> = journal.entries.iter().map(|entry| entry.answer.as_str()).collect();
    assert_eq!(answers, ["hang", "reset"]);
}

#[tokio::test]
async fn a_token_expires_until_a_newer_one_comes() {
    let merchant = Merchant::new();
    let ask = json!({"grant_type": "client_credentials", "client_id": "a", "client_secret": "b"});
    let token = async || {
        let (status, answer) = merchant.post("/oauth/token", &ask).await;
        assert_eq!(status, 200);
        answer["access_token"].as_str().unwrap().to_owned()
    };
    let send = async |token: &str| {
        let request = merchant.client.post(merchant.running.url("/rmas")).bearer_auth(token);
        request.send().await.unwrap().status().as_u16()
    };
    let old = token().await;
    assert_eq!(send(&old).await, 200);
    merchant.behave("/rmas", json!({"do": "expire_token", "times": "always"})).await;
    assert_eq!(send(&old).await, 401);
    assert_eq!(send("made-up").await, 401);
    let new = token().await;
    assert_eq!(send(&new).await, 200);
    assert_eq!(send(&old).await, 401);
    assert_eq!(merchant.get("/tokens").await, json!({"issued": 2}));
    let shown = &merchant.journal("path=/oauth/token").await.entries[0].body;
    assert_eq!(shown, &json!("…"), "a client's secret is not shown");
}

#[tokio::test]
async fn signatures_are_checked_once_a_secret_is_known() {
    let mut settings = Settings::for_tests().unwrap();
    settings.signing.required = true;
    let merchant = Merchant { running: start(&settings).unwrap(), ..Merchant::new() };
    assert_eq!(merchant.post("/rmas", &json!({})).await.0, 200);
    let secrets = json!({"secrets": ["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"]});
    assert_eq!(merchant.put("/secrets", &secrets).await, 204);
    assert_eq!(merchant.post("/rmas", &json!({})).await.0, 400);
    assert_eq!(merchant.journal("").await.entries[1].signature, Verdict::Missing);
    assert_eq!(merchant.put("/secrets", &json!({"secrets": ["?"]})).await, 400);
}
