use serde_json::json;

use super::*;

fn form(pairs: &[(&str, &str)]) -> EndpointForm {
    let pairs = pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    EndpointForm::read(&pairs.collect())
}

#[test]
fn the_body_has_the_chosen_authentication_only() {
    let mut form = form(&[
        ("url", "https://acme.example/rmas"),
        ("timeout_ms", "5000"),
        ("message_version", "3"),
        ("recovery_replay_days", "7"),
        ("authentication", "api_key"),
        ("key_header", "x-key"),
        ("api_key", "k"),
        ("bearer_token", "ignored"),
        ("headers", "X-A: 1\r\n\r\nx-b: a: b"),
    ]);
    let expected = json!({
        "url": "https://acme.example/rmas", "path": null, "timeout_ms": 5000, "version": 3,
        "recovery_replay_days": 7,
        "headers": { "X-A": "1", "x-b": "a: b" },
        "authentication": { "kind": "api_key", "header": "x-key", "key": "k" },
    });
    assert_eq!(form.body(), expected);
}

#[test]
fn a_certificate_and_aws_credentials_are_sent() {
    let mut form = form(&[
        ("authentication", "client_certificate"),
        ("certificate", "C"),
        ("private_key", "K"),
        ("secret_access_key", "ignored"),
    ]);
    let expected = json!({ "kind": "client_certificate", "certificate": "C", "private_key": "K" });
    assert_eq!(form.body()["authentication"], expected);
    let mut form = self::form(&[
        ("authentication", "aws_sigv4"),
        ("access_key_id", "A"),
        ("secret_access_key", "S"),
        ("region", "eu-central-1"),
        ("service", "execute-api"),
    ]);
    let expected = json!({
        "kind": "aws_sigv4", "access_key_id": "A", "secret_access_key": "S",
        "session_token": null, "region": "eu-central-1", "service": "execute-api",
    });
    assert_eq!(form.body()["authentication"], expected);
    form.inputs.set("secret_access_key", String::new());
    assert_eq!(form.body()["authentication"]["secret_access_key"], Value::Null);
    assert_eq!(form.inputs.error("secret_access_key"), Some(TYPE_AGAIN));
}

#[test]
fn a_change_needs_every_secret_again() {
    let endpoint = json!({
        "url": "https://acme.example/rmas?********", "path": null, "timeout_ms": null,
        "headers": { "x-key": "********" },
        "authentication": { "kind": "basic", "username": "u", "password": "********" },
    });
    let mut form = EndpointForm::of(&endpoint);
    assert_eq!(form.inputs.value("url"), "https://acme.example/rmas");
    assert_eq!(form.inputs.value("headers"), "x-key: ");
    let body = form.body();
    assert_eq!((&body["headers"], &body["authentication"]["password"]), (&json!(""), &Value::Null));
    assert_eq!(form.inputs.error("headers"), Some("Type the value of x-key, or remove the line."));
    assert_eq!(form.inputs.error("basic_password"), Some(TYPE_AGAIN));
    assert!(!format!("{form:?}").contains("********"));
}

#[test]
fn a_stored_query_is_kept_unless_it_is_removed() {
    assert!(EndpointForm::of(&Value::Null).keeps_query);
    assert!(form(&[("url", "https://acme.example/rmas")]).keeps_query);
    assert!(!form(&[("url", "https://acme.example/rmas"), ("remove_query", "true")]).keeps_query);
}

#[test]
fn header_values_are_not_sent_back() {
    let mut form = form(&[("headers", "X-A: secret\nno colon")]);
    form.hide_headers();
    assert_eq!(form.inputs.value("headers"), "X-A: \nno colon");
}

#[test]
fn faults_that_the_form_finds_are_reported_with_those_of_auth() {
    let mut form = form(&[
        ("url", "ftp://acme.example"),
        ("timeout_ms", "soon"),
        ("headers", "no colon\nX-A: 1\nX-A: 2"),
    ]);
    assert_eq!(form.body()["timeout_ms"], json!("soon"));
    let text = r#"{"message": "3 fields are not valid", "errors": [
        {"field": "$.url", "code": "invalid", "detail": "must be https"},
        {"field": "$.timeout_ms", "code": "invalid_type"},
        {"field": "$.headers", "code": "invalid_type"}]}"#;
    form.inputs.reject_all(&serde_json::from_str(text).unwrap());
    assert_eq!(form.inputs.error("url"), Some("Must be https."));
    let timeout = form.inputs.error("timeout_ms");
    assert_eq!(timeout, Some("Must be a whole number of milliseconds."));
    let headers = "Each line needs a name, a colon and a value. X-A is there twice.";
    assert_eq!(form.inputs.error("headers"), Some(headers));
}

#[test]
fn errors_of_auth_are_beside_their_fields() {
    let mut form = form(&[("authentication", "bearer"), ("bearer_token", "t")]);
    let text = r#"{"message": "the request is invalid", "errors": [
        {"field": "$.authentication.token", "code": "invalid", "detail": "must be printable ASCII"},
        {"field": "$.headers.host", "code": "invalid", "detail": "this header is set by the service"}]}"#;
    form.inputs.reject_all(&serde_json::from_str(text).unwrap());
    assert_eq!(form.inputs.error("bearer_token"), Some("Must be printable ASCII."));
    assert_eq!(form.inputs.error("headers"), Some("This header is set by the service."));
    assert_eq!(form.inputs.error("client_secret"), None);
}
