//! Tests of the log and the metrics of token requests.

use std::process::{Child, Command, Stdio};

use reqwest::StatusCode;
use serde_json::Value;
use testkit::{eventually, free_port, sealing_keys};

use crate::app::{TIMEOUT, TestApp, send, token_request};

/// Auth as a process that logs to a file; killed when dropped.
struct LoggingAuth {
    child: Child,
    url: String,
    log: tempfile::NamedTempFile,
}

impl LoggingAuth {
    async fn start(app: &TestApp) -> Self {
        let log = tempfile::NamedTempFile::new().unwrap();
        let port = free_port();
        let child = Command::new(env!("CARGO_BIN_EXE_auth"))
            .env_clear()
            .env("AUTH__HTTP__PORT", port.to_string())
            .env("AUTH__DATABASE__URL", app.service.database.url())
            .env("AUTH__BROKER__URL", app.service.namespace.amqp_url())
            .env("AUTH__BROKER__NAMESPACE", &app.service.namespace.name)
            .env("AUTH__SEALING__KEYS", sealing_keys())
            .env("AUTH__KEYS__PUBLISH_AHEAD", "0s")
            .arg("serve")
            .stdout(Stdio::from(log.reopen().unwrap()))
            .stderr(Stdio::null())
            .spawn();
        let url = format!("http://127.0.0.1:{port}");
        let auth = Self { child: child.unwrap(), url, log };
        eventually("auth is ready", TIMEOUT, async || {
            let ready = app.http.get(format!("{}/readyz", auth.url)).send().await.ok()?;
            ready.status().is_success().then_some(())
        })
        .await;
        auth
    }

    async fn request_token(&self, app: &TestApp, id: &str, secret: &str) -> (StatusCode, Value) {
        let request = app.http.post(format!("{}/oauth/token", self.url));
        send(request.json(&token_request(id, secret))).await
    }

    /// Waits for a line that contains a text.
    async fn line(&self, text: &str) -> Value {
        eventually(text, TIMEOUT, async || {
            let log = std::fs::read_to_string(self.log.path()).unwrap();
            let line = log.lines().find(|line| line.contains(text))?;
            serde_json::from_str(line).ok()
        })
        .await
    }

    async fn metric(&self, app: &TestApp, sample: &str) -> bool {
        let response = app.http.get(format!("{}/metrics", self.url)).send().await.unwrap();
        response.text().await.unwrap().lines().any(|line| line == sample)
    }
}

impl Drop for LoggingAuth {
    fn drop(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn granted_and_refused_tokens_are_logged_and_counted() {
    let app = TestApp::start().await;
    app.create_merchant("acme").await;
    let (id, secret) = app.create_client(Some("acme"), &["orders", "returns"]).await;
    let auth = LoggingAuth::start(&app).await;

    let (status, token) = auth.request_token(&app, &id, &secret).await;
    assert_eq!(status, StatusCode::OK, "{token}");
    let line = auth.line("token granted").await.to_string();
    for expected in ["\"INFO\"", &id, "\"acme\"", "orders returns", "127.0.0.1"] {
        assert!(line.contains(expected), "{expected}: {line}");
    }
    assert!(auth.metric(&app, "backhaul_tokens_granted_total 1").await);

    let (status, _) = auth.request_token(&app, &id, "wrong-secret").await;
    assert_eq!(status, StatusCode::UNAUTHORIZED);
    let line = auth.line("invalid_client").await.to_string();
    assert!(line.contains(&id) && line.contains("127.0.0.1"), "{line}");
    let refused = "backhaul_http_rejections_total{reason=\"invalid_client\"} 1";
    assert!(auth.metric(&app, refused).await);

    let log = std::fs::read_to_string(auth.log.path()).unwrap();
    for hidden in [&secret, "wrong-secret", token["access_token"].as_str().unwrap()] {
        assert!(!log.contains(hidden), "a secret is in the log");
    }
    drop(auth);
    app.stop().await;
}
