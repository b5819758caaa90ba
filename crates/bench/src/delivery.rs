//! The webhook engine beside a bare loop that consumes, posts and acknowledges.
//!
//! The engine runs in a process of its own, so that its CPU time can be told from PostgreSQL's and
//! RabbitMQ's; the merchants are paths of one sandbox, which answers at once unless told to hang.

mod cost;
mod deliverer;
mod history;
mod test_merchants;

use std::time::{Duration, Instant};

use anyhow::Context as _;
use platform::database::Pool;
use reqwest::Client;
use testkit::{Database, Namespace};

use self::{
    cost::{Cost, Meter},
    test_merchants::{Wanted, Written},
};
use crate::{process::Program, report::Report};

pub(crate) use deliverer::{bare, serve};

const DELIVERIES: usize = 20_000;
/// At 50 a second.
const PACED: usize = 2_000;
const PACE: Duration = Duration::from_millis(20);
const PATIENCE: Duration = Duration::from_secs(180);
/// The bars.
const MOST_CPU_MS: f64 = 0.4;
const MOST_BARE_LOOPS: f64 = 4.0;
const LEAST_RATE_KEPT: f64 = 0.9;
const MOST_P99_GROWTH: f64 = 1.2;
/// In percent, with a full log.
const MOST_GROWTH: f64 = 10.0;

/// What can be measured alone.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Part {
    /// Beside the bare loop
    Cost,
    /// With ten million settled messages
    History,
    /// With endpoints that hang
    Hanging,
}

/// The engine, its servers, and ten merchants.
struct Bench {
    namespace: Namespace,
    pool: Pool,
    sandbox: Program,
    engine: Program,
    client: Client,
    meter: Meter,
    /// Goes when this goes.
    _database: Database,
}

pub(crate) async fn run(only: Option<Part>) -> anyhow::Result<Report> {
    let wanted = |part| only.is_none_or(|only| only == part);
    let bench = Bench::start().await?;
    let mut report = Report::default();
    bench.flood(&mut Report::default(), "warm_up", 0).await?;
    let (_, cost) = bench.flood(&mut report, "all_well", 0).await?;
    report.at_most("all_well.cpu.all", cost.all_ms(), MOST_CPU_MS, "CPU-ms each");
    if wanted(Part::Cost) {
        bench.beside_bare_loop(&mut report, cost).await?;
    }
    bench.pace(&mut report, "all_well", 0).await?;
    if wanted(Part::History) {
        bench.with_history(&mut report, cost).await?;
    }
    if wanted(Part::Hanging) {
        bench.with_hanging(&mut report).await?;
    }
    Ok(report)
}

impl Bench {
    async fn start() -> anyhow::Result<Self> {
        let (database, namespace) =
            (Database::create(deliverer::migrations()).await, Namespace::create());
        let sandbox = deliverer::start_sandbox().await?;
        test_merchants::introduce(&database, &sandbox.url).await?;
        let engine = deliverer::start(&database, &namespace).await?;
        let meter = Meter::find(&database).await?;
        let (pool, client) = (database.pool(), platform::http_client(PATIENCE)?);
        Ok(Self { namespace, pool, sandbox, engine, client, meter, _database: database })
    }

    /// The bare loop consumes, posts and acknowledges. What it costs with its messages published, and
    /// at its cheapest, is shown beside it.
    async fn beside_bare_loop(&self, report: &mut Report, cost: Cost) -> anyhow::Result<()> {
        let program = deliverer::start_bare(&self.namespace, &self.sandbox.url, DELIVERIES).await?;
        let (publishing, each) = self.bare_loop(&program, "go").await?;
        let (_, together) = self.bare_loop(&program, "go_together").await?;
        let [publish, each, together] = [publishing, each, together].map(|cost| cost.all_ms());
        report.figure("bare_loop.cpu.publish", publish, "CPU-ms each");
        report.figure("bare_loop.cpu.consume_post_ack", each, "CPU-ms each");
        report.figure("bare_loop.cpu.acknowledged_together", together, "CPU-ms each");
        let all = cost.all_ms();
        report.at_most("all_well.cpu_in_bare_loops", all / each, MOST_BARE_LOOPS, "bare loops");
        report.figure("all_well.cpu_in_published_loops", all / (publish + each), "with publishing");
        report.figure("all_well.cpu_in_cheapest_loops", all / together, "acknowledged together");
        Ok(())
    }

    async fn with_history(&self, report: &mut Report, before: Cost) -> anyhow::Result<()> {
        history::fill(&self.pool).await?;
        let (_, cost) = self.flood(report, "ten_million_settled", 0).await?;
        let growth = (cost.all_ms() / before.all_ms() - 1.0) * 100.0;
        report.at_most("ten_million_settled.cpu_growth", growth, MOST_GROWTH, "%");
        history::forget(&self.pool).await
    }

    /// The healthy merchants' rate and latency are compared with what the same ones had before the
    /// others hung.
    async fn with_hanging(&self, report: &mut Report) -> anyhow::Result<()> {
        const SICK: [(&str, usize); 2] = [("one_hangs", 1), ("five_hang", 5)];
        let mut before = Vec::with_capacity(SICK.len());
        for (name, hanging) in SICK {
            let name = format!("{name}.before");
            let (rate, _) = self.flood(report, &name, hanging).await?;
            before.push((rate, self.pace(report, &name, hanging).await?));
        }
        for ((name, hanging), (before, p99)) in SICK.into_iter().zip(before) {
            test_merchants::hang(&self.client, &self.sandbox.url, hanging).await?;
            self.write(Wanted::sick(hanging * 100, hanging)).await?;
            test_merchants::await_probing(&self.pool, hanging, PATIENCE).await;
            let (rate, _) = self.flood(report, name, hanging).await?;
            let kept = rate / before;
            report.at_least(&format!("{name}.rate_kept"), kept, LEAST_RATE_KEPT, "of their rate");
            let slowest = self.pace(report, name, hanging).await?;
            report.at_most(&format!("{name}.p99_growth"), slowest / p99, MOST_P99_GROWTH, "times");
        }
        Ok(())
    }

    async fn write(&self, wanted: Wanted) -> anyhow::Result<Written> {
        let url = format!("{}/write", self.engine.url);
        let answer = self.client.post(url).json(&wanted).send().await?;
        Ok(answer.error_for_status()?.json().await?)
    }

    /// Writes as many messages to each healthy merchant as ever and waits until they have them all.
    async fn flood(
        &self,
        report: &mut Report,
        name: &str,
        hanging: usize,
    ) -> anyhow::Result<(f64, Cost)> {
        let messages =
            DELIVERIES * (test_merchants::MERCHANTS - hanging) / test_merchants::MERCHANTS;
        let before = self.meter.read(&self.engine)?;
        let begun = Instant::now();
        self.write(Wanted::healthy(messages, hanging)).await?;
        test_merchants::await_settled(&self.pool, hanging, PATIENCE).await?;
        let took = begun.elapsed();
        let cost = self.meter.read(&self.engine)?.since(&before, messages);
        let rate = count(messages) / took.as_secs_f64();
        report.figure(&format!("{name}.per_second"), rate, "deliveries/s");
        cost.report(report, name);
        Ok((rate, cost))
    }

    /// Writes messages one by one and looks how long each takes to arrive.
    async fn pace(&self, report: &mut Report, name: &str, hanging: usize) -> anyhow::Result<f64> {
        let mut committed = Vec::with_capacity(PACED);
        let mut ticks = tokio::time::interval(PACE);
        for number in 0..PACED {
            ticks.tick().await;
            let merchant = hanging + number % (test_merchants::MERCHANTS - hanging);
            let one = Wanted { messages: 1, from: merchant, to: merchant + 1 };
            committed.push(self.write(one).await?);
        }
        test_merchants::await_settled(&self.pool, hanging, PATIENCE).await?;
        let arrived = test_merchants::arrivals(&self.client, &self.sandbox.url).await?;
        let mut latencies = Vec::with_capacity(PACED);
        for Written { last, committed_at } in committed {
            let arrived = arrived.get(&last).with_context(|| format!("{last} did not arrive"))?;
            latencies.push((*arrived - committed_at).as_seconds_f64().max(0.0) * 1e3);
        }
        latencies.sort_by(f64::total_cmp);
        let at = |index: usize| latencies.get(index).copied().unwrap_or_default();
        let (p50, p99) = (at(PACED / 2), at(PACED * 99 / 100));
        report.figure(&format!("{name}.p50"), p50, "ms from commit to arrival");
        report.figure(&format!("{name}.p99"), p99, "ms from commit to arrival");
        Ok(p99)
    }

    /// What publishing costs, and what consuming, posting and acknowledging in such a way does.
    async fn bare_loop(&self, program: &Program, way: &str) -> anyhow::Result<(Cost, Cost)> {
        let tell = async |word| {
            let told = self.client.post(format!("{}/{word}", program.url)).send().await?;
            told.error_for_status()
        };
        let before = self.meter.read_bare(program)?;
        tell("fill").await?;
        let filled = self.meter.read_bare(program)?;
        tell(way).await?;
        let consuming = self.meter.read_bare(program)?.since(&filled, DELIVERIES);
        Ok((filled.since(&before, DELIVERIES), consuming))
    }
}

fn count(number: usize) -> f64 {
    f64::from(u32::try_from(number).unwrap_or(u32::MAX))
}
