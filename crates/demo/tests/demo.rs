//! The `demo` program against a running auth service and order intake.

#![expect(clippy::unwrap_used, reason = "a test that cannot be set up should panic")]

use std::os::unix::fs::PermissionsExt as _;
use std::process::{Output, Stdio};
use std::time::Duration;

use ctl::api_client::ApiClient;
use ctl::oauth::{OPERATOR, TokenClient};
use ctl::settings::Settings;
use platform::{Clock, Running, Service as _};
use serde_json::{Value, json};
use tempfile::TempDir;
use testkit::{Database, TestService, run};
use tokio::process::Command;

const OPERATOR_SECRET: &str = "a secret of the first operator";

/// The auth service, the order intake and the folder of the demo merchant.
struct TestApp {
    auth: TestService,
    order_intake: Running,
    folder: TempDir,
    _database: Database,
}

impl TestApp {
    async fn start() -> Self {
        let auth = TestService::new::<auth::App>(&[
            ("SEALING__KEYS", testkit::sealing_keys()),
            ("BOOTSTRAP__CLIENT_ID", "operator"),
            ("BOOTSTRAP__CLIENT_SECRET", OPERATOR_SECRET),
            ("TOKENS__ISSUER", "https://auth.test"),
            ("DELIVERY__HTTPS_ONLY", "false"),
            ("DELIVERY__ALLOWED_NETWORKS", "127.0.0.1/32"),
        ])
        .await;
        let database = Database::create(order_intake::App::migrations()).await;
        let jwks_url = format!("{}/.well-known/jwks.json", auth.url);
        let settings =
            [("IDENTITY__ISSUER", "https://auth.test"), ("IDENTITY__JWKS_URL", jwks_url.as_str())];
        let clock = Clock::system();
        let order_intake =
            run::<order_intake::App>(&settings, clock, &database, &auth.namespace).await;
        Self { auth, order_intake, folder: tempfile::tempdir().unwrap(), _database: database }
    }

    fn settings(&self) -> [(&'static str, &str); 4] {
        [
            ("AUTH_URL", &self.auth.url),
            ("ORDERS_URL", &self.order_intake.url),
            ("OPERATOR_CLIENT_ID", "operator"),
            ("OPERATOR_CLIENT_SECRET", OPERATOR_SECRET),
        ]
    }

    async fn seed(&self, settings: &[(&str, &str)]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_demo"));
        command.args(["seed", "deep/seed"]).env_clear().envs(settings.iter().copied());
        command.current_dir(self.folder.path()).stdin(Stdio::null()).output().await.unwrap()
    }

    /// The output of a seed that must succeed.
    async fn seeded(&self) -> String {
        let output = self.seed(&self.settings()).await;
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    /// The content of a file of the demo merchant.
    fn file(&self, name: &str) -> String {
        std::fs::read_to_string(self.folder.path().join("deep/seed").join(name)).unwrap()
    }

    /// The auth service, called by the operator.
    async fn operator(&self) -> ApiClient {
        let values = self.settings().map(|(name, value)| (name.to_owned(), value.to_owned()));
        let settings = Settings::default().with(values.into());
        let tokens = TokenClient::from_settings(&settings, OPERATOR).unwrap();
        ApiClient::log_in(&tokens, Duration::from_secs(10)).await.unwrap()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_demo_merchant_is_created_once_and_reused() {
    let app = TestApp::start().await;
    expect_test::expect![[r#"
        created merchant demo
        created API client
        published 20 orders
    "#]]
    .assert_eq(&app.seeded().await);
    let client = app.file("env");
    let orders = app.file("orders.json");
    let mode = app.folder.path().join("deep/seed/env").metadata().unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);

    expect_test::expect![[r#"
        merchant demo exists
        API client exists
        published 20 orders
    "#]]
    .assert_eq(&app.seeded().await);
    assert_eq!((app.file("env"), app.file("orders.json")), (client.clone(), orders));
    let operator = app.operator().await;
    let clients = operator.search(&["v1", "clients"], &[("merchant", "demo")]).await.unwrap();
    let clients = clients.get("clients").and_then(Value::as_array).unwrap();
    assert_eq!(clients.len(), 1);

    // A revoked client is replaced.
    let id = clients.first().unwrap().get("client_id").and_then(Value::as_str).unwrap();
    operator.post(&["v1", "clients", id, "revoke"], &json!({})).await.unwrap();
    let output = app.seeded().await;
    assert!(output.contains("created API client"), "{output}");
    assert_ne!(app.file("env"), client);
    assert!(app.order_intake.stop().await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_setting_is_a_usage_error() {
    let app = TestApp::start().await;
    let settings = app.settings().map(|(name, value)| match name {
        "OPERATOR_CLIENT_ID" => (name, ""),
        _ => (name, value),
    });
    let output = app.seed(&settings).await;
    assert_eq!(output.status.code(), Some(2));
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(stderr.contains("is not set: set OPERATOR_CLIENT_ID\n"), "{stderr}");
    assert!(app.order_intake.stop().await);
}
