//! The processes under test: a service that only delivers, and the bare loop.

use std::{collections::HashMap, sync::Arc, time::Duration};

use ::delivery::Deliveries;
use actix_web::{App, HttpResponse, HttpServer, error::ErrorInternalServerError, web};
use anyhow::Context as _;
use diesel_migrations::EmbeddedMigrations;
use domain::message_kind::MessageKind;
use merchants::Merchants;
use messaging::{
    Broker, BrokerConnection, Exchange, Incoming, Message, Publisher, Subscription, Topology,
};
use platform::{
    Clock, Process, Running, Service, Tasks, config,
    database::Pool,
    identity::Verifier,
    sealing::{self, Sealer},
};
use secrecy::SecretString;
use serde::Deserialize;
use testkit::{Database, Namespace, sealing_keys};
use tokio::task::JoinSet;
use utoipa_actix_web::service_config::ServiceConfig;

use super::test_merchants::{self, WriteRequest, WriteResponse};
use crate::process::{Program, free_port};

const NAME: &str = "delivery-engine";
const QUEUE: &str = "bare-loop";
const IN_FLIGHT: usize = 64;
const PREFETCH: u16 = 512;
const PUBLISH_BATCH_SIZE: usize = 500;

struct DeliveryEngine {
    pool: Pool,
    deliveries: Deliveries,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Settings {
    broker: messaging::Settings,
    delivery: delivery::Settings,
    sealing: sealing::Settings,
}

pub(crate) fn migrations() -> Vec<EmbeddedMigrations> {
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

    async fn start(process: &Process, own: Settings) -> anyhow::Result<(Self, Arc<Verifier>)> {
        let topology = topology(&own.broker.namespace);
        let broker = Broker::start(NAME, process, own.broker, topology);
        let outbox = broker.start_relay(NAME, process);
        let verifier = Arc::new(Verifier::new("bench", process.clock.clone()));
        verifier.set_keys(&serde_json::from_str(r#"{"keys": []}"#)?);
        let merchants = Merchants::start(NAME, process, &broker, &verifier);
        let sealer = Arc::new(Sealer::new(&own.sealing)?);
        let kinds = [MessageKind::Rma];
        let deliveries = Deliveries::start(
            &outbox,
            process,
            &broker,
            &merchants,
            &sealer,
            &kinds,
            own.delivery,
        )?;
        Ok((Self { pool: process.pool.clone(), deliveries }, verifier))
    }
}

async fn write(
    service: web::Data<DeliveryEngine>,
    request: web::Json<WriteRequest>,
) -> actix_web::Result<web::Json<WriteResponse>> {
    let written =
        test_merchants::write(&service.pool, &service.deliveries, request.into_inner()).await;
    Ok(web::Json(written.map_err(|error| ErrorInternalServerError(format!("{error:#}")))?))
}

fn topology(namespace: &str) -> Topology {
    Topology::empty(namespace)
        .with_subscription(NAME, "merchant.changed.v1")
        .with_subscription(NAME, "token.revoked.v1")
        .with_subscription("operators", "delivery.dead.v1")
        .with_queue(MessageKind::Rma.queue())
        .with_queue(QUEUE)
}

/// Runs the process of the delivery engine.
pub(crate) async fn run_engine() -> anyhow::Result<()> {
    let environment: HashMap<_, _> = std::env::vars().collect();
    let (platform, own) = config::load(NAME, DeliveryEngine::DEFAULTS, None, environment)?;
    let mut running = Running::start::<DeliveryEngine>(platform, own, Clock::system()).await?;
    running.failed().await;
    anyhow::bail!("a task of the engine failed")
}

pub(crate) async fn start(database: &Database, namespace: &Namespace) -> anyhow::Result<Program> {
    let (port, url) = (free_port()?, database.url());
    let port_text = port.to_string();
    let environment = [
        ("DELIVERY_ENGINE__HTTP__PORT", port_text.as_str()),
        ("DELIVERY_ENGINE__HTTP__WORKERS", "1"),
        ("DELIVERY_ENGINE__LIMITS__REQUESTS_PER_MINUTE", "100000000"),
        ("DELIVERY_ENGINE__DATABASE__URL", &url),
        ("DELIVERY_ENGINE__BROKER__URL", namespace.amqp_url()),
        ("DELIVERY_ENGINE__BROKER__NAMESPACE", &namespace.name),
        ("DELIVERY_ENGINE__SEALING__KEYS", sealing_keys()),
        ("DELIVERY_ENGINE__DELIVERY__HTTPS_ONLY", "false"),
        ("DELIVERY_ENGINE__DELIVERY__ALLOWED_NETWORKS", "127.0.0.1/32"),
        ("DELIVERY_ENGINE__DELIVERY__ATTEMPT_TIMEOUT", "5s"),
        ("DELIVERY_ENGINE__DELIVERY__RETRY_BASE", "1h"),
        ("DELIVERY_ENGINE__DELIVERY__RETRY_FACTOR", "1"),
    ];
    Program::start("bench", &["delivery-engine"], &environment, port, "/readyz").await
}

pub(crate) async fn start_sandbox() -> anyhow::Result<Program> {
    let port = free_port()?;
    let text = port.to_string();
    let environment = [
        ("SANDBOX__HTTP__PORT", text.as_str()),
        ("SANDBOX__JOURNAL__CAPACITY", "5000"),
        ("SANDBOX__SIGNING__SECRETS", test_merchants::SECRET),
    ];
    Program::start("sandbox", &[], &environment, port, "/healthz").await
}

/// Starts the process of the bare loop, which waits for requests to publish and to consume.
pub(crate) async fn start_bare_loop(
    namespace: &Namespace,
    sandbox: &str,
    messages: usize,
) -> anyhow::Result<Program> {
    let (port, count) = (free_port()?, messages.to_string());
    let port_text = port.to_string();
    let environment = [
        ("BARE_PORT", port_text.as_str()),
        ("BARE_AMQP", namespace.amqp_url()),
        ("BARE_NAMESPACE", &namespace.name),
        ("BARE_SANDBOX", sandbox),
        ("BARE_MESSAGES", &count),
    ];
    Program::start("bench", &["bare-loop"], &environment, port, "/").await
}

/// Runs the process of the bare loop.
pub(crate) async fn run_bare_loop() -> anyhow::Result<()> {
    let environment: HashMap<_, _> = std::env::vars().collect();
    let setting =
        |name: &str| environment.get(name).cloned().with_context(|| format!("{name} is not set"));
    let (port, messages) =
        (setting("BARE_PORT")?.parse::<u16>()?, setting("BARE_MESSAGES")?.parse()?);
    let (amqp, namespace) = (SecretString::from(setting("BARE_AMQP")?), setting("BARE_NAMESPACE")?);
    let url = format!("{}/bare/rmas", setting("BARE_SANDBOX")?);
    let tasks = Tasks::default();
    let topology = topology(&namespace);
    let connection = BrokerConnection::start(&amqp, &topology, "bare-loop", &tasks);
    let queue = topology.qualified(QUEUE);
    let bare_loop = web::Data::new(BareLoop { connection, queue, url, messages });
    let app = move || {
        App::new()
            .app_data(bare_loop.clone())
            .route("/", web::get().to(HttpResponse::Ok))
            .route("/publish", web::post().to(publish))
            .route("/consume", web::post().to(consume))
            .route("/consume_batched", web::post().to(consume_batched))
    };
    HttpServer::new(app).workers(1).bind(("127.0.0.1", port))?.run().await?;
    Ok(())
}

struct BareLoop {
    connection: BrokerConnection,
    queue: String,
    url: String,
    messages: usize,
}

async fn publish(bare: web::Data<BareLoop>) -> actix_web::Result<&'static str> {
    respond(bare.publish().await)
}

async fn consume(bare: web::Data<BareLoop>) -> actix_web::Result<&'static str> {
    respond(bare.consume().await)
}

async fn consume_batched(bare: web::Data<BareLoop>) -> actix_web::Result<&'static str> {
    respond(bare.consume_batched().await)
}

fn respond(result: anyhow::Result<()>) -> actix_web::Result<&'static str> {
    result.map_err(|error| ErrorInternalServerError(format!("{error:#}")))?;
    Ok("done")
}

impl BareLoop {
    async fn publish(&self) -> anyhow::Result<()> {
        let publisher = Publisher::new(self.connection.clone());
        let message = Message {
            exchange: Exchange(String::new()),
            routing_key: self.queue.clone(),
            id: String::new(),
            content_type: "application/json",
            headers: Vec::new(),
            body: test_merchants::body(0).into_bytes(),
        };
        for _ in 0..self.messages.div_ceil(PUBLISH_BATCH_SIZE) {
            let confirms = publisher.publish(&vec![message.clone(); PUBLISH_BATCH_SIZE]).await?;
            anyhow::ensure!(confirms.iter().all(Result::is_ok), "the broker rejected a message");
        }
        Ok(())
    }

    /// Posts each message, and acknowledges it when the response has arrived.
    async fn consume(&self) -> anyhow::Result<()> {
        let client = platform::http_client(Duration::from_secs(20))?;
        let mut subscription = Subscription::open(&self.connection, &self.queue, PREFETCH).await?;
        let (mut posts, mut done) = (JoinSet::new(), 0);
        while done < self.messages {
            let free = IN_FLIGHT - posts.len();
            tokio::select! {
                Some(posted) = posts.join_next() => {
                    subscription.ack(posted??).await?;
                    done += 1;
                }
                batch = subscription.next(free), if free > 0 => {
                    for incoming in batch? {
                        posts.spawn(self.post(&client, incoming));
                    }
                }
            }
        }
        Ok(subscription.cancel().await?)
    }

    /// Uses the least CPU time: posts a batch, and acknowledges it at once when all responses have arrived.
    async fn consume_batched(&self) -> anyhow::Result<()> {
        let client = platform::http_client(Duration::from_secs(20))?;
        let mut subscription = Subscription::open(&self.connection, &self.queue, PREFETCH).await?;
        let mut done = 0;
        while done < self.messages {
            let batch = subscription.next(IN_FLIGHT).await?;
            let last =
                batch.last().map(|incoming| incoming.delivery_tag).context("an empty batch")?;
            done += batch.len();
            let posts: JoinSet<_> =
                batch.into_iter().map(|incoming| self.post(&client, incoming)).collect();
            for posted in posts.join_all().await {
                posted?;
            }
            subscription.ack_up_to(last).await?;
        }
        Ok(subscription.cancel().await?)
    }

    /// Posts a message and returns its delivery tag.
    fn post(
        &self,
        client: &reqwest::Client,
        Incoming { delivery_tag: tag, body, .. }: Incoming,
    ) -> impl Future<Output = reqwest::Result<u64>> + use<> {
        let request = client.post(&self.url).header("content-type", "application/json");
        let sent = request.body(body).send();
        async move {
            sent.await?.error_for_status()?.bytes().await?;
            Ok(tag)
        }
    }
}
