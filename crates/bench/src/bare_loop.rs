//! The yardstick: a loop that inserts messages into a table, publishes them to a quorum queue, consumes them, posts
//! each to the receiver and acknowledges it. It has no orders, keys, retries or log.
//!
//! The loop runs in a process of its own, so that its CPU time can be measured.

use std::time::Duration;

use anyhow::Context as _;
use ctl::settings::Settings;
use messaging::{BrokerConnection, Exchange, Incoming, Message, Publisher, Subscription, Topology};
use platform::Tasks;
use secrecy::SecretString;
use serde::{Deserialize, Serialize};
use tokio::process::Command;
use tokio::task::JoinSet;

use crate::postgres::Postgres;
use crate::processes::{Cost, Processes, count, micros, own_cpu};
use crate::settings::{database_url, setting};
use crate::stack::Stack;

const QUEUE: &str = "bare-loop";
const IN_FLIGHT: usize = 64;
const PREFETCH: u16 = 512;
/// Messages of one statement, and of one wait for the broker's confirmations.
const BATCH: usize = 64;
const BODY_BYTES: usize = 1_200;
const CREATE: &str = "DROP TABLE IF EXISTS bare_loop; \
    CREATE TABLE bare_loop (id bigint PRIMARY KEY, body text NOT NULL)";
const INSERT: &str = "INSERT INTO bare_loop SELECT * FROM unnest($1::bigint[], $2::text[])";

/// The cost of a message in microseconds of CPU time, of all processes.
#[derive(Clone, Copy, Serialize, Deserialize)]
pub(crate) struct BareLoop {
    pub(crate) insert: f64,
    pub(crate) publish: f64,
    /// Consuming, posting and acknowledging.
    pub(crate) post: f64,
}

impl BareLoop {
    pub(crate) fn all(&self) -> f64 {
        self.insert + self.publish + self.post
    }
}

/// Runs the loop in a process of its own.
pub(crate) async fn measure(stack: &Stack, messages: usize) -> anyhow::Result<BareLoop> {
    let output = Command::new(std::env::current_exe()?)
        .args(["bare-loop", &stack.receiver.url, &messages.to_string()])
        .stderr(std::process::Stdio::inherit())
        .kill_on_drop(true)
        .output()
        .await?;
    anyhow::ensure!(output.status.success(), "the bare loop failed");
    serde_json::from_slice(&output.stdout).context("the bare loop printed no costs")
}

/// The process of the loop.
pub(crate) async fn run(receiver: &str, messages: usize) -> anyhow::Result<BareLoop> {
    let settings = Settings::load()?;
    let processes = Processes::find(&settings).await?;
    let postgres = Postgres::connect(&database_url(&settings, "postgres")?).await?;
    postgres.execute(CREATE).await?;
    let tasks = Tasks::default();
    let topology = Topology::empty(setting(&settings, "BROKER_NAMESPACE")?).with_queue(QUEUE);
    let amqp = SecretString::from(setting(&settings, "AMQP_URL")?);
    let broker = BrokerConnection::start(&amqp, &topology, QUEUE, &tasks);
    let queue = topology.qualified(QUEUE);
    let bodies = vec!["x".repeat(BODY_BYTES); messages];
    // The first batch warms up connections and the queue.
    let warm_up = bodies.get(..BATCH.min(messages)).unwrap_or(&bodies);
    publish(&broker, &queue, warm_up).await?;
    post(&broker, &queue, receiver, warm_up.len()).await?;

    let mut meter = Meter::start(&processes)?;
    insert(&postgres, &bodies).await?;
    let inserted = meter.lap(&processes, messages)?;
    publish(&broker, &queue, &bodies).await?;
    let published = meter.lap(&processes, messages)?;
    post(&broker, &queue, receiver, messages).await?;
    let posted = meter.lap(&processes, messages)?;
    postgres.execute("DROP TABLE bare_loop").await?;
    Ok(BareLoop { insert: inserted, publish: published, post: posted })
}

/// The CPU time of the loop and the servers.
struct Meter {
    own: Duration,
    servers: crate::processes::CpuTimes,
}

impl Meter {
    fn start(processes: &Processes) -> anyhow::Result<Self> {
        Ok(Self { own: own_cpu()?, servers: processes.cpu_of_servers()? })
    }

    /// The cost of each message since the last lap.
    fn lap(&mut self, processes: &Processes, messages: usize) -> anyhow::Result<f64> {
        let now = Self::start(processes)?;
        let servers: Cost = now.servers.since(&self.servers, messages);
        let own = micros(now.own.saturating_sub(self.own)) / count(messages);
        *self = now;
        Ok(servers.all() + own)
    }
}

async fn insert(postgres: &Postgres, bodies: &[String]) -> anyhow::Result<()> {
    let statement = postgres.prepare(INSERT).await?;
    let mut id = 0_i64;
    for batch in bodies.chunks(BATCH) {
        let ids: Vec<i64> = (id..).take(batch.len()).collect();
        postgres.run(&statement, &[&ids, &batch]).await?;
        id += i64::try_from(batch.len())?;
    }
    Ok(())
}

async fn publish(broker: &BrokerConnection, queue: &str, bodies: &[String]) -> anyhow::Result<()> {
    let publisher = Publisher::new(broker.clone());
    let message = |body: &String| Message {
        exchange: Exchange(String::new()),
        routing_key: queue.to_owned(),
        id: String::new(),
        content_type: "application/json",
        headers: Vec::new(),
        body: body.clone().into_bytes(),
    };
    for batch in bodies.chunks(BATCH) {
        let batch: Vec<_> = batch.iter().map(message).collect();
        let confirms = publisher.publish(&batch).await?;
        anyhow::ensure!(confirms.iter().all(Result::is_ok), "the broker rejected a message");
    }
    Ok(())
}

/// Posts each message, and acknowledges it when the response has arrived.
async fn post(
    broker: &BrokerConnection,
    queue: &str,
    receiver: &str,
    messages: usize,
) -> anyhow::Result<()> {
    let client = platform::http_client(Duration::from_secs(20))?;
    let mut subscription = Subscription::open(broker, queue, PREFETCH).await?;
    let mut posts = JoinSet::new();
    let mut done = 0;
    while done < messages {
        let free = IN_FLIGHT - posts.len();
        tokio::select! {
            Some(posted) = posts.join_next() => {
                subscription.ack(posted??).await?;
                done += 1;
            }
            batch = subscription.next(free), if free > 0 => {
                for incoming in batch? {
                    posts.spawn(post_one(client.clone(), receiver.to_owned(), incoming));
                }
            }
        }
    }
    Ok(subscription.cancel().await?)
}

/// Posts a message and returns its delivery tag.
async fn post_one(
    client: reqwest::Client,
    url: String,
    incoming: Incoming,
) -> reqwest::Result<u64> {
    let request = client.post(url).header("content-type", "application/json");
    request.body(incoming.body).send().await?.error_for_status()?.bytes().await?;
    Ok(incoming.delivery_tag)
}
