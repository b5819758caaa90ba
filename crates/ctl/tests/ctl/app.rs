//! The services that the program calls in a test, and the program itself.

use std::process::{Output, Stdio};
use std::time::Duration;

use platform::{Clock, Running, Service};
use reqwest::Method;
use serde_json::{Value, json};
use tempfile::TempDir;
use testkit::{Database, Namespace, TestService, eventually};
use tokio::io::AsyncWriteExt as _;
use tokio::process::Command;

use crate::delivering_service::DeliveringService;

pub(crate) const OPERATOR_SECRET: &str = "a secret of the first operator";
pub(crate) const TIMEOUT: Duration = Duration::from_secs(300);

/// The auth service and a folder that looks like a checkout with a running stack.
pub(crate) struct TestApp {
    auth: TestService,
    pub(crate) checkout: TempDir,
    delivery: Option<Delivery>,
}

/// A delivering service and the merchant acme, which receives RMA messages at a sandbox.
struct Delivery {
    service: Running,
    sandbox: sandbox::Running,
    signing_secret: String,
    _database: Database,
}

impl TestApp {
    pub(crate) async fn start() -> Self {
        let auth = TestService::new::<auth::App>(&[
            ("SEALING__KEYS", testkit::sealing_keys()),
            ("BOOTSTRAP__CLIENT_ID", "operator"),
            ("BOOTSTRAP__CLIENT_SECRET", OPERATOR_SECRET),
            ("TOKENS__ISSUER", "https://auth.test"),
            // Every command requests a token, and a test repeats commands until something happens.
            ("LIMITS__REQUESTS_PER_MINUTE", "100000"),
            // So that a test can stop the publication of few events.
            ("BROKER__REPUBLISH_PER_SECOND", "50"),
            ("DELIVERY__HTTPS_ONLY", "false"),
            ("DELIVERY__ALLOWED_NETWORKS", "127.0.0.1/32"),
        ])
        .await;
        let checkout = tempfile::tempdir().unwrap();
        for folder in ["scripts", ".run", "deep/inside"] {
            std::fs::create_dir_all(checkout.path().join(folder)).unwrap();
        }
        std::fs::write(checkout.path().join("scripts/run"), "").unwrap();
        let environment = format!(
            "AUTH_URL={}\nOPERATOR_CLIENT_ID=operator\nOPERATOR_CLIENT_SECRET='{OPERATOR_SECRET}'\n",
            auth.url
        );
        std::fs::write(checkout.path().join(".run/env"), environment).unwrap();
        Self { auth, checkout, delivery: None }
    }

    /// Starts a delivering service too.
    pub(crate) async fn with_delivery() -> Self {
        let mut app = Self::start().await;
        let sandbox = sandbox::start(&sandbox::settings::Settings::for_tests().unwrap()).unwrap();
        let settings = [
            ("SEALING__KEYS", testkit::sealing_keys()),
            ("IDENTITY__JWKS_REFRESH_INTERVAL", "5min"),
            ("DELIVERY__HTTPS_ONLY", "false"),
            ("DELIVERY__ALLOWED_NETWORKS", "127.0.0.1/32"),
            ("DELIVERY__RETRY_BASE", "50ms"),
            ("DELIVERY__RETRY_FACTOR", "1"),
            ("DELIVERY__RETRIES", "1"),
            ("DELIVERY__POLL_INTERVAL", "20ms"),
        ];
        let (database, service) = app.start_service::<DeliveringService>(&settings).await;
        app.set("RMA_URL", &service.url);
        app.text("merchant add acme --name Acme").await;
        let set = format!("endpoint set acme rma --url {} --json", sandbox.url("/rmas"));
        let signing_secret = app.json(&set).await["signing_secret"].as_str().unwrap().to_owned();
        app.delivery = Some(Delivery { service, sandbox, signing_secret, _database: database });
        eventually("the service knows acme", TIMEOUT, async || {
            app.backhaul("endpoint check acme").await.status.success().then_some(())
        })
        .await;
        app
    }

    /// Starts another service, which accepts the tokens of auth.
    pub(crate) async fn start_service<S: Service>(
        &self,
        settings: &[(&str, &str)],
    ) -> (Database, Running) {
        let jwks_url = format!("{}/.well-known/jwks.json", self.auth.url);
        let identity =
            [("IDENTITY__ISSUER", "https://auth.test"), ("IDENTITY__JWKS_URL", jwks_url.as_str())];
        let settings = [settings, &identity[..]].concat();
        let database = Database::create(S::migrations()).await;
        let namespace = self.namespace();
        let service = testkit::run::<S>(&settings, Clock::system(), &database, namespace).await;
        (database, service)
    }

    /// Adds a client of acme, whose credentials the next commands use, and returns its ID.
    pub(crate) async fn add_client(&self, scopes: &str) -> String {
        let client = self.json(&format!("client add acme {scopes} --json")).await;
        let text = |name: &str| client[name].as_str().unwrap().to_owned();
        self.set("CLIENT_ID", &text("client_id"));
        self.set("CLIENT_SECRET", &text("client_secret"));
        text("client_id")
    }

    pub(crate) async fn stop(self) {
        if let Some(delivery) = self.delivery {
            assert!(delivery.service.stop().await, "the service did not stop in time");
        }
    }

    pub(crate) fn namespace(&self) -> &Namespace {
        &self.auth.namespace
    }

    /// Executes statements in the database of auth.
    pub(crate) async fn execute_at_auth(&self, statements: &str) {
        self.auth.database.execute_raw(statements).await;
    }

    pub(crate) fn auth_url(&self) -> &str {
        &self.auth.url
    }

    /// Adds a setting to the checkout.
    pub(crate) fn set(&self, name: &str, value: &str) {
        let file = self.checkout.path().join(".run/env");
        let settings = std::fs::read_to_string(&file).unwrap();
        std::fs::write(file, format!("{settings}{name}={value}\n")).unwrap();
    }

    /// Writes a file in the current folder of the commands.
    pub(crate) fn write(&self, name: &str, content: &str) {
        std::fs::write(self.checkout.path().join("deep").join(name), content).unwrap();
    }

    /// A command with arguments separated by spaces, in a folder inside the checkout.
    pub(crate) fn command(&self, line: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_backhaul"));
        command.args(line.split(' ')).env_clear().current_dir(self.checkout.path().join("deep"));
        command
    }

    pub(crate) async fn backhaul(&self, line: &str) -> Output {
        self.command(line).stdin(Stdio::null()).output().await.unwrap()
    }

    pub(crate) async fn backhaul_with_input(&self, line: &str, input: &str) -> Output {
        let mut command = self.command(line);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        child.stdin.take().unwrap().write_all(input.as_bytes()).await.unwrap();
        child.wait_with_output().await.unwrap()
    }

    /// The output of a command that must succeed.
    #[track_caller]
    pub(crate) fn text(&self, line: &str) -> impl Future<Output = String> {
        let caller = std::panic::Location::caller();
        async move {
            let output = self.backhaul(line).await;
            let stderr = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{caller}: {line}: {stderr}");
            String::from_utf8(output.stdout).unwrap()
        }
    }

    #[track_caller]
    pub(crate) fn json(&self, line: &str) -> impl Future<Output = Value> {
        let text = self.text(line);
        async move { serde_json::from_str(&text.await).unwrap() }
    }

    /// The error of a command that must fail with this exit code.
    pub(crate) async fn error(&self, line: &str, code: i32) -> String {
        let output = self.backhaul(line).await;
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(code), "{line}: {stderr}");
        assert!(output.stdout.is_empty(), "{line}");
        stderr
    }

    fn delivery(&self) -> &Delivery {
        self.delivery.as_ref().unwrap()
    }

    /// The secret that signs the messages to acme.
    pub(crate) fn signing_secret(&self) -> &str {
        &self.delivery().signing_secret
    }

    /// Makes the delivering service the second of two, the first of which is down.
    pub(crate) fn add_unreachable_service(&self) {
        self.set("RMA_URL", "http://127.0.0.1:1");
        self.set("EXCHANGE_URL", &self.delivery().service.url);
    }

    /// Sends a message to acme and returns its id.
    pub(crate) async fn send_message(&self, body: &Value) -> String {
        let client = platform::http_client(Duration::from_secs(300)).unwrap();
        let url = format!("{}/messages", self.delivery().service.url);
        let response = client.post(url).body(body.to_string()).send().await.unwrap();
        response.error_for_status().unwrap().json().await.unwrap()
    }

    pub(crate) async fn wait_for_state(&self, id: &str, state: &str) {
        eventually(&format!("{id} is {state}"), TIMEOUT, async || {
            let delivery = self.json(&format!("deliveries show {id} --json")).await;
            (delivery["state"] == state).then_some(())
        })
        .await;
    }

    /// Sets the status of all following responses of acme.
    pub(crate) async fn respond_with(&self, status: u16) {
        let steps = json!([{"do": "respond", "status": status, "times": "always"}]);
        let rule = json!({"path": "/rmas", "steps": steps});
        self.call_sandbox(Method::PUT, "/behaviour", &rule).await;
    }

    /// A URL of acme's server.
    pub(crate) fn sandbox_url(&self, path: &str) -> String {
        self.delivery().sandbox.url(path)
    }

    /// The newest request that acme received at its endpoint for a message.
    pub(crate) async fn received_request(&self, id: &str) -> Value {
        self.received_at("/rmas", id).await
    }

    /// The newest request with this path for a message.
    pub(crate) async fn received_at(&self, path: &str, id: &str) -> Value {
        let journal = format!("/journal?path={path}&webhook_id={id}");
        let page = self.call_sandbox(Method::GET, &journal, &Value::Null).await;
        page["entries"].as_array().unwrap().last().unwrap().clone()
    }

    async fn call_sandbox(&self, method: Method, path: &str, body: &Value) -> Value {
        let client = platform::http_client(Duration::from_secs(300)).unwrap();
        let request = client.request(method, self.delivery().sandbox.url(path)).json(body);
        let response = request.send().await.unwrap().error_for_status().unwrap();
        serde_json::from_slice(&response.bytes().await.unwrap()).unwrap_or_default()
    }
}
