//! The desk that operators and merchants stand at: a service that only delivers, over HTTP.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use aws_lc_rs::signature::{Ed25519KeyPair, KeyPair};
use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use delivery::Deliveries;
use domain::message_kind::MessageKind;
use jsonwebtoken::{Algorithm, EncodingKey, Header};
use merchants::Merchants;
use messaging::Broker;
use platform::identity::{AUDIENCE, Claims, TOKEN_TYPE, Verifier};
use platform::{Clock, Process, Service};
use reqwest::Method;
use serde_json::{Value, json};
use utoipa_actix_web::service_config::ServiceConfig;

use crate::stage::{Own, SERVICE, SOON, Stage, migrations, sealer, topology};

/// A service that does nothing but deliver.
struct Deliverer(Deliveries);

impl Service for Deliverer {
    const NAME: &'static str = SERVICE;
    const ABOUT: &'static str = "Delivers, and nothing else";
    const DEFAULTS: &'static [&'static str] = &[messaging::DEFAULTS, delivery::DEFAULTS];
    type Settings = Own;

    fn migrations() -> Vec<diesel_migrations::EmbeddedMigrations> {
        migrations()
    }

    fn routes(config: &mut ServiceConfig<'_>) {
        delivery::routes(config);
    }

    fn share(&self, app: &mut actix_web::web::ServiceConfig) {
        app.app_data(actix_web::web::Data::new(self.0.clone()));
    }

    async fn start(process: &Process, own: Own) -> anyhow::Result<(Self, Arc<Verifier>)> {
        let topology = topology(&own.broker.namespace);
        let broker = Broker::start(SERVICE, process, own.broker, topology);
        broker.start_relay(SERVICE, process);
        let verifier = Arc::new(Verifier::new("test", process.clock.clone()));
        verifier.set_keys(&serde_json::from_value(json!({"keys": [keys().0]}))?);
        let merchants = Merchants::start(SERVICE, process, &broker, &verifier);
        let kinds = [MessageKind::Rma];
        let deliveries = Deliveries::start(
            SERVICE,
            process,
            &broker,
            &merchants,
            &sealer(),
            &kinds,
            own.delivery,
        )?;
        Ok((Self(deliveries), verifier))
    }
}

fn keys() -> &'static (Value, EncodingKey) {
    static KEYS: OnceLock<(Value, EncodingKey)> = OnceLock::new();
    KEYS.get_or_init(|| {
        let pair = Ed25519KeyPair::generate().unwrap();
        let x = BASE64_URL_SAFE_NO_PAD.encode(pair.public_key().as_ref());
        let private = EncodingKey::from_ed_der(pair.to_pkcs8v1().unwrap().as_ref());
        (json!({"kty": "OKP", "crv": "Ed25519", "kid": "t", "alg": "EdDSA", "x": x}), private)
    })
}

pub(crate) fn token(scope: &str, merchant: Option<&str>) -> String {
    let now = Clock::system().now().timestamp();
    let claims = Claims {
        iss: "test".into(),
        sub: "somebody".into(),
        aud: AUDIENCE.into(),
        client_id: "somebody".into(),
        jti: uuid::Uuid::new_v4().to_string(),
        iat: now,
        exp: now + 600,
        scope: scope.parse().unwrap(),
        merchant: merchant.map(|id| id.parse().unwrap()),
    };
    let mut header = Header::new(Algorithm::EdDSA);
    header.typ = Some(TOKEN_TYPE.into());
    header.kid = Some("t".into());
    jsonwebtoken::encode(&header, &claims, &keys().1).unwrap()
}

/// The engine that appends, and beside it the service that operators ask.
pub(crate) struct Desk {
    pub(crate) stage: Stage,
    service: platform::Running,
}

impl Desk {
    pub(crate) async fn new(more: &[(&'static str, &'static str)]) -> Self {
        let stage = Stage::new(more).await;
        let settings = [
            ("DELIVERY__HTTPS_ONLY", "false"),
            ("DELIVERY__ALLOWED_NETWORKS", "127.0.0.1/32"),
            ("DELIVERY__RETRY_BASE", "50ms"),
            ("DELIVERY__RETRY_FACTOR", "1"),
            ("DELIVERY__POLL", "20ms"),
        ];
        let service = testkit::run::<Deliverer>(
            &settings,
            Clock::system(),
            &stage.database,
            &stage.namespace,
        )
        .await;
        Self { stage, service }
    }

    pub(crate) async fn ask_as(
        &self,
        token: &str,
        method: Method,
        path: &str,
        body: &Value,
    ) -> (u16, Value) {
        let client = platform::http_client(Duration::from_secs(10)).unwrap();
        let url = format!("{}{path}", self.service.url);
        let request = client.request(method, url).bearer_auth(token).json(body);
        let answer = request.send().await.unwrap();
        let status = answer.status().as_u16();
        (status, serde_json::from_slice(&answer.bytes().await.unwrap()).unwrap_or_default())
    }

    pub(crate) async fn operator(&self, method: Method, path: &str, body: &Value) -> (u16, Value) {
        self.ask_as(&token("operator", None), method, path, body).await
    }

    pub(crate) async fn get(&self, path: &str) -> Value {
        let (status, answer) = self.operator(Method::GET, path, &json!({})).await;
        assert_eq!(status, 200, "{path}: {answer}");
        answer
    }

    pub(crate) async fn leave(self) {
        assert!(self.service.stop().await);
        self.stage.leave().await;
    }

    /// Fails until it is dead, then is well again.
    pub(crate) async fn kill(&self, message: delivery::NewMessage) -> uuid::Uuid {
        self.stage.behave(json!([{"do": "answer", "status": 500, "times": 6}])).await;
        let ids = self.stage.append(&[message]).await;
        self.stage.settled(SOON).await;
        ids[0]
    }
}
