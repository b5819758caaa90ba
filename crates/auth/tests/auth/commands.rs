//! Tests of the `health`, `check` and `defaults` commands.

use testkit::sealing_keys;
use tokio::process::Command;

use crate::app::{OPERATOR, OPERATOR_SECRET, TestApp};

#[tokio::test(flavor = "multi_thread")]
async fn health_needs_only_the_port() {
    let app = TestApp::alone().await;
    let port = app.service.url.rsplit_once(':').unwrap().1.to_owned();
    let health = async |port: &str, arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_auth"));
        command.env_clear().args(arguments).arg("health");
        if !port.is_empty() {
            command.env("AUTH__HTTP__PORT", port);
        }
        let output = command.output().await.unwrap();
        (output.status.success(), String::from_utf8(output.stderr).unwrap())
    };
    assert_eq!(health(&port, &[]).await, (true, String::new()));
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("settings.toml");
    std::fs::write(&file, format!("[http]\nport = {port}\n")).unwrap();
    let file = file.to_str().unwrap();
    assert_eq!(health("", &["--config", file]).await, (true, String::new()));
    assert!(!health("1", &["--config", file]).await.0);
    app.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn check_rejects_the_settings_that_serve_rejects() {
    let check = async |settings: &[(&str, &str)]| {
        let valid = [
            ("AUTH__DATABASE__URL", "postgres://nobody@127.0.0.1:1/nothing"),
            ("AUTH__BROKER__URL", "amqp://127.0.0.1:1"),
            ("AUTH__SEALING__KEYS", sealing_keys()),
            ("AUTH__BOOTSTRAP__CLIENT_ID", OPERATOR),
            ("AUTH__BOOTSTRAP__CLIENT_SECRET", OPERATOR_SECRET),
        ];
        let mut command = Command::new(env!("CARGO_BIN_EXE_auth"));
        command.env_clear().envs(valid).envs(settings.iter().copied()).arg("check");
        String::from_utf8(command.output().await.unwrap().stderr).unwrap()
    };
    assert_eq!(check(&[]).await, "");
    for (setting, expected) in [
        (("AUTH__SEALING__KEYS", "k1:short"), "sealing.keys (AUTH__SEALING__KEYS): entry 0 is not"),
        (("AUTH__SEALING__KEYS", ""), "sealing.keys (AUTH__SEALING__KEYS): is empty"),
        (("AUTH__BOOTSTRAP__CLIENT_SECRET", "secret"), "at least 20 characters"),
        (
            ("AUTH__HTTP__HOST", "0.0.0.0"),
            "http.host (AUTH__HTTP__HOST): \"0.0.0.0\" is reachable from outside",
        ),
        (
            ("AUTH__OIDC__ISSUER", "http://id.example"),
            "oidc.issuer (AUTH__OIDC__ISSUER): must be an https URL",
        ),
        (
            ("AUTH__OIDC__ISSUER", "id.example"),
            "oidc.issuer (AUTH__OIDC__ISSUER): must be an https URL",
        ),
        (
            ("AUTH__OIDC__ISSUER", "https://id.example"),
            "oidc.client_id (AUTH__OIDC__CLIENT_ID): is empty",
        ),
        (("AUTH__OIDC__ROLES", "staff=owner"), "\"staff=owner\" is not a role mapping"),
        (
            ("AUTH__PEOPLE__PASSWORDS", "false"),
            "people.passwords (AUTH__PEOPLE__PASSWORDS): is false and oidc.issuer is empty",
        ),
    ] {
        let stderr = check(&[setting]).await;
        assert!(stderr.contains(expected), "{setting:?}: {stderr}");
    }
    let oidc = [
        ("AUTH__OIDC__ISSUER", "https://id.example"),
        ("AUTH__OIDC__CLIENT_ID", "backhaul"),
        ("AUTH__OIDC__ROLES", "shop=merchant-admin:acme"),
        ("AUTH__PEOPLE__PASSWORDS", "false"),
    ];
    assert_eq!(check(&oidc).await, "");
    let stderr = check(&[&oidc[..], &[("AUTH__OIDC__SCOPES", "email")]].concat()).await;
    assert!(stderr.contains("oidc.scopes (AUTH__OIDC__SCOPES): must contain openid"), "{stderr}");
    let stderr = check(&oidc[..2]).await;
    assert!(stderr.contains("oidc.roles (AUTH__OIDC__ROLES): is empty"), "{stderr}");
    let certificate = ("AUTH__HTTP__TLS__CERTIFICATE", "/nowhere/tls.crt");
    let stderr = check(&[certificate, ("AUTH__HTTP__TLS__KEY", "/nowhere/tls.key")]).await;
    assert!(stderr.contains("/nowhere/tls."), "{stderr}");
}

#[tokio::test]
async fn check_lists_all_faults_at_once() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_auth"));
    let settings = [
        ("AUTH__HTTP__PORT", "eighty"),
        ("AUTH__HTTP__PROT", "80"),
        ("AUTH__BOOTSTRAP__CLIENT_ID", OPERATOR),
        ("AUTH__BOOTSTRAP__CLIENT_SECRET", "short"),
        ("AUTH__TELEMETRY__LOG", "loud"),
    ];
    let output = command.env_clear().envs(settings).arg("check").output().await.unwrap();
    assert!(!output.status.success());
    let stderr = String::from_utf8(output.stderr).unwrap();
    let faults: Vec<_> = stderr.lines().collect();
    assert_eq!(
        faults,
        [
            "error: 7 settings of auth are wrong:",
            "  bootstrap.client_secret (AUTH__BOOTSTRAP__CLIENT_SECRET): must have at least 20 characters",
            "  broker.url (AUTH__BROKER__URL): is required and not set",
            "  database.url (AUTH__DATABASE__URL): is required and not set",
            "  http.port (AUTH__HTTP__PORT): must be a whole number, not \"eighty\"",
            "  http.prot (AUTH__HTTP__PROT): does not exist; `defaults` prints all settings",
            "  sealing.keys (AUTH__SEALING__KEYS): is required and not set",
            "  telemetry.log (AUTH__TELEMETRY__LOG): \"loud\" is neither a level (off, error, warn, info, debug, trace) nor like delivery=debug",
        ]
    );
}

#[tokio::test]
async fn the_printed_defaults_are_a_settings_file() {
    let auth = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_auth"));
        command.env_clear();
        command
    };
    let defaults = auth().arg("defaults").output().await.unwrap().stdout;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("auth.toml");
    std::fs::write(&file, &defaults).unwrap();
    let mut check = auth();
    check.arg("--config").arg(&file).arg("check");
    let stderr = String::from_utf8(check.output().await.unwrap().stderr).unwrap();
    let names: Vec<_> =
        stderr.lines().skip(1).map(|line| line.split_whitespace().next().unwrap()).collect();
    assert_eq!(names, ["broker.url", "database.url", "sealing.keys"], "{stderr}");
    let secrets = [
        ("AUTH__DATABASE__URL", "postgres://nobody@127.0.0.1:1/nothing"),
        ("AUTH__BROKER__URL", "amqp://127.0.0.1:1"),
        ("AUTH__SEALING__KEYS", sealing_keys()),
    ];
    let output = check.envs(secrets).output().await.unwrap();
    assert!(output.status.success(), "{output:?}");
}
