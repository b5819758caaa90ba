//! A service that only delivers. `examples/deliverer.rs` runs it as a process that tests can kill.

use std::sync::{Arc, OnceLock};

use aws_lc_rs::signature::{Ed25519KeyPair, KeyPair};
use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use delivery::Deliveries;
use diesel_migrations::EmbeddedMigrations;
use domain::message_kind::MessageKind;
use jsonwebtoken::EncodingKey;
use merchants::Merchants;
use messaging::{Broker, Topology};
use platform::config::List;
use platform::identity::Verifier;
use platform::sealing::{self, Sealer};
use platform::{Process, Service};
use serde::Deserialize;
use serde_json::{Value, json};
use utoipa_actix_web::service_config::ServiceConfig;

pub(crate) struct Deliverer(pub(crate) Deliveries);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Settings {
    pub(crate) broker: messaging::Settings,
    pub(crate) delivery: delivery::Settings,
}

impl Service for Deliverer {
    const NAME: &'static str = "deliverer";
    const ABOUT: &'static str = "A service that only delivers";
    const DEFAULTS: &'static [&'static str] = &[messaging::DEFAULTS, delivery::DEFAULTS];
    type Settings = Settings;

    fn migrations() -> Vec<EmbeddedMigrations> {
        vec![
            messaging::MIGRATIONS,
            merchants::MIGRATIONS,
            delivery::MIGRATIONS,
            platform::idempotency::MIGRATIONS,
        ]
    }

    fn routes(config: &mut ServiceConfig<'_>) {
        delivery::routes(config);
    }

    fn share(&self, app: &mut actix_web::web::ServiceConfig) {
        app.app_data(actix_web::web::Data::new(self.0.clone()));
    }

    fn start(process: &Process, settings: Settings) -> anyhow::Result<(Self, Arc<Verifier>)> {
        let topology = topology(&settings.broker.namespace);
        let broker = Broker::start(Self::NAME, process, settings.broker, topology);
        let outbox = broker.start_relay(Self::NAME, process);
        let verifier = Arc::new(Verifier::new("test", process.clock.clone()));
        verifier.set_keys(&serde_json::from_value(json!({"keys": [keys().0]}))?);
        let merchants = Merchants::start(Self::NAME, process, &broker, &verifier);
        let (kinds, sealer) = ([MessageKind::Rma, MessageKind::ExchangeOrder], sealer());
        let settings = settings.delivery;
        let deliveries =
            Deliveries::start(&outbox, process, &broker, &merchants, &sealer, &kinds, settings)?;
        Ok((Self(deliveries), verifier))
    }
}

pub(crate) fn topology(namespace: &str) -> Topology {
    Topology::empty(namespace)
        .with_subscription(Deliverer::NAME, "merchant.changed.v1")
        .with_subscription(Deliverer::NAME, "token.revoked.v1")
        .with_subscription("rma-engine", "delivery.dead.v1")
        .with_subscription("rma-engine", "endpoint.health_changed.v1")
        .with_queue(MessageKind::Rma.queue())
        .with_queue(MessageKind::ExchangeOrder.queue())
}

pub(crate) fn sealer() -> Arc<Sealer> {
    let keys = List(vec![testkit::sealing_keys().into()]);
    Arc::new(Sealer::new(&sealing::Settings { keys }).unwrap())
}

/// Returns the public key that tokens are verified with, and the private key that signs them.
pub(crate) fn keys() -> &'static (Value, EncodingKey) {
    static KEYS: OnceLock<(Value, EncodingKey)> = OnceLock::new();
    KEYS.get_or_init(|| {
        let pair = Ed25519KeyPair::generate().unwrap();
        let x = BASE64_URL_SAFE_NO_PAD.encode(pair.public_key().as_ref());
        let private = EncodingKey::from_ed_der(pair.to_pkcs8v1().unwrap().as_ref());
        (json!({"kty": "OKP", "crv": "Ed25519", "kid": "t", "alg": "EdDSA", "x": x}), private)
    })
}
