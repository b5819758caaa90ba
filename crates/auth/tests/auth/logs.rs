//! Tests of the log and the metrics of token requests and sign-ins.

use std::process::{Child, Command, Stdio};

use reqwest::StatusCode;
use serde_json::{Value, json};
use testkit::{eventually, free_port, sealing_keys};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::{
    app::{TIMEOUT, TestApp, send, text, token_request},
    person::{PASSWORD, code_at},
};

/// Auth as a process that logs to a file; killed when dropped.
struct LoggingAuth {
    child: Child,
    url: String,
    log: tempfile::NamedTempFile,
}

impl LoggingAuth {
    async fn start(app: &TestApp) -> Self {
        Self::start_with(app, "json").await
    }

    async fn start_with(app: &TestApp, format: &str) -> Self {
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
            .env("AUTH__TELEMETRY__FORMAT", format)
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

    async fn post(&self, app: &TestApp, path: &str, body: Value) -> (StatusCode, Value) {
        send(app.http.post(format!("{}{path}", self.url)).json(&body)).await
    }

    /// Stops the process as an orchestrator does, and returns whether it ended well, and its log.
    fn terminate(&mut self) -> (bool, String) {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
        let is_success = self.child.wait().unwrap().success();
        (is_success, std::fs::read_to_string(self.log.path()).unwrap())
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
        // The process may have ended.
        drop(self.child.kill());
        self.child.wait().unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn granted_and_refused_tokens_are_logged_and_counted() {
    let app = TestApp::alone().await;
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

    // Engineers paste the secret into the wrong field.
    for _ in 0..12 {
        auth.request_token(&app, &secret, "wrong-secret").await;
    }
    auth.line("locked_out").await;
    let log = std::fs::read_to_string(auth.log.path()).unwrap();
    for hidden in [&secret, "wrong-secret", token["access_token"].as_str().unwrap()] {
        assert!(!log.contains(hidden), "a secret is in the log");
    }
    drop(auth);
    app.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lockout_is_logged_and_counted_with_the_client() {
    let app = TestApp::alone().await;
    let (id, secret) = app.create_client(None, &["warehouse"]).await;
    let auth = LoggingAuth::start(&app).await;
    let mut failures = 0;
    while auth.request_token(&app, &id, "guess").await.0 == StatusCode::UNAUTHORIZED {
        failures += 1;
        assert!(failures < 100, "the client is not locked out");
    }
    let (status, _) = auth.request_token(&app, &id, &secret).await;
    assert_eq!(status, StatusCode::TOO_MANY_REQUESTS);
    let line = auth.line("request rejected: locked_out").await.to_string();
    assert!(line.contains(&id) && line.contains("127.0.0.1"), "{line}");
    let locked_out = "backhaul_http_rejections_total{reason=\"locked_out\"} 2";
    assert!(auth.metric(&app, locked_out).await);
    drop(auth);
    app.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn sign_ins_are_logged_and_counted_without_secrets() {
    let app = TestApp::alone().await;
    let invitation = app.invite("ada@example.com", "operator", None).await;
    let auth = LoggingAuth::start(&app).await;
    let by_token = json!({"token": invitation});
    let (_, shown) = auth.post(&app, "/v1/invitations/show", by_token).await;
    let totp_secret = text(&shown["totp"], "secret");
    let code = code_at(&totp_secret, app.clock.now());
    let body = json!({"token": invitation, "password": PASSWORD, "totp_code": code,
        "totp_setup": shown["totp"]["setup"]});
    let (status, accepted) = auth.post(&app, "/v1/invitations/accept", body).await;
    assert_eq!(status, StatusCode::CREATED, "{accepted}");
    let recovery_code = accepted["recovery_codes"][0].as_str().unwrap();
    let sign_in = async |email: &str, password: &str, code: &str| {
        let body = json!({"email": email, "password": password, "totp_code": code});
        auth.post(&app, "/v1/sessions", body).await
    };
    let (_, started) = sign_in("ada@example.com", PASSWORD, recovery_code).await;
    let session = text(&started, "session");
    let (_, issued) = auth.post(&app, "/v1/sessions/token", json!({"session": session})).await;
    sign_in("ada@example.com", "a-wrong-password", "a-wrong-code").await;
    // People type passwords into the wrong field.
    sign_in("a-typed-password", "x", "").await;
    auth.post(&app, "/v1/sessions/token", json!({"session": "a-wrong-session"})).await;
    auth.post(&app, "/v1/sessions/end", json!({"session": session})).await;

    let line = auth.line("sign_in_failed").await.to_string();
    assert!(line.contains("ada@example.com") && line.contains("127.0.0.1"), "{line}");
    let refused = "backhaul_http_rejections_total{reason=\"sign_in_failed\"} 2";
    assert!(auth.metric(&app, refused).await);
    let log = std::fs::read_to_string(auth.log.path()).unwrap();
    let records = json!(app.audit_records().await).to_string();
    for hidden in [
        &invitation,
        PASSWORD,
        &totp_secret,
        &format!("\"{code}\""),
        recovery_code,
        &recovery_code.replace('-', ""),
        &text(&accepted, "session"),
        &session,
        issued["access_token"].as_str().unwrap(),
        "a-wrong-password",
        "a-wrong-code",
        "a-typed-password",
        "a-wrong-session",
        "argon2",
    ] {
        assert!(!log.contains(hidden), "a secret is in the log: {hidden}");
        assert!(!records.contains(hidden), "a secret is in the audit log: {hidden}");
    }
    drop(auth);
    app.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn garbage_of_a_client_and_a_clean_shutdown_are_no_errors() {
    let app = TestApp::alone().await;
    app.create_merchant("acme").await;
    let (id, secret) = app.create_client(Some("acme"), &["orders"]).await;
    let mut auth = LoggingAuth::start(&app).await;
    let address = auth.url.trim_start_matches("http://").to_owned();
    for garbage in
        ["\u{0}\u{1}garbage\r\n\r\n", "GET / HTTP/9.9\r\n\r\n", "POST /oauth/token HTTP/1.1\r\n"]
    {
        let mut stream = tokio::net::TcpStream::connect(&address).await.unwrap();
        stream.write_all(garbage.as_bytes()).await.unwrap();
        stream.shutdown().await.unwrap();
        // The server closes the connection; whether it responds depends on the garbage.
        drop(stream.read_to_end(&mut Vec::new()).await);
    }
    let request = app.http.post(format!("{}/oauth/token", auth.url));
    let request = request.header("Content-Type", "application/json").body("{garbage");
    assert_eq!(send(request).await.0, StatusCode::BAD_REQUEST);
    let (_, token) = auth.request_token(&app, &id, &secret).await;
    let token = token["access_token"].as_str().unwrap();
    let request = app.http.get(format!("{}/v1/merchants", auth.url)).bearer_auth(token);
    assert_eq!(send(request).await.0, StatusCode::FORBIDDEN);
    let line = auth.line("responded with 403").await;
    assert_eq!((&line["service"], &line["merchant"]), (&json!("auth"), &json!("acme")), "{line}");
    assert!(line["elapsed_ms"].is_u64() && line["status"] == 403, "{line}");

    let (ended_well, log) = auth.terminate();
    assert!(ended_well, "{log}");
    assert!(log.contains("auth has shut down"), "{log}");
    let levels = log.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let errors: Vec<_> = levels.filter(|line| line["level"] == "ERROR").collect();
    assert!(errors.is_empty(), "{errors:#?}");
    drop(auth);
    app.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_text_log_in_a_file_has_no_colors() {
    let app = TestApp::alone().await;
    let mut auth = LoggingAuth::start_with(&app, "text").await;
    let (_, log) = auth.terminate();
    assert!(log.contains("INFO") && !log.contains('\u{1b}'), "{log:?}");
    drop(auth);
    app.stop().await;
}
