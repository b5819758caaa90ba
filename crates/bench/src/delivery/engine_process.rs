//! The process under test: a service that only delivers.

use std::{collections::HashMap, sync::Arc};

use ::delivery::Deliveries;
use actix_web::{error::ErrorInternalServerError, web};
use diesel_migrations::EmbeddedMigrations;
use domain::message_kind::MessageKind;
use merchants::Merchants;
use messaging::{Broker, Topology};
use platform::{
    Clock, Process, Running, Service,
    batching::Batches,
    identity::Verifier,
    sealing::{self, Sealer},
    settings,
};
use serde::Deserialize;
use testkit::{Database, Namespace, sealing_keys};
use utoipa_actix_web::service_config::ServiceConfig;

use super::writes::{self, WriteHandler, WriteRequest, WriteResponse};
use crate::process::{Program, free_port};

const NAME: &str = "delivery-engine";

struct DeliveryEngine {
    writes: Arc<Batches<WriteHandler>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Settings {
    broker: messaging::Settings,
    delivery: delivery::Settings,
    sealing: sealing::Settings,
}

pub(super) fn migrations() -> Vec<EmbeddedMigrations> {
    vec![messaging::MIGRATIONS, merchants::MIGRATIONS, delivery::MIGRATIONS]
}

impl Service for DeliveryEngine {
    const NAME: &'static str = NAME;
    const ABOUT: &'static str = "Only delivers messages";
    const DEFAULTS: &'static [&'static str] = &[messaging::DEFAULTS, delivery::DEFAULTS];
    type Settings = Settings;

    fn migrations() -> Vec<EmbeddedMigrations> {
        migrations()
    }

    fn routes(_: &mut ServiceConfig<'_>) {}

    fn share(&self, app: &mut web::ServiceConfig) {
        app.route("/write", web::post().to(write));
    }

    fn start(process: &Process, own: Settings) -> anyhow::Result<(Self, Arc<Verifier>)> {
        let topology = topology(&own.broker.namespace);
        let broker = Broker::start(NAME, process, own.broker, topology);
        let outbox = broker.start_relay(NAME, process);
        let verifier = Arc::new(Verifier::new("bench", process.clock.clone()));
        verifier.set_keys(&serde_json::from_str(r#"{"keys": []}"#)?);
        let merchants = Merchants::start(NAME, process, &broker, &verifier);
        let sealer = Arc::new(Sealer::new(&own.sealing)?);
        let deliveries = Deliveries::start(
            &outbox,
            process,
            &broker,
            &merchants,
            &sealer,
            &MessageKind::ALL,
            own.delivery,
        )?;
        Ok((Self { writes: Batches::start("writes", process, WriteHandler(deliveries)) }, verifier))
    }
}

async fn write(
    service: web::Data<DeliveryEngine>,
    request: web::Json<WriteRequest>,
) -> actix_web::Result<web::Json<WriteResponse>> {
    let written = writes::write(&service.writes, request.into_inner()).await;
    Ok(web::Json(written.map_err(|error| ErrorInternalServerError(format!("{error:#}")))?))
}

/// The queues of a service that delivers messages of all kinds.
fn topology(namespace: &str) -> Topology {
    let topology = Topology::empty(namespace)
        .with_subscription(NAME, "merchant.changed.v1")
        .with_subscription(NAME, "token.revoked.v1")
        .with_subscription("operators", "delivery.dead.v1");
    MessageKind::ALL.iter().fold(topology, |topology, kind| topology.with_queue(kind.queue()))
}

/// Runs the process of the delivery engine.
pub(crate) async fn run_engine() -> anyhow::Result<()> {
    let environment: HashMap<_, _> = std::env::vars().collect();
    let (platform, own) = settings::load(NAME, DeliveryEngine::DEFAULTS, None, environment)?;
    let mut running = Running::start::<DeliveryEngine>(platform, own, Clock::system()).await?;
    running.failed().await;
    anyhow::bail!("a task of the engine failed")
}

/// Starts the process with further settings, without the prefix.
pub(super) async fn start(
    database: &Database,
    namespace: &Namespace,
    settings: &[(&str, &str)],
) -> anyhow::Result<Program> {
    let (port, url) = (free_port()?, database.url());
    let port_text = port.to_string();
    let common = [
        ("HTTP__PORT", port_text.as_str()),
        ("HTTP__WORKERS", "1"),
        ("LIMITS__REQUESTS_PER_MINUTE", "100000000"),
        ("DATABASE__URL", &url),
        // Requests must not fail when they wait for a connection.
        ("DATABASE__ACQUIRE_TIMEOUT", "10s"),
        ("BROKER__URL", namespace.amqp_url()),
        ("BROKER__NAMESPACE", &namespace.name),
        ("SEALING__KEYS", sealing_keys()),
        ("DELIVERY__HTTPS_ONLY", "false"),
        ("DELIVERY__ALLOWED_NETWORKS", "127.0.0.1/32"),
        ("DELIVERY__RETRY_BASE", "1h"),
        ("DELIVERY__RETRY_FACTOR", "1"),
    ];
    let named: Vec<_> = common
        .iter()
        .chain(settings)
        .map(|(name, value)| (format!("DELIVERY_ENGINE__{name}"), *value))
        .collect();
    let environment: Vec<_> = named.iter().map(|(name, value)| (name.as_str(), *value)).collect();
    Program::start("bench", &["delivery-engine"], &environment, port, "/readyz").await
}
