//! The two programs that are measured: a service that only delivers, and the bare loop.

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

use super::test_merchants::{self, Wanted, Written};
use crate::process::{Program, free_port};

const NAME: &str = "deliverer";
const QUEUE: &str = "bare";
const IN_FLIGHT: usize = 64;
const TAKEN_AT_ONCE: u16 = 512;
const PUBLISHED_AT_ONCE: usize = 500;

struct Deliverer {
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

impl Service for Deliverer {
    const NAME: &'static str = NAME;
    const ABOUT: &'static str = "Delivers, and nothing else";
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
        broker.start_relay(NAME, process);
        let verifier = Arc::new(Verifier::new("bench", process.clock.clone()));
        verifier.set_keys(&serde_json::from_str(r#"{"keys": []}"#)?);
        let merchants = Merchants::start(NAME, process, &broker, &verifier);
        let sealer = Arc::new(Sealer::new(&own.sealing)?);
        let kinds = [MessageKind::Rma];
        let deliveries =
            Deliveries::start(NAME, process, &broker, &merchants, &sealer, &kinds, own.delivery)?;
        Ok((Self { pool: process.pool.clone(), deliveries }, verifier))
    }
}

async fn write(
    service: web::Data<Deliverer>,
    wanted: web::Json<Wanted>,
) -> actix_web::Result<web::Json<Written>> {
    let written =
        test_merchants::write(&service.pool, &service.deliveries, wanted.into_inner()).await;
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

/// The engine's process.
pub(crate) async fn serve() -> anyhow::Result<()> {
    let environment: HashMap<_, _> = std::env::vars().collect();
    let (platform, own) = config::load(NAME, Deliverer::DEFAULTS, None, environment)?;
    let mut running = Running::start::<Deliverer>(platform, own, Clock::system()).await?;
    running.failed().await;
    anyhow::bail!("a part of the engine failed")
}

pub(crate) async fn start(database: &Database, namespace: &Namespace) -> anyhow::Result<Program> {
    let (port, url) = (free_port()?, database.url());
    let port_text = port.to_string();
    let environment = [
        ("DELIVERER__HTTP__PORT", port_text.as_str()),
        ("DELIVERER__HTTP__WORKERS", "1"),
        ("DELIVERER__LIMITS__REQUESTS_PER_MINUTE", "100000000"),
        ("DELIVERER__DATABASE__URL", &url),
        ("DELIVERER__BROKER__URL", namespace.amqp_url()),
        ("DELIVERER__BROKER__NAMESPACE", &namespace.name),
        ("DELIVERER__SEALING__KEYS", sealing_keys()),
        ("DELIVERER__DELIVERY__HTTPS_ONLY", "false"),
        ("DELIVERER__DELIVERY__ALLOWED_NETWORKS", "127.0.0.1/32"),
        ("DELIVERER__DELIVERY__DEADLINE", "5s"),
        ("DELIVERER__DELIVERY__RETRY_BASE", "1h"),
        ("DELIVERER__DELIVERY__RETRY_FACTOR", "1"),
    ];
    Program::start("bench", &["deliverer"], &environment, port, "/readyz").await
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

/// Starts the bare loop; it waits for a word before it fills its queue, and before it empties it.
pub(crate) async fn start_bare(
    namespace: &Namespace,
    sandbox: &str,
    messages: usize,
) -> anyhow::Result<Program> {
    let (port, many) = (free_port()?, messages.to_string());
    let port_text = port.to_string();
    let environment = [
        ("BARE_PORT", port_text.as_str()),
        ("BARE_AMQP", namespace.amqp_url()),
        ("BARE_NAMESPACE", &namespace.name),
        ("BARE_SANDBOX", sandbox),
        ("BARE_MESSAGES", &many),
    ];
    Program::start("bench", &["bare"], &environment, port, "/").await
}

/// The bare loop: when told, fills a queue; when told, consumes, posts and acknowledges.
pub(crate) async fn bare() -> anyhow::Result<()> {
    let told: HashMap<_, _> = std::env::vars().collect();
    let word = |name: &str| told.get(name).cloned().with_context(|| format!("{name} is not set"));
    let (port, messages) = (word("BARE_PORT")?.parse::<u16>()?, word("BARE_MESSAGES")?.parse()?);
    let (amqp, namespace) = (SecretString::from(word("BARE_AMQP")?), word("BARE_NAMESPACE")?);
    let url = format!("{}/bare/rmas", word("BARE_SANDBOX")?);
    let tasks = Tasks::default();
    let topology = topology(&namespace);
    let link = BrokerConnection::start(&amqp, &topology, "bare", &tasks);
    let queue = topology.qualified(QUEUE);
    let line = web::Data::new(BareLoop { link, queue, url, messages });
    let app = move || {
        App::new()
            .app_data(line.clone())
            .route("/", web::get().to(HttpResponse::Ok))
            .route("/fill", web::post().to(fill))
            .route("/go", web::post().to(go))
            .route("/go_together", web::post().to(go_together))
    };
    HttpServer::new(app).workers(1).bind(("127.0.0.1", port))?.run().await?;
    Ok(())
}

struct BareLoop {
    link: BrokerConnection,
    queue: String,
    url: String,
    messages: usize,
}

async fn fill(bare: web::Data<BareLoop>) -> actix_web::Result<&'static str> {
    done(bare.publish().await)
}

async fn go(bare: web::Data<BareLoop>) -> actix_web::Result<&'static str> {
    done(bare.consume().await)
}

async fn go_together(bare: web::Data<BareLoop>) -> actix_web::Result<&'static str> {
    done(bare.consume_together().await)
}

fn done(result: anyhow::Result<()>) -> actix_web::Result<&'static str> {
    result.map_err(|error| ErrorInternalServerError(format!("{error:#}")))?;
    Ok("done")
}

impl BareLoop {
    async fn publish(&self) -> anyhow::Result<()> {
        let publisher = Publisher::new(self.link.clone());
        let message = Message {
            exchange: Exchange(String::new()),
            routing_key: self.queue.clone(),
            id: String::new(),
            content_type: "application/json",
            headers: Vec::new(),
            body: test_merchants::body(0).into_bytes(),
        };
        for _ in 0..self.messages.div_ceil(PUBLISHED_AT_ONCE) {
            let words = publisher.publish(&vec![message.clone(); PUBLISHED_AT_ONCE]).await?;
            anyhow::ensure!(words.iter().all(Result::is_ok), "the broker did not take a message");
        }
        Ok(())
    }

    /// As a worker does it: each message is posted, and acknowledged when it was answered.
    async fn consume(&self) -> anyhow::Result<()> {
        let client = platform::http_client(Duration::from_secs(20))?;
        let mut subscription = Subscription::open(&self.link, &self.queue, TAKEN_AT_ONCE).await?;
        let (mut posts, mut done) = (JoinSet::new(), 0);
        while done < self.messages {
            let room = IN_FLIGHT - posts.len();
            tokio::select! {
                Some(posted) = posts.join_next() => {
                    subscription.ack(posted??).await?;
                    done += 1;
                }
                batch = subscription.next(room), if room > 0 => {
                    for incoming in batch? {
                        posts.spawn(self.post(&client, incoming));
                    }
                }
            }
        }
        Ok(subscription.cancel().await?)
    }

    /// As cheap as it gets: so many are posted, and acknowledged with one word when all are answered.
    async fn consume_together(&self) -> anyhow::Result<()> {
        let client = platform::http_client(Duration::from_secs(20))?;
        let mut subscription = Subscription::open(&self.link, &self.queue, TAKEN_AT_ONCE).await?;
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

    /// Posts a message and says which it was.
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
