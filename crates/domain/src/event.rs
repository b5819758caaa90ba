//! What services tell each other.

use serde::{Serialize, de::DeserializeOwned};

/// Something that happened, as the body of an event. Its type ends in its version: a change that
/// an old reader would misread is a new type.
pub trait Event: Serialize + DeserializeOwned + Send + Sync + 'static {
    /// For example `order.stored.v1`; also the routing key.
    const TYPE: &'static str;

    /// What it happened to.
    fn subject(&self) -> String;
}

#[cfg(test)]
mod tests {
    use chrono::DateTime;
    use expect_test::expect_file;
    use serde_json::json;
    use utoipa::ToSchema;
    use uuid::Uuid;

    use super::*;
    use crate::access::{MerchantId, Revocation, Revoked};
    use crate::delivery::DeliveryDead;
    use crate::merchant::{
        Authentication, CredentialsIn, Endpoint, Interface, Merchant, MerchantChanged, Sealed,
        Settings, SigningSecret, SupportContact,
    };
    use crate::message_kind::MessageKind;
    use crate::schema::json_schema;

    /// The schema is checked in, and the event keeps to it.
    #[track_caller]
    fn check<E: Event + ToSchema>(event: &E) {
        let schema = json_schema::<E>(E::TYPE);
        let name = E::TYPE.trim_end_matches(".v1").replace('.', "-");
        let file = format!("../../../proto-schemas/events/{name}.schema.json");
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
    fn a_dead_delivery_keeps_to_its_schema() {
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
    fn a_revocation_keeps_to_its_schema() {
        for revoked in [Revoked::Token("t".into()), Revoked::Client("c".into())] {
            check(&Revocation { revoked, expires_at: DateTime::UNIX_EPOCH });
        }
    }

    #[test]
    fn a_changed_merchant_keeps_to_its_schema() {
        let sealed = || Sealed("k1.AAAA".into());
        let ways = [
            Authentication::None,
            Authentication::Basic { username: "u".into(), password: sealed() },
            Authentication::Bearer { token: sealed() },
            Authentication::ApiKey { header: "x-key".into(), key: sealed() },
            Authentication::Oauth2 {
                token_url: "https://acme.example/token".into(),
                client_id: "us".into(),
                client_secret: sealed(),
                scope: None,
                credentials_in: CredentialsIn::Body,
            },
        ];
        let mut merchant = Merchant::new(acme(), Settings::new("Acme"));
        for (interface, authentication) in Interface::all().zip(ways) {
            let secret = SigningSecret {
                id: Uuid::nil(),
                secret: sealed(),
                created_at: DateTime::UNIX_EPOCH,
                expires_at: None,
            };
            let endpoint = Endpoint {
                url: Some("https://acme.example/hook".into()),
                path: None,
                headers: [("x-team".to_owned(), "returns".to_owned())].into(),
                authentication,
                timeout_ms: Some(5000),
                paused: false,
                signing_secrets: vec![secret],
            };
            merchant.endpoints.insert(interface, endpoint);
        }
        check(&MerchantChanged { merchant });
    }
}
