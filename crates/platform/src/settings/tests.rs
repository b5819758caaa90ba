//! Tests of settings and their faults.

mod ranges;

use expect_test::{Expect, expect};
use secrecy::ExposeSecret;

use super::*;
use crate::config::List;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Own {
    tokens: Tokens,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Tokens {
    lifetime: u32,
    names: List<String>,
}

const DEFAULTS: &str = "[http]\nport = 1\n[tokens]\nlifetime = 5\nnames = []";

fn read(environment: &[(&str, &str)]) -> Result<(Settings, Own), Faults> {
    let url = ("ORDER_INTAKE__DATABASE__URL", "postgres://u:topsecret@h/d");
    let environment = environment.iter().copied().chain([url]);
    load(
        "order-intake",
        &[DEFAULTS],
        None,
        environment.map(|(k, v)| (k.to_owned(), v.to_owned())).collect(),
    )
}

#[track_caller]
fn check_error(key: &str, value: &str, message: &Expect) {
    message.assert_eq(&read(&[(key, value)]).unwrap_err().to_string());
}

#[test]
fn the_environment_wins_over_the_defaults() {
    let (settings, own) = read(&[
        ("ORDER_INTAKE__HTTP__PORT", "9000"),
        ("ORDER_INTAKE__TOKENS__NAMES", "a, b"),
        ("ORDER_INTAKE__HTTP__TRUSTED_PROXIES", "10.0.0.0/8,192.0.2.7"),
        ("AUTH__HTTP__PORT", "1234"),
    ])
    .unwrap();
    assert_eq!((settings.http.port, own.tokens.lifetime), (9000, 5));
    assert_eq!(*own.tokens.names, ["a", "b"]);
    assert_eq!(settings.http.trusted_proxies.len(), 2);
    assert_eq!(settings.database.url.unwrap().expose_secret(), "postgres://u:topsecret@h/d");
}

#[test]
fn every_wrong_item_of_a_list_is_named() {
    check_error(
        "ORDER_INTAKE__HTTP__TRUSTED_PROXIES",
        "10.0.0.0/33,10.0.0.0/8,foo",
        &expect![[r#"
            one setting of order-intake is wrong:
              http.trusted_proxies (ORDER_INTAKE__HTTP__TRUSTED_PROXIES): "10.0.0.0/33" is not an address or a network like 10.0.0.0/8; "foo" is not an address or a network like 10.0.0.0/8"#]],
    );
}

#[test]
fn an_unknown_setting_is_rejected() {
    check_error(
        "ORDER_INTAKE__HTPP__PORT",
        "1",
        &expect![[r#"
            one setting of order-intake is wrong:
              htpp (ORDER_INTAKE__HTPP__*): does not exist; `defaults` prints all settings"#]],
    );
    check_error(
        "ORDER_INTAKE__HTTP__PROT",
        "1",
        &expect![[r#"
            one setting of order-intake is wrong:
              http.prot (ORDER_INTAKE__HTTP__PROT): does not exist; `defaults` prints all settings"#]],
    );
}

#[test]
#[expect(clippy::too_many_lines, reason = "one table of values")]
fn a_value_that_cannot_be_read_is_rejected_in_plain_words() {
    for (name, value, reason) in [
        (
            "HTTP__PORT",
            "eighty",
            "http.port (ORDER_INTAKE__HTTP__PORT): must be a whole number, not \"eighty\"",
        ),
        ("HTTP__PORT", "70000", "must be a whole number from 0 to 65535, not 70000"),
        (
            "HTTP__KEEP_ALIVE",
            "long",
            "must be a duration such as \"30s\" or \"5min\", not \"long\"",
        ),
        ("HTTP__BEHIND_TLS_PROXY", "maybe", "must be true or false, not \"maybe\""),
        (
            "HTTP__TLS__KEY",
            "a.key",
            "http.tls.certificate (ORDER_INTAKE__HTTP__TLS__CERTIFICATE): is required and not set",
        ),
        (
            "HTTP__TRUSTED_PROXIES",
            "everyone",
            "\"everyone\" is not an address or a network like 10.0.0.0/8",
        ),
        ("LIMITS__REQUESTS_PER_MINUTE", "0", "must be a whole number above 0, not 0"),
        ("TELEMETRY__FORMAT", "yaml", "\"yaml\" is not a possible value"),
        ("TELEMETRY__SAMPLE_RATIO", "all", "must be a number, not \"all\""),
        (
            "TELEMETRY__LOG",
            "info,x=loud",
            "telemetry.log (ORDER_INTAKE__TELEMETRY__LOG): \"x=loud\" is neither a level",
        ),
        (
            "TELEMETRY__LOG",
            "loud",
            "\"loud\" is neither a level (off, error, warn, info, debug, trace) nor like delivery=debug",
        ),
        ("TELEMETRY__LOG", "info,delivery", "\"delivery\" is neither a level"),
        ("TELEMETRY__LOG", "info,delivery=", "\"delivery=\" is neither a level"),
        (
            "TELEMETRY__LOG",
            "info,delivery[send]=debug",
            "\"delivery[send]=debug\" is neither a level",
        ),
        (
            "TELEMETRY__OTLP_ENDPOINT",
            "collector:4318",
            "\"collector:4318\" is not an http:// or https:// URL",
        ),
        (
            "DATABASE__URL",
            "localhost/orders",
            "database.url (ORDER_INTAKE__DATABASE__URL): it is not a PostgreSQL URL",
        ),
        ("DATABASE__URL", "postgres://u:topsecret@h:port/d", "invalid value for option `port`"),
        ("DATABASE__URL", "postgres:///d", "it has no host"),
    ] {
        let mut environment =
            vec![("ORDER_INTAKE__DATABASE__URL".to_owned(), "postgres://h/d".to_owned())];
        environment.push((format!("ORDER_INTAKE__{name}"), value.to_owned()));
        let environment = environment.into_iter().collect();
        let read = load::<Own>("order-intake", &[DEFAULTS], None, environment);
        let message = read.unwrap_err().to_string();
        assert!(message.starts_with("one setting of order-intake is wrong:"), "{message}");
        assert!(message.contains(reason), "{reason}: {message}");
        assert!(!message.contains("topsecret"), "{message}");
    }
}

#[test]
fn all_faults_are_listed_at_once() {
    let environment = [
        ("ORDER_INTAKE__HTTP__PORT", "eighty"),
        ("ORDER_INTAKE__HTTP__PROT", "80"),
        ("ORDER_INTAKE__HTTP__TLS__KEY", "a.key"),
        ("ORDER_INTAKE__TELEMETRY__LOG", "loud"),
        ("ORDER_INTAKE__TOKENS__LIFETIME", "long"),
        ("ORDER_INTAKE__TOKENS__OWNER", "me"),
    ];
    let environment = environment.map(|(k, v)| (k.to_owned(), v.to_owned())).into();
    let read = load::<Own>("order-intake", &[DEFAULTS], None, environment);
    let message = read.unwrap_err().to_string();
    let names: Vec<_> =
        message.lines().skip(1).map(|line| line.split_whitespace().next().unwrap()).collect();
    assert_eq!(
        names,
        [
            "database.url",
            "http.port",
            "http.prot",
            "http.tls.certificate",
            "telemetry.log",
            "tokens.lifetime",
            "tokens.owner"
        ],
        "{message}"
    );
    assert!(message.starts_with("7 settings of order-intake are wrong:"), "{message}");
}

#[test]
fn the_printed_defaults_are_a_settings_file_with_the_same_values() {
    let texts = [
        "# Of all.\n\n[http]\nport = 1\n# Time.\nkeep_alive = \"1s\"\n[database]\n# Required.\n# url = \"x\"",
        "[http]\n# Of the service.\nport = 2\n\n[database]\n# None.\nurl = \"\"\n\n# Of this one.\n[own]\nlist = [\"a = b\"]",
    ];
    expect![[r#"
        # Of all.

        [http]
        # Of the service.
        port = 2
        # Time.
        keep_alive = "1s"

        [database]
        # None.
        url = ""

        # Of this one.
        [own]
        list = ["a = b"]"#]]
    .assert_eq(&merge_defaults(&texts));

    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("settings.toml");
    std::fs::write(&file, default_text(&[DEFAULTS])).unwrap();
    let merged = read_all("order-intake", &[], Some(&file), HashMap::new()).unwrap();
    let embedded = read_all("order-intake", &[DEFAULTS], None, HashMap::new()).unwrap();
    let kinds = |table: Table| -> serde_json::Value {
        Value::new(None, ValueKind::Table(table)).try_deserialize().unwrap()
    };
    assert_eq!(kinds(merged), kinds(embedded));
}

#[test]
fn the_address_can_be_read_without_the_secrets() {
    let environment = [("ORDER_INTAKE__HTTP__HOST", "0.0.0.0"), ("ORDER_INTAKE__TOKENS__X", "1")];
    let environment = environment.map(|(k, v)| (k.to_owned(), v.to_owned())).into();
    let http = load_http("order-intake", &[DEFAULTS], None, environment).unwrap();
    assert_eq!((http.host.as_str(), http.port), ("0.0.0.0", 1));
}

#[test]
fn secrets_are_not_printed() {
    let (settings, _) = read(&[]).unwrap();
    assert!(!format!("{settings:?}").contains("topsecret"));
}
