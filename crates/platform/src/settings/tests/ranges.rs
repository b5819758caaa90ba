//! Tests of values that can be read and that no service could work with.

use super::*;
use crate::{idempotency, identity};

const DEFAULTS: &str = r#"
[identity]
issuer = "https://auth.test"
jwks_url = "https://auth.test/.well-known/jwks.json"
jwks_refresh_interval = "5min"
[idempotency]
retention = "7days"
"#;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Sections {
    #[serde(rename = "identity")]
    _identity: identity::Settings,
    #[serde(rename = "idempotency")]
    _idempotency: idempotency::Settings,
}

/// The faults, one a line.
fn faults(settings: &[(&str, &str)]) -> String {
    let url = ("DATABASE__URL", "postgres://h/d");
    let variables = settings.iter().copied().chain([url]);
    let variables = variables.map(|(name, value)| (format!("TEST__{name}"), value.to_owned()));
    let loaded = load::<Sections>("test", &[DEFAULTS], None, variables.collect());
    let text = loaded.err().map(|faults| faults.to_string()).unwrap_or_default();
    text.lines().skip(1).map(str::trim).collect::<Vec<_>>().join("\n")
}

#[test]
fn all_values_outside_their_range_are_listed_with_the_range() {
    let faults = faults(&[
        ("DATABASE__ACQUIRE_TIMEOUT", "0s"),
        ("DATABASE__MAX_CONNECTIONS", "0"),
        ("DATABASE__MAX_READERS", "0"),
        ("DATABASE__STATEMENT_TIMEOUT", "0s"),
        ("HTTP__BODY_TIMEOUT", "0s"),
        ("HTTP__HEADER_TIMEOUT", "0s"),
        ("HTTP__KEEP_ALIVE", "0s"),
        ("HTTP__MAX_BODY", "0"),
        ("HTTP__MAX_CONNECTIONS", "0"),
        ("HTTP__REQUEST_TIMEOUT", "2h"),
        ("HTTP__WORKERS", "5000"),
        ("IDEMPOTENCY__RETENTION", "0s"),
        ("IDENTITY__ISSUER", "auth"),
        ("IDENTITY__JWKS_REFRESH_INTERVAL", "0s"),
        ("IDENTITY__JWKS_URL", "auth:8081/jwks.json"),
        ("TELEMETRY__SAMPLE_RATIO", "7"),
    ]);
    expect![[r#"
        database.acquire_timeout (TEST__DATABASE__ACQUIRE_TIMEOUT): must be a duration from 10ms to 1h, not 0s
        database.max_connections (TEST__DATABASE__MAX_CONNECTIONS): must be a whole number from 1 to 10000, not 0
        database.max_readers (TEST__DATABASE__MAX_READERS): must be a whole number from 1 to 10000, not 0
        database.statement_timeout (TEST__DATABASE__STATEMENT_TIMEOUT): must be a duration from 10ms to 1day, not 0s
        http.body_timeout (TEST__HTTP__BODY_TIMEOUT): must be a duration from 100ms to 1h, not 0s
        http.header_timeout (TEST__HTTP__HEADER_TIMEOUT): must be a duration from 100ms to 1h, not 0s
        http.keep_alive (TEST__HTTP__KEEP_ALIVE): must be a duration from 1s to 1h, not 0s
        http.max_body (TEST__HTTP__MAX_BODY): must be a size from 1000 B to 1.0 GiB, not 0 B
        http.max_connections (TEST__HTTP__MAX_CONNECTIONS): must be a whole number from 1 to 1000000, not 0
        http.request_timeout (TEST__HTTP__REQUEST_TIMEOUT): must be a duration from 100ms to 1h, not 2h
        http.workers (TEST__HTTP__WORKERS): must be a whole number from 0 to 1024, not 5000
        idempotency.retention (TEST__IDEMPOTENCY__RETENTION): must be a duration from 1h to 100years, not 0s
        identity.issuer (TEST__IDENTITY__ISSUER): "auth" is not an http:// or https:// URL
        identity.jwks_refresh_interval (TEST__IDENTITY__JWKS_REFRESH_INTERVAL): must be a duration from 1s to 1day, not 0s
        identity.jwks_url (TEST__IDENTITY__JWKS_URL): "auth:8081/jwks.json" is not an http:// or https:// URL
        telemetry.sample_ratio (TEST__TELEMETRY__SAMPLE_RATIO): must be a number from 0 to 1, not 7"#]]
    .assert_eq(&faults);
}

#[test]
fn the_ends_of_a_range_are_accepted() {
    for setting in [
        ("DATABASE__MAX_CONNECTIONS", "1"),
        ("DATABASE__MAX_CONNECTIONS", "10000"),
        // The pool takes half of max_connections for it.
        ("DATABASE__MAX_READERS", "40"),
        ("DATABASE__STATEMENT_TIMEOUT", "24h"),
        ("HTTP__MAX_INFLIGHT", "0"),
        ("HTTP__REQUEST_TIMEOUT", "100ms"),
        ("HTTP__WORKERS", "0"),
        ("IDENTITY__ISSUER", "http://auth:8081/tenant"),
        ("TELEMETRY__SAMPLE_RATIO", "0"),
        ("TELEMETRY__SAMPLE_RATIO", "1"),
    ] {
        assert_eq!(faults(&[setting]), "", "{setting:?}");
    }
    for (name, value, reason) in [
        ("DATABASE__MAX_CONNECTIONS", "10001", "from 1 to 10000, not 10001"),
        ("DATABASE__STATEMENT_TIMEOUT", "500us", "from 10ms to 1day"),
        ("IDENTITY__ISSUER", "https://auth.test?a=b", "must have no query and no fragment"),
        ("IDENTITY__ISSUER", "ftp://auth.test", "is not an http:// or https:// URL"),
        ("LIMITS__REQUESTS_PER_MINUTE", "5000000000", "a whole number up to 4294967295"),
        ("TELEMETRY__SAMPLE_RATIO", "-0.1", "from 0 to 1, not -0.1"),
        ("TELEMETRY__SAMPLE_RATIO", "NaN", "from 0 to 1, not NaN"),
    ] {
        let faults = faults(&[(name, value)]);
        assert!(faults.contains(reason), "{name}={value}: {faults}");
    }
}
