//! The engine, its servers and its merchants, and the loads that every part uses.

use std::{
    collections::HashMap,
    ops::Range,
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::Context as _;
use diesel::{
    QueryableByName,
    sql_types::{Array, BigInt},
};
use diesel_async::RunQueryDsl as _;
use domain::message_kind::MessageKind;
use platform::{Clock, Timestamp, database::Pool};
use reqwest::Client;
use testkit::{Database, Namespace};
use uuid::Uuid;

use super::{
    engine_process, test_merchants,
    writes::{WriteRequest, WriteResponse},
};
use crate::{
    cpu::{CpuCost, CpuMeter},
    load::Round,
    process::Program,
    raw_http::{post, send_all},
    report::Report,
    sandbox_process::Sandbox,
    size::count,
};

/// Settings of the engine: an endpoint that hangs is noticed sooner than in production.
pub(crate) const DEFAULT_SETTINGS: [(&str, &str); 1] = [("DELIVERY__ATTEMPT_TIMEOUT", "5s")];
/// The merchants to which most parts send.
pub(crate) const TEN: Range<usize> = 0..10;
/// Time of one message at 50 per second.
const PACE: Duration = Duration::from_millis(20);
const POLL_INTERVAL: Duration = Duration::from_millis(50);
const TIMEOUT: Duration = Duration::from_secs(180);
/// Requests that the sandbox remembers.
const JOURNAL: usize = 50_000;
/// Writers of messages that are written one by one.
const WRITERS: usize = 32;

pub(crate) struct Fixture {
    pub(crate) engine: Program,
    pub(super) sandbox: Sandbox,
    pub(super) pool: Pool,
    pub(super) meter: CpuMeter,
    pub(super) namespace: Arc<Namespace>,
    client: Client,
    /// Deleted when dropped.
    pub(crate) database: Database,
}

/// A load of many messages at once.
pub(crate) struct Burst {
    messages: usize,
    elapsed: Duration,
    pub(crate) cost: CpuCost,
}

/// A load of 50 messages per second.
pub(crate) struct Paced {
    pub(crate) from_request: Round,
    pub(crate) from_commit: Round,
    pub(crate) cost: CpuCost,
}

#[derive(QueryableByName)]
struct Count {
    #[diesel(sql_type = BigInt)]
    n: i64,
}

impl Fixture {
    /// Starts the engine with ten merchants. `settings` are settings of the engine without their prefix.
    pub(crate) async fn start(
        namespace: Arc<Namespace>,
        settings: &[(&str, &str)],
    ) -> anyhow::Result<Self> {
        let database = Database::create(engine_process::migrations()).await;
        let (sandbox, pool) = (Sandbox::start(JOURNAL).await?, database.pool());
        test_merchants::create(&pool, &sandbox, TEN, &[MessageKind::Rma]).await?;
        let engine = engine_process::start(&database, &namespace, settings).await?;
        let (meter, client) = (CpuMeter::find().await?, platform::http_client(TIMEOUT)?);
        Ok(Self { engine, sandbox, pool, meter, namespace, client, database })
    }

    /// Kills the engine and starts it again; returns the time until it is ready.
    pub(super) async fn restart(&mut self, settings: &[(&str, &str)]) -> anyhow::Result<Duration> {
        self.engine.kill().await?;
        let started = Instant::now();
        self.engine = engine_process::start(&self.database, &self.namespace, settings).await?;
        Ok(started.elapsed())
    }

    /// Sends a command to a process of the benchmark.
    pub(super) async fn post(&self, program: &Program, command: &str) -> anyhow::Result<()> {
        let url = format!("{}/{command}", program.url);
        self.client.post(url).send().await?.error_for_status()?;
        Ok(())
    }

    pub(super) async fn write(&self, request: &WriteRequest) -> anyhow::Result<WriteResponse> {
        let url = format!("{}/write", self.engine.url);
        let response = self.client.post(url).json(request).send().await?;
        Ok(response.error_for_status()?.json().await?)
    }

    /// Writes messages to ten merchants in large transactions and waits until they are delivered.
    pub(crate) async fn write_batched(&self, messages: usize) -> anyhow::Result<Burst> {
        let (before, started) = (self.meter.read([&self.engine])?, Instant::now());
        let written = self.write(&WriteRequest::new(0..messages, TEN)).await?;
        self.await_settled(&written.ids).await?;
        let elapsed = started.elapsed();
        let cost = self.meter.read([&self.engine])?.since(&before, messages);
        Ok(Burst { messages, elapsed, cost })
    }

    /// Writes messages with 32 writers, one message per request. Concurrent requests share transactions, as those
    /// of the services do. Also returns the times from commit to arrival.
    pub(super) async fn write_one_by_one(
        &self,
        messages: usize,
        merchants: Range<usize>,
    ) -> anyhow::Result<(Burst, Round)> {
        let request = |number| {
            let one = WriteRequest::new(number..number + 1, merchants.clone());
            let body = serde_json::to_vec(&one)?;
            Ok(post(self.engine.address(), "/write", "none", &body))
        };
        let requests = (0..messages).map(request).collect::<anyhow::Result<Vec<_>>>()?;
        let arrived = self.sandbox.total().await?;
        let (before, started) = (self.meter.read([&self.engine])?, Instant::now());
        let (responses, _) = send_all(self.engine.address(), WRITERS, requests).await?;
        let written = responses.iter().map(|response| serde_json::from_slice(&response.body));
        let written: Vec<WriteResponse> = written.collect::<Result<_, _>>()?;
        let ids: Vec<_> = written.iter().flat_map(|written| &written.ids).copied().collect();
        self.await_settled(&ids).await?;
        let elapsed = started.elapsed();
        let cost = self.meter.read([&self.engine])?.since(&before, messages);
        let commits = written.iter().flat_map(|it| it.ids.iter().map(|id| (*id, it.committed_at)));
        let arrivals = self.arrivals(arrived).await?;
        let round = latencies(&arrivals, commits, elapsed)?;
        Ok((Burst { messages, elapsed, cost }, round))
    }

    /// Writes 50 messages per second, one by one, to ten merchants.
    pub(crate) async fn pace(&self, messages: usize) -> anyhow::Result<Paced> {
        let (clock, arrived) = (Clock::system(), self.sandbox.total().await?);
        let (mut sent, mut committed) = (Vec::new(), Vec::new());
        let (before, started) = (self.meter.read([&self.engine])?, Instant::now());
        let mut ticks = tokio::time::interval(PACE);
        for number in 0..messages {
            ticks.tick().await;
            let sent_at = clock.now();
            let written = self.write(&WriteRequest::new(number..number + 1, TEN)).await?;
            sent.extend(written.ids.iter().map(|id| (*id, sent_at)));
            committed.extend(written.ids.iter().map(|id| (*id, written.committed_at)));
        }
        let ids: Vec<_> = sent.iter().map(|(id, _)| *id).collect();
        self.await_settled(&ids).await?;
        let cost = self.meter.read([&self.engine])?.since(&before, messages);
        let (elapsed, arrivals) = (started.elapsed(), self.arrivals(arrived).await?);
        let from_request = latencies(&arrivals, sent, elapsed)?;
        let from_commit = latencies(&arrivals, committed, elapsed)?;
        Ok(Paced { from_request, from_commit, cost })
    }

    /// Waits until deliveries are settled. The last ones are queried first, because the CPU time of the
    /// queries counts as the engine's.
    pub(super) async fn await_settled(&self, ids: &[Uuid]) -> anyhow::Result<()> {
        let settled = async {
            let mut conn = self.pool.get().await?;
            for ids in [ids.get(ids.len().saturating_sub(100)..).unwrap_or(ids), ids] {
                loop {
                    let left = "SELECT count(*) AS n FROM deliveries WHERE id = ANY ($1)";
                    let left = diesel::sql_query(left)
                        .bind::<Array<diesel::sql_types::Uuid>, _>(ids)
                        .get_result::<Count>(&mut conn);
                    if left.await?.n == 0 {
                        break;
                    }
                    tokio::time::sleep(POLL_INTERVAL).await;
                }
            }
            anyhow::Ok(())
        };
        tokio::time::timeout(TIMEOUT, settled).await.context("the deliveries are not settled")?
    }

    /// When messages first arrived, after the first `number` requests.
    pub(super) async fn arrivals(&self, number: u64) -> anyhow::Result<HashMap<Uuid, Timestamp>> {
        let mut arrived = HashMap::new();
        for arrival in self.sandbox.arrivals_after(number).await? {
            arrived.entry(arrival.message_id.parse()?).or_insert(arrival.at);
        }
        Ok(arrived)
    }
}

impl Burst {
    pub(super) fn report(&self, report: &mut Report, name: &str) {
        let rate = count(self.messages) / self.elapsed.as_secs_f64();
        report.figure(&format!("{name}.per_second"), rate, "deliveries/s");
        self.cost.report(report, name);
    }
}

/// The times from given points to the arrivals.
fn latencies(
    arrivals: &HashMap<Uuid, Timestamp>,
    from: impl IntoIterator<Item = (Uuid, Timestamp)>,
    elapsed: Duration,
) -> anyhow::Result<Round> {
    let latencies = from.into_iter().map(|(id, from)| {
        let arrived = arrivals.get(&id).with_context(|| format!("{id} did not arrive"))?;
        // The engine may send a message before the writer has read the clock.
        Ok((*arrived - from).to_std().unwrap_or_default())
    });
    Ok(Round::new(latencies.collect::<anyhow::Result<_>>()?, elapsed))
}
