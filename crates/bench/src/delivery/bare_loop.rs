//! The baseline: a process that publishes messages, and consumes, posts and acknowledges them.

use std::{collections::HashMap, time::Duration};

use actix_web::{App, HttpResponse, HttpServer, error::ErrorInternalServerError, web};
use anyhow::Context as _;
use messaging::{BrokerConnection, Exchange, Incoming, Message, Publisher, Subscription, Topology};
use platform::Tasks;
use secrecy::SecretString;
use testkit::Namespace;
use tokio::task::JoinSet;

use super::writes;
use crate::process::{Program, free_port};

const QUEUE: &str = "bare-loop";
const IN_FLIGHT: usize = 64;
const PREFETCH: u16 = 512;
const PUBLISH_BATCH_SIZE: usize = 500;

/// Starts the process, which waits for requests to publish and to consume.
pub(super) async fn start(
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

/// Runs the process.
pub(crate) async fn run_bare_loop() -> anyhow::Result<()> {
    let environment: HashMap<_, _> = std::env::vars().collect();
    let setting =
        |name: &str| environment.get(name).cloned().with_context(|| format!("{name} is not set"));
    let (port, messages) =
        (setting("BARE_PORT")?.parse::<u16>()?, setting("BARE_MESSAGES")?.parse()?);
    let (amqp, namespace) = (SecretString::from(setting("BARE_AMQP")?), setting("BARE_NAMESPACE")?);
    let url = format!("{}/bare/rmas", setting("BARE_SANDBOX")?);
    let tasks = Tasks::default();
    let topology = Topology::empty(&namespace).with_queue(QUEUE);
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
            body: writes::body(0).into_bytes(),
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
