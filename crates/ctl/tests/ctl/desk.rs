//! A service that delivers, a merchant that receives, and the token service they believe.

use std::sync::Arc;
use std::time::Duration;

use actix_web::web;
use delivery::{Deliveries, NewMessage};
use diesel_migrations::EmbeddedMigrations;
use domain::kind::Kind;
use merchants::Merchants;
use messaging::{Broker, Topology};
use platform::database::Pool;
use platform::identity::{self, Verifier};
use platform::sealing::{self, Sealer};
use platform::{Clock, Process, Running, Service};
use reqwest::Method;
use serde::Deserialize;
use serde_json::{Value, json};
use testkit::{Database, eventually};
use utoipa_actix_web::service_config::ServiceConfig;

use crate::Stack;

pub(crate) const SOON: Duration = Duration::from_secs(30);

/// Delivers, and nothing else; it goes by the name of a service whose queues exist.
struct Deliverer {
    pool: Pool,
    deliveries: Deliveries,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Settings {
    broker: messaging::Settings,
    delivery: delivery::Settings,
    identity: identity::Settings,
    sealing: sealing::Settings,
}

impl Service for Deliverer {
    const NAME: &'static str = "rma-engine";
    const ABOUT: &'static str = "Delivers, and nothing else";
    const DEFAULTS: &'static [&'static str] = &[messaging::DEFAULTS, delivery::DEFAULTS];
    type Settings = Settings;

    fn migrations() -> Vec<EmbeddedMigrations> {
        vec![messaging::MIGRATIONS, merchants::MIGRATIONS, delivery::MIGRATIONS]
    }

    fn routes(config: &mut ServiceConfig<'_>) {
        delivery::routes(config);
    }

    fn share(&self, app: &mut web::ServiceConfig) {
        app.app_data(web::Data::new(self.deliveries.clone()));
        app.app_data(web::Data::new((self.pool.clone(), self.deliveries.clone())));
        app.route("/say", web::post().to(say));
    }

    async fn start(process: &Process, own: Settings) -> anyhow::Result<(Self, Arc<Verifier>)> {
        let Settings { broker, delivery, identity, sealing } = own;
        let verifier = Arc::new(Verifier::new(&identity.issuer, process.clock.clone()));
        verifier.follow(&identity, &process.tasks)?;
        let topology = Topology::backhaul(&broker.namespace);
        let broker = Broker::start(Self::NAME, process, broker, topology);
        let outbox = broker.relay(Self::NAME, process);
        let merchants = Merchants::start(Self::NAME, process, &broker, &verifier);
        let sealer = Arc::new(Sealer::new(&sealing)?);
        let kinds = [Kind::Rma];
        let deliveries =
            Deliveries::start(&outbox, process, &broker, &merchants, &sealer, &kinds, delivery)?;
        Ok((Self { pool: process.pool.clone(), deliveries }, verifier))
    }
}

/// Says something to acme, as a service would in one of its transactions.
async fn say(
    engine: web::Data<(Pool, Deliveries)>,
    body: String,
) -> actix_web::Result<web::Json<String>> {
    let (pool, deliveries) = engine.get_ref();
    let message = NewMessage {
        merchant: "acme".parse().unwrap(),
        kind: Kind::Rma,
        ordering_key: Some("rma:1".to_owned()),
        event: "rma.created".to_owned(),
        body: body.into(),
    };
    let mut conn = pool.get().await.unwrap();
    let ids = deliveries.append(&mut conn, Clock::system().now(), &[message]).await.unwrap();
    Ok(web::Json(ids.first().unwrap().to_string()))
}

pub(crate) struct Desk {
    pub(crate) stack: Stack,
    /// What acme's messages are signed with.
    pub(crate) secret: String,
    sandbox: sandbox::Running,
    service: Running,
    _database: Database,
}

impl Desk {
    /// With the merchant acme, who receives RMAs at a sandbox.
    pub(crate) async fn open() -> Self {
        let stack = Stack::start().await;
        let database = Database::create(Deliverer::migrations()).await;
        let sandbox = sandbox::start(&sandbox::settings::Settings::for_tests().unwrap()).unwrap();
        let keys = format!("{}/.well-known/jwks.json", stack.auth.url);
        let settings = [
            ("SEALING__KEYS", testkit::sealing_keys()),
            ("IDENTITY__ISSUER", "https://auth.test"),
            ("IDENTITY__JWKS_URL", &keys),
            ("IDENTITY__REFRESH", "5min"),
            ("DELIVERY__HTTPS_ONLY", "false"),
            ("DELIVERY__ALLOWED_NETWORKS", "127.0.0.1/32"),
            ("DELIVERY__RETRY_BASE", "50ms"),
            ("DELIVERY__RETRY_FACTOR", "1"),
            ("DELIVERY__RETRIES", "1"),
            ("DELIVERY__POLL_INTERVAL", "20ms"),
        ];
        let (clock, namespace) = (Clock::system(), &stack.auth.namespace);
        let service = testkit::run::<Deliverer>(&settings, clock, &database, namespace).await;
        stack.remember("RMA_URL", &service.url);
        stack.text("merchant add acme --name Acme").await;
        let set = format!("endpoint set acme rma --url {} --json", sandbox.url("/rmas"));
        let secret = stack.json(&set).await["signing_secret"].as_str().unwrap().to_owned();
        let desk = Self { stack, secret, sandbox, service, _database: database };
        eventually("the service knows acme", SOON, async || {
            let checked = desk.stack.backhaul("endpoint check acme").await;
            checked.status.success().then_some(())
        })
        .await;
        desk
    }

    /// From now on commands first ask a service that is away.
    pub(crate) fn move_behind_another(&self) {
        self.stack.remember("RMA_URL", "http://127.0.0.1:1");
        self.stack.remember("EXCHANGE_URL", &self.service.url);
    }

    /// Says something to acme and returns its id.
    pub(crate) async fn say(&self, body: &Value) -> String {
        let client = platform::http_client(Duration::from_secs(10)).unwrap();
        let said = client.post(format!("{}/say", self.service.url)).body(body.to_string());
        said.send().await.unwrap().error_for_status().unwrap().json().await.unwrap()
    }

    /// Waits until a message has come to this.
    pub(crate) async fn is(&self, id: &str, state: &str) {
        eventually(&format!("{id} is {state}"), SOON, async || {
            let shown = self.stack.json(&format!("deliveries show {id} --json")).await;
            (shown["state"] == state).then_some(())
        })
        .await;
    }

    /// From now on acme answers like this.
    pub(crate) async fn answer(&self, status: u16) {
        let steps = json!([{"do": "answer", "status": status, "times": "always"}]);
        self.ask(Method::PUT, "/behaviour", &json!({"path": "/rmas", "steps": steps})).await;
    }

    /// The newest request that arrived for a message.
    pub(crate) async fn arrival(&self, id: &str) -> Value {
        let journal = format!("/journal?webhook_id={id}");
        let page = self.ask(Method::GET, &journal, &Value::Null).await;
        page["entries"].as_array().unwrap().last().unwrap().clone()
    }

    async fn ask(&self, method: Method, path: &str, body: &Value) -> Value {
        let client = platform::http_client(Duration::from_secs(10)).unwrap();
        let request = client.request(method, self.sandbox.url(path)).json(body);
        let answer = request.send().await.unwrap().error_for_status().unwrap();
        serde_json::from_slice(&answer.bytes().await.unwrap()).unwrap_or_default()
    }

    pub(crate) async fn close(self) {
        assert!(self.service.stop().await, "the service did not stop in time");
    }
}
