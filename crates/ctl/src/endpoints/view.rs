//! Endpoints as text.

use domain::merchant::Interface;
use serde_json::{Value, json};

use super::authentication;
use crate::output::{
    Column, computed, details, items, join, new_secret, table, text_at, time_at, value,
};

const COLUMNS: &[Column] = &[
    value("interface", "/interface"),
    computed("state", state),
    value("url", "/resolved_url"),
    computed("authentication", authentication::kind).wide(),
    computed("timeout", timeout).wide(),
    computed("version", version).wide(),
];

const FIELDS: &[Column] = &[
    value("interface", "/interface"),
    computed("state", state),
    value("url", "/resolved_url"),
    computed("authentication", authentication::describe),
    computed("timeout", timeout),
    computed("message version", version),
    computed("recovery replay", recovery_replay),
    computed("headers", headers),
    computed("signing secrets", signing_secrets),
];

/// The endpoints of a merchant, one row each.
pub(crate) fn endpoints_table(merchant: &Value) -> String {
    let base_url = merchant.get("base_url").and_then(Value::as_str);
    let endpoints = merchant.get("endpoints").and_then(Value::as_object).into_iter().flatten();
    let rows: Vec<_> =
        endpoints.map(|(interface, endpoint)| row(interface, endpoint, base_url)).collect();
    table(&rows, COLUMNS)
}

/// An endpoint with its interface and URL.
fn row(interface: &str, endpoint: &Value, base_url: Option<&str>) -> Value {
    let mut row = endpoint.as_object().cloned().unwrap_or_default();
    row.insert("interface".to_owned(), interface.into());
    row.insert("resolved_url".to_owned(), url(interface, endpoint, base_url).into());
    row.into()
}

pub(super) fn describe(response: &Value) -> String {
    let endpoint = response.get("endpoint").unwrap_or(&Value::Null);
    let row = row(&text_at(response, "/interface"), endpoint, None);
    details(&row, FIELDS) + &signing_secret(response)
}

/// The new signing secret and the messages that it signs, or the one that still applies.
fn signing_secret(response: &Value) -> String {
    let interface = text_at(response, "/interface");
    if response.get("signing_secret").is_some_and(Value::is_string) {
        let secret = new_secret("signing secret", response, "/signing_secret");
        return format!(
            "{secret}It signs the messages to {interface} only: each endpoint has a secret of its own.\n{}",
            previous_secret(response)
        );
    }
    match items(response, "/endpoint/signing_secrets") {
        [] => format!("\nRequests to {interface} are not signed.\n"),
        _ => format!(
            "\nThe signing secret of {interface} stays as it was; backhaul endpoint rotate-secret makes \
             a new one.\n"
        ),
    }
}

/// The end of the secret before the newest one, after a rotation.
fn previous_secret(response: &Value) -> String {
    match time_at(response, "/endpoint/signing_secrets/1/expires_at").as_str() {
        "-" => String::new(),
        until => format!("The previous secret signs until {until}.\n"),
    }
}

fn headers(endpoint: &Value) -> String {
    let headers = endpoint.get("headers").and_then(Value::as_object).into_iter().flatten();
    join(headers.map(|(name, value)| format!("{name}: {}", value.as_str().unwrap_or_default())))
}

fn signing_secrets(endpoint: &Value) -> String {
    join(items(endpoint, "/signing_secrets").iter().map(|secret| {
        let created = format!("created {}", time_at(secret, "/created_at"));
        match time_at(secret, "/expires_at").as_str() {
            "-" => created,
            expires_at => format!("{created} and expires {expires_at}"),
        }
    }))
}

fn state(endpoint: &Value) -> String {
    let is_paused = endpoint.get("paused") == Some(&json!(true));
    if is_paused { "paused" } else { "active" }.to_owned()
}

/// The URL of an endpoint. Without a base URL only its path is known.
fn url(interface: &str, endpoint: &Value, base_url: Option<&str>) -> String {
    let member = |name| endpoint.get(name).and_then(Value::as_str);
    if let Some(url) = member("url") {
        return url.to_owned();
    }
    let standard_path = interface.parse().map_or("", Interface::default_path);
    let path = member("path").unwrap_or(standard_path);
    match base_url {
        Some(base_url) => format!("{}{path}", base_url.trim_end_matches('/')),
        None => format!("{path} below the base URL"),
    }
}

fn timeout(endpoint: &Value) -> String {
    match endpoint.get("timeout_ms").and_then(Value::as_u64) {
        Some(millis) => format!("{millis} ms"),
        None => "-".to_owned(),
    }
}

/// The version of the messages, which is the contract's unless the endpoint chose another.
fn version(endpoint: &Value) -> String {
    let interface = text_at(endpoint, "/interface").parse::<Interface>().ok();
    match endpoint.get("version").and_then(Value::as_u64) {
        Some(version) => version.to_string(),
        None => interface.map_or_else(|| "-".to_owned(), |it| it.default_version().to_string()),
    }
}

/// The days whose dead messages are sent again when the endpoint recovers.
fn recovery_replay(endpoint: &Value) -> String {
    match endpoint.get("recovery_replay_days").and_then(Value::as_u64) {
        Some(days) => format!("{days} days"),
        None => "-".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    #[test]
    fn an_endpoint_is_shown_with_its_new_secret() {
        let response = json!({
            "interface": "rma",
            "signing_secret": "whsec_c2VjcmV0",
            "endpoint": {
                "url": null, "path": "/v2/rmas", "headers": {"x-shop": "7"}, "timeout_ms": 5000,
                "paused": true, "recovery_replay_days": 3,
                "authentication": {
                    "kind": "oauth2", "token_url": "https://id.acme.example/token",
                    "client_id": "backhaul", "client_secret": "********", "scope": "hooks",
                    "credentials_in": "basic"
                },
                "signing_secrets": [
                    {"id": "0193296c-0000-7000-8000-000000000002", "secret": "********",
                     "created_at": "2026-11-16T03:48:13Z", "expires_at": null},
                    {"id": "0193296c-0000-7000-8000-000000000001", "secret": "********",
                     "created_at": "2026-11-15T03:48:13Z", "expires_at": "2026-11-17T03:48:13Z"}
                ]
            }
        });
        expect![[r#"
            interface        rma
            state            paused
            url              /v2/rmas below the base URL
            authentication   oauth2, as backhaul at https://id.acme.example/token
            timeout          5000 ms
            message version  3
            recovery replay  3 days
            headers          x-shop: 7
            signing secrets  created 2026-11-16 03:48:13Z, created 2026-11-15 03:48:13Z and
                             expires 2026-11-17 03:48:13Z

            signing secret: whsec_c2VjcmV0
            Store it now: it is not shown again.
            It signs the messages to rma only: each endpoint has a secret of its own.
            The previous secret signs until 2026-11-17 03:48:13Z.
        "#]]
        .assert_eq(&describe(&response));
        let unchanged = json!({
            "interface": "rma", "endpoint": { "signing_secrets": [{"secret": "********"}] },
        });
        let last = describe(&unchanged).lines().last().unwrap().to_owned();
        assert!(last.starts_with("The signing secret of rma stays as it was"), "{last}");
        let variants = json!({ "interface": "variants", "endpoint": { "signing_secrets": [] } });
        assert!(describe(&variants).ends_with("Requests to variants are not signed.\n"));
    }
}
