//! Every event conforms to its published JSON Schema.

use chrono::DateTime;
use expect_test::expect_file;
use serde_json::json;
use utoipa::ToSchema;
use uuid::Uuid;

use super::*;
use crate::access::{MerchantId, Revocation, Revoked};
use crate::delivery::{DeliveryDead, EndpointHealthChanged, EndpointPaused};
use crate::merchant::{
    Authentication, CredentialsIn, Endpoint, Interface, Merchant, MerchantChanged, Sealed,
    Settings, SigningSecret, SupportContact,
};
use crate::message_kind::{MessageKind, MessageVersion};
use crate::schema::json_schema;

/// Compares the schema with the published file and validates the event.
#[track_caller]
fn check<E: Event + ToSchema>(event: &E) {
    let schema = json_schema::<E>(E::TYPE);
    let name = E::TYPE.trim_end_matches(".v1").replace('.', "-");
    let file = format!("../../../../proto-schemas/events/{name}.schema.json");
    expect_file![file].assert_eq(&format!("{schema:#}\n"));
    let validator = jsonschema::options().should_validate_formats(true).build(&schema).unwrap();
    let event = json!(event);
    let errors: Vec<_> = validator.iter_errors(&event).map(|error| error.to_string()).collect();
    assert!(errors.is_empty(), "{event:#}\n{errors:?}");
    assert!(!validator.is_valid(&json!({})), "{name} may be empty");
}

fn acme() -> MerchantId {
    "acme".parse().unwrap()
}

#[test]
fn delivery_dead_conforms_to_its_schema() {
    let contact = SupportContact { email: "help@acme.example".into(), name: None, phone: None };
    for (status, support_contact) in [(None, None), (Some(503), Some(contact))] {
        check(&DeliveryDead {
            delivery: Uuid::nil(),
            merchant: acme(),
            kind: MessageKind::Rma,
            event: "rma.created".into(),
            queue: "notify.rma.dead".into(),
            attempts: 6,
            status,
            outcome: "rejected".into(),
            detail: "503".into(),
            first_attempt_at: DateTime::UNIX_EPOCH,
            last_attempt_at: DateTime::UNIX_EPOCH,
            support_contact,
        });
    }
}

#[test]
fn endpoint_health_changed_conforms_to_its_schema() {
    for (recovered_at, status) in [(None, None), (Some(DateTime::UNIX_EPOCH), Some(503))] {
        check(&EndpointHealthChanged {
            merchant: acme(),
            kind: MessageKind::Rma,
            failing_since: DateTime::UNIX_EPOCH,
            recovered_at,
            status,
        });
    }
}

#[test]
fn endpoint_paused_conforms_to_its_schema() {
    for interface in Interface::all() {
        check(&EndpointPaused { merchant: acme(), interface, paused_at: DateTime::UNIX_EPOCH });
    }
}

#[test]
fn token_revoked_conforms_to_its_schema() {
    let revoked = [Revoked::Token("t".into()), Revoked::Client("c".into())];
    for revoked in revoked.into_iter().chain([Revoked::Session("s".into())]) {
        check(&Revocation { revoked, expires_at: DateTime::UNIX_EPOCH });
    }
}

#[test]
fn merchant_changed_conforms_to_its_schema() {
    let sealed = || Sealed("k1.AAAA".into());
    let methods = [
        Authentication::None,
        Authentication::Basic { username: "u".into(), password: sealed() },
        Authentication::Bearer { token: sealed() },
        Authentication::ApiKey { header: "x-key".into(), key: sealed() },
        Authentication::Oauth2 {
            token_url: "https://acme.example/token?k1.AAAA".to_owned().into(),
            client_id: "us".into(),
            client_secret: sealed(),
            scope: None,
            credentials_in: CredentialsIn::Body,
        },
        Authentication::ClientCertificate { certificate: "PEM".into(), private_key: sealed() },
        Authentication::AwsSigv4 {
            access_key_id: "AKIDEXAMPLE".into(),
            secret_access_key: sealed(),
            session_token: Some(sealed()),
            region: "us-east-1".into(),
            service: "execute-api".into(),
        },
    ];
    let mut merchant = Merchant::new(acme(), Settings::new("Acme"));
    for (interface, authentication) in Interface::all().zip(methods) {
        let secret = SigningSecret {
            id: Uuid::nil(),
            secret: sealed(),
            created_at: DateTime::UNIX_EPOCH,
            expires_at: None,
        };
        let endpoint = Endpoint {
            url: Some("https://acme.example/hook?k1.AAAA".to_owned().into()),
            path: None,
            headers: [("x-team".to_owned(), sealed())].into(),
            authentication,
            certificate_expires_at: Some(DateTime::UNIX_EPOCH),
            timeout_ms: Some(5000),
            version: Some(MessageVersion(3)),
            recovery_replay_days: Some(3),
            paused: false,
            signing_secrets: vec![secret],
        };
        merchant.endpoints.insert(interface, Box::new(endpoint));
    }
    check(&MerchantChanged { merchant });
}

#[test]
fn only_events_with_a_queue_are_types() {
    let types = subscribed_types();
    assert!(types.contains("order.stored.v1") && types.contains("shopper.erased.v1"), "{types:?}");
    assert!(!types.contains("order.stored"), "{types:?}");
}
