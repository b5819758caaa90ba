use std::sync::Arc;

use expect_test::{Expect, expect};
use serde_json::{Value, json};

use super::guard::Guard;
use super::{
    Authentication, Endpoint, Interface, Merchant, ReturnPolicy, Sealed, Settings, SettingsChange,
    is_reserved_header,
};
use crate::access::MerchantId;
use crate::json::{Document, Object, object};
use crate::message_kind::{MessageKind, MessageVersion};
use crate::warehouse::Warehouses;

#[track_caller]
fn check_rejected<T: std::fmt::Debug>(
    json: &str,
    read: impl FnMut(&Object<'_>) -> Option<T>,
    errors: &Expect,
) {
    let invalid = Document::parse(json.as_bytes()).unwrap().read(object(read)).unwrap_err();
    let lines: Vec<_> = invalid.errors.iter().map(ToString::to_string).collect();
    errors.assert_eq(&lines.join("\n"));
}

fn read_new_merchant(document: &Object<'_>) -> Option<(MerchantId, Settings)> {
    super::read_new_merchant(document, &Guard::default())
}

fn settings_change(document: &Object<'_>) -> Option<SettingsChange> {
    SettingsChange::read(document, &Guard::default())
}

fn authentication(document: &Object<'_>) -> Option<Authentication<String>> {
    Authentication::read(document, &Guard::default())
}

#[test]
fn a_merchant_needs_a_name_and_an_identifier() {
    let document =
        Document::parse(br#"{"identifier": "acme", "name": "Acme", "return_window_days": 60}"#)
            .unwrap();
    let (id, settings) = document.read(object(read_new_merchant)).unwrap();
    assert_eq!(
        (id.as_str(), settings.return_window_days, settings.currency.as_str()),
        ("acme", 60, "USD")
    );
    check_rejected(
        r#"{"identifier": "healthz", "name": "Health"}"#,
        read_new_merchant,
        &expect!["$.identifier: invalid (must not be healthz: pages of Backhaul have this path)"],
    );
    check_rejected(
        "{}",
        read_new_merchant,
        &expect![[r#"
        $.identifier: missing_field
        $.name: missing_field"#]],
    );
    check_rejected(
        r#"{"identifier": "Acme!", "name": "", "time_zone": "Mars/Base", "currency": "usd", "colour": 1,
            "return_window_days": -1, "support_contact": {"email": "x", "fax": "1"}, "base_url": "ftp://x"}"#,
        read_new_merchant,
        &expect![[r#"
            $.colour: invalid (unknown field: known are name, time_zone, currency, managed_receiving, return_window_days, final_sale_tags, express_max_weight, concept, returns, policy, appearance, mails, strict_amounts, strict_refund_dates, support_contact, base_url, identifier)
            $.identifier: invalid (must be 1 to 63 lower-case letters, digits or hyphens, beginning with a letter or digit)
            $.name: invalid (must have 1 to 200 characters)
            $.time_zone: invalid (must be an IANA time zone, like Europe/Berlin)
            $.currency: invalid (must be an ISO 4217 currency code, like USD)
            $.return_window_days: invalid (must be between 0 and 3650)
            $.support_contact.fax: invalid (unknown field: known are email, name, phone)
            $.support_contact.email: invalid (must have 3 to 254 characters)
            $.base_url: invalid (must be an http or https URL without credentials or fragment)"#]],
    );
}

#[test]
fn a_base_url_has_no_query_or_fragment() {
    for (url, detail) in [
        ("https://acme.example/hooks?tenant=1", "must not have a query: paths are put behind it"),
        ("https://acme.example/hooks?", "must not have a query: paths are put behind it"),
        (
            "https://acme.example/hooks#top",
            "must be an http or https URL without credentials or fragment",
        ),
    ] {
        let json = format!(r#"{{"base_url": "{url}"}}"#);
        let document = Document::parse(json.as_bytes()).unwrap();
        let invalid = document.read(object(settings_change)).unwrap_err();
        assert_eq!(invalid.errors[0].field, "$.base_url");
        assert_eq!(invalid.errors[0].detail.as_deref(), Some(detail), "{url}");
    }
    // An endpoint's own URL may have a query.
    let json = r#"{"url": "https://acme.example/hooks?tenant=1"}"#;
    assert!(Document::parse(json.as_bytes()).unwrap().read(object(endpoint)).is_ok());
}

#[test]
fn null_clears_a_setting_that_can_be_empty() {
    let mut settings = Settings::new("Acme");
    settings.base_url = Some("https://acme.example".to_owned());
    let read = |json: &str| {
        Document::parse(json.as_bytes()).unwrap().read(object(settings_change)).unwrap()
    };
    let warehouses = Warehouses::new();
    read("{}").apply(&mut settings, &warehouses).unwrap();
    assert!(settings.base_url.is_some());
    read(r#"{"base_url": null, "name": null}"#).apply(&mut settings, &warehouses).unwrap();
    assert_eq!((settings.base_url, settings.name.as_str()), (None, "Acme"));
}

#[test]
fn merchants_with_the_default_reasons_share_them() {
    let policy = ReturnPolicy::default();
    let read = |policy: &ReturnPolicy| -> ReturnPolicy {
        serde_json::from_value(serde_json::to_value(policy).unwrap()).unwrap()
    };
    assert!(Arc::ptr_eq(&read(&policy).reasons, &policy.reasons));
    let withdrawal = policy.with_withdrawal();
    assert_eq!(read(&withdrawal), withdrawal);
    assert!(!Arc::ptr_eq(&withdrawal.reasons, &policy.reasons));
}

#[test]
fn return_options_change_part_by_part() {
    let mut settings = Settings::new("Acme");
    let read = |json: &str| {
        Document::parse(json.as_bytes()).unwrap().read(object(settings_change)).unwrap()
    };
    read(
        r#"{"returns": {"gift_card": {"sku": "GIFT"},
            "methods": [{"method": "mail-back", "shipping_cost_cents": 500}]}}"#,
    )
    .apply(&mut settings, &Warehouses::new())
    .unwrap();
    assert_eq!(settings.returns.reasons, ReturnPolicy::default().reasons);
    assert_eq!(settings.returns.methods.len(), 1);
    assert_eq!(settings.returns.gift_card.as_ref().map(|card| card.sku.as_str()), Some("GIFT"));
    let no_card = read(r#"{"returns": {"gift_card": null}}"#);
    no_card.apply(&mut settings, &Warehouses::new()).unwrap();
    assert_eq!((settings.returns.gift_card, settings.returns.methods.len()), (None, 1));
    check_rejected(
        r#"{"returns": {"reasons": [{"code": "A", "label": "a"}, {"code": "A"}], "colour": 1,
            "methods": [{"method": "pigeon"}, {"method": "mail-back"}, {"method": "mail-back",
            "shipping_cost_cents": -1}], "gift_card": {"sku": ""}}}"#,
        settings_change,
        &expect![[r#"
            $.returns.colour: invalid (unknown field: known are reasons, methods, free_exchange_shipping, gift_card, send_within_days, exchange_deadline_days)
            $.returns.reasons[1].code: invalid (another reason has the same code)
            $.returns.reasons[1].label: missing_field
            $.returns.methods[0].method: invalid (must be one of mail-back, express-returns, customer-keep)
            $.returns.methods[2].shipping_cost_cents: invalid (must be between 0 and 100000000)
            $.returns.methods[2].method: invalid (is listed twice)
            $.returns.gift_card.sku: invalid (must have 1 to 255 characters)"#]],
    );
}

fn endpoint(document: &Object<'_>) -> Option<Endpoint<String>> {
    Endpoint::read(document, Interface::Message(MessageKind::Rma), &Guard::default())
}

#[test]
fn a_variants_endpoint_needs_a_placeholder_in_its_path() {
    let variants =
        |document: &Object<'_>| Endpoint::read(document, Interface::Variants, &Guard::default());
    for json in [
        r#"{}"#,
        r#"{"path": "/products/{variant_identifier}"}"#,
        r#"{"url": "https://acme.example/products/{variant_identifier}/variants?all=1"}"#,
        r#"{"url": "https://acme.example/products/%7Bvariant_identifier%7D"}"#,
    ] {
        let document = Document::parse(json.as_bytes()).unwrap();
        assert!(document.read(object(variants)).is_ok(), "{json}");
    }
    check_rejected(
        r#"{"path": "/products"}"#,
        variants,
        &expect!["$.path: invalid (must have {variant_identifier} in its path)"],
    );
    check_rejected(
        r#"{"url": "https://acme.example/products?of={variant_identifier}"}"#,
        variants,
        &expect!["$.url: invalid (must have {variant_identifier} in its path)"],
    );
    check_rejected(
        r#"{"recovery_replay_days": 3}"#,
        variants,
        &expect!["$.recovery_replay_days: invalid (is for messages: variants are requested)"],
    );
}

#[test]
fn every_invalid_field_of_an_endpoint_is_reported() {
    check_rejected(
        r#"{"url": "https://user:pw@acme.example/x", "path": "x y", "timeout_ms": 5, "version": "3", "recovery_replay_days": 31,
            "headers": {"Authorization": "x", "Host": "x", "X-Service-Id": "x", "ok": "fine", "bad name": "x", "x": "a\nb"},
            "authentication": {"kind": "oauth2", "token_url": "nowhere"}}"#,
        endpoint,
        &expect![[r#"
            $.url: invalid (must be an http or https URL without credentials or fragment)
            $.path: invalid (must be a path that begins with /)
            $.headers.Authorization: invalid (this header is set by the service)
            $.headers.Host: invalid (this header is set by the service)
            $.headers['X-Service-Id']: invalid (this header is set by the service)
            $.headers['bad name']: invalid (is not a header name)
            $.headers.x: invalid (must be printable ASCII)
            $.authentication.token_url: invalid (must be an http or https URL without credentials or fragment)
            $.authentication.client_id: missing_field
            $.authentication.client_secret: missing_field
            $.timeout_ms: invalid (must be between 100 and 120000)
            $.version: invalid_type (expected an integer, found a string)
            $.recovery_replay_days: invalid (must be between 1 and 30)"#]],
    );
    check_rejected(
        r#"{"authentication": {"kind": "magic"}}"#,
        endpoint,
        &expect![
            "$.authentication.kind: invalid (must be one of none, basic, bearer, api_key, oauth2, client_certificate, aws_sigv4)"
        ],
    );
    check_rejected(
        r#"{"url": "https://acme.example/x", "path": "/x"}"#,
        endpoint,
        &expect!["$.path: invalid (give the whole url or a path, not both)"],
    );
}

#[test]
fn an_endpoint_chooses_a_version_that_its_interface_supports() {
    for interface in Interface::all() {
        assert!(!interface.versions().is_empty(), "{interface}");
        let read = |version: Value| {
            let body = json!({ "path": "/{variant_identifier}", "version": version });
            let document = Document::from(body);
            document
                .read(object(|it: &Object<'_>| Endpoint::read(it, interface, &Guard::default())))
        };
        assert_eq!(read(Value::Null).unwrap().version, None);
        for version in interface.versions() {
            assert_eq!(read(json!(version)).unwrap().version, Some(*version), "{interface}");
        }
        assert!(read(json!(0)).is_err(), "{interface}");
    }
    check_rejected(
        r#"{"version": 2}"#,
        endpoint,
        &expect!["$.version: invalid (is not a version of rma: supported are 3, 4)"],
    );
    let mut merchant = Merchant::new("acme".parse().unwrap(), Settings::new("Acme"));
    let rma = Interface::Message(MessageKind::Rma);
    assert_eq!(merchant.message_version(rma), MessageVersion(3));
    let document = Document::parse(br#"{"path": "/rmas"}"#).unwrap();
    let mut chosen = document.read(object(endpoint)).unwrap();
    chosen.version = Some(MessageVersion(4));
    let sealed = chosen.map(|secret| Ok::<_, ()>(Sealed(secret.clone()))).unwrap();
    merchant.endpoints.insert(rma, Box::new(sealed));
    assert_eq!(merchant.message_version(rma), MessageVersion(4));
}

#[test]
fn the_placeholder_of_a_secret_is_not_a_secret() {
    check_rejected(
        r#"{"url": "https://acme.example/x?********", "headers": {"x-key": "********", "x-shop": "7"},
            "authentication": {"kind": "oauth2", "token_url": "https://id.acme.example/token?k=********&v=1",
                "client_id": "backhaul", "client_secret": "********"}}"#,
        endpoint,
        &expect![[r#"
            $.url: invalid (is the placeholder of a secret: send the secret itself)
            $.headers['x-key']: invalid (is the placeholder of a secret: send the secret itself)
            $.authentication.token_url: invalid (is the placeholder of a secret: send the secret itself)
            $.authentication.client_secret: invalid (is the placeholder of a secret: send the secret itself)"#]],
    );
    for (json, field) in [
        (r#"{"kind": "basic", "username": "u", "password": "********"}"#, "$.password"),
        (r#"{"kind": "bearer", "token": "********"}"#, "$.token"),
        (r#"{"kind": "api_key", "header": "x-key", "key": " ******** "}"#, "$.key"),
        (
            r#"{"kind": "client_certificate", "certificate": "-----BEGIN CERTIFICATE-----", "private_key": "********"}"#,
            "$.private_key",
        ),
        (
            r#"{"kind": "aws_sigv4", "access_key_id": "A", "secret_access_key": "********", "region": "r", "service": "s"}"#,
            "$.secret_access_key",
        ),
        (
            r#"{"kind": "aws_sigv4", "access_key_id": "A", "secret_access_key": "s", "session_token": "********", "region": "r", "service": "s"}"#,
            "$.session_token",
        ),
    ] {
        let document = Document::parse(json.as_bytes()).unwrap();
        let invalid = document.read(object(authentication)).unwrap_err();
        assert_eq!(invalid.errors[0].field, field);
    }
}

#[test]
fn every_kind_of_authentication_is_read() {
    for json in [
        r#"{"kind": "none"}"#,
        r#"{"kind": "basic", "username": "u", "password": "p"}"#,
        r#"{"kind": "bearer", "token": "t"}"#,
        r#"{"kind": "api_key", "header": "x-key", "key": "k"}"#,
        r#"{"kind": "api_key", "header": "authorization", "key": "Token k"}"#,
        r#"{"kind": "oauth2", "token_url": "https://acme.example/token", "client_id": "c", "client_secret": "s",
            "scope": null, "credentials_in": "body"}"#,
    ] {
        let document = Document::parse(json.as_bytes()).unwrap();
        let read = document.read(object(authentication)).unwrap();
        let again: Authentication<String> = serde_json::from_str(json).unwrap();
        assert_eq!(read, again);
    }
}

#[test]
fn a_field_of_another_authentication_is_rejected() {
    for (json, known) in [
        (r#"{"kind": "none", "scopes": "returns"}"#, "kind"),
        (
            r#"{"kind": "basic", "username": "u", "password": "p", "scopes": "returns"}"#,
            "kind, username, password",
        ),
        (r#"{"kind": "bearer", "token": "t", "scopes": "returns"}"#, "kind, token"),
        (
            r#"{"kind": "api_key", "header": "x-key", "key": "k", "scopes": "returns"}"#,
            "kind, header, key",
        ),
        (
            r#"{"kind": "oauth2", "token_url": "https://acme.example/token", "client_id": "c",
                "client_secret": "s", "scopes": "returns"}"#,
            "kind, token_url, client_id, client_secret, scope, credentials_in",
        ),
    ] {
        let document = Document::parse(json.as_bytes()).unwrap();
        let invalid = document.read(object(authentication)).unwrap_err();
        let errors: Vec<_> = invalid.errors.iter().map(ToString::to_string).collect();
        assert_eq!(errors, [format!("$.scopes: invalid (unknown field: known are {known})")]);
    }
}

#[test]
fn a_url_has_a_plain_host_and_no_dot_segments() {
    const SYNTAX: &str = "must be an http or https URL without credentials or fragment";
    const DOTS: &str = "must not have `.` or `..` as a part of its path";
    for (url, detail) in [
        ("https:///x", SYNTAX),
        ("https:x", SYNTAX),
        ("https:/@acme.example/a://b", SYNTAX),
        ("https:acme.example/x?u=http://y", SYNTAX),
        (r"https://acme.example\\x", SYNTAX),
        (r"https:\\\\acme.example/x", SYNTAX),
        ("https://@acme.example/x", SYNTAX),
        ("https://:@acme.example/x", SYNTAX),
        ("https://acme.example /x", SYNTAX),
        ("https://acme.example/a/../x", DOTS),
        ("https://acme.example/.", DOTS),
        ("https://acme.example/%2e%2E/x", DOTS),
        ("https://acme.example/..%2fx?y=1", DOTS),
        ("http://acme.example/x", "scheme `http` is not allowed for an endpoint"),
        ("https://10.0.0.1/x", "address 10.0.0.1 is refused: private"),
        ("https://[::1]/x", "address ::1 is refused: loopback"),
        ("https://localhost/x", "address 127.0.0.1 is refused: loopback"),
        (
            "https://metadata.google.internal/x",
            "address 169.254.169.254 is refused: cloud metadata",
        ),
    ] {
        let token = format!(
            r#"{{"kind": "oauth2", "token_url": "{url}", "client_id": "c", "client_secret": "s"}}"#
        );
        let json = format!(r#"{{"url": "{url}", "authentication": {token}}}"#);
        let document = Document::parse(json.as_bytes()).unwrap();
        let invalid = document.read(object(endpoint)).unwrap_err();
        let errors: Vec<_> = invalid.errors.iter().map(ToString::to_string).collect();
        let expected =
            ["url", "authentication.token_url"].map(|key| format!("$.{key}: invalid ({detail})"));
        assert_eq!(errors, expected, "{url}");
    }
    for json in [
        r#"{"url": "https://acme.example/a..b/.well-known/x?next=../y"}"#,
        r#"{"path": "/.well-known/rmas"}"#,
    ] {
        assert!(Document::parse(json.as_bytes()).unwrap().read(object(endpoint)).is_ok(), "{json}");
    }
}

#[test]
fn a_header_can_be_set_once_and_only_if_the_service_does_not_set_it() {
    for name in ["Accept", "Expect", "Keep-Alive", "Proxy-Connection", "TraceState", "Webhook-Id"] {
        assert!(is_reserved_header(name), "{name}");
    }
    assert!(!is_reserved_header("x-shop"));
    check_rejected(
        r#"{"headers": {"Expect": "x", "keep-alive": "x"}}"#,
        endpoint,
        &expect![[r#"
            $.headers.Expect: invalid (this header is set by the service)
            $.headers['keep-alive']: invalid (this header is set by the service)"#]],
    );
    check_rejected(
        r#"{"headers": {"x-a": "1", "X-A": "2"}}"#,
        endpoint,
        &expect!["$.headers['X-A']: invalid (another header has the same name)"],
    );
}
