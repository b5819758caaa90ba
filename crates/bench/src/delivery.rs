//! The webhook engine beside a bare loop that consumes, posts and acknowledges.
//!
//! The engine runs in a process of its own, so that its CPU time can be told from PostgreSQL's and
//! RabbitMQ's; the merchants are paths of one sandbox, which answers at once unless told to hang.

mod cost;
mod deliverer;
mod history;
mod merchants;

use std::time::{Duration, Instant};

use anyhow::Context as _;
use platform::database::Pool;
use reqwest::Client;
use testkit::{Database, Namespace};

use self::{
    cost::{Cost, Meter},
    merchants::{Wanted, Written},
};
use crate::{process::Program, report::Report};

pub(crate) use deliverer::{bare, serve};

const DELIVERIES: usize = 20_000;
/// At 50 a second.
const PACED: usize = 1_000;
const PACE: Duration = Duration::from_millis(20);
const PATIENCE: Duration = Duration::from_secs(180);
/// The bars.
const MOST_CPU_MS: f64 = 0.4;
const MOST_BARE_LOOPS: f64 = 4.0;
const LEAST_RATE_KEPT: f64 = 0.9;
const MOST_P99_GROWTH: f64 = 1.2;
/// In percent, with a full log.
const MOST_GROWTH: f64 = 10.0;

/// The engine, its servers, and ten merchants.
struct Bench {
    pool: Pool,
    sandbox: Program,
    engine: Program,
    client: Client,
    meter: Meter,
}

pub(crate) async fn run() -> anyhow::Result<Report> {
    let (database, namespace) =
        (Database::create(deliverer::migrations()).await, Namespace::create());
    let sandbox = deliverer::start_sandbox().await?;
    merchants::introduce(&database, &sandbox.url).await?;
    let engine = deliverer::start(&database, &namespace).await?;
    let meter = Meter::find(&database).await?;
    let client = platform::http_client(PATIENCE)?;
    let bench = Bench { pool: database.pool(), sandbox, engine, client, meter };
    let mut report = Report::default();
    bench.flood(&mut Report::default(), "warm_up", 0).await?;
    let (rate, cost) = bench.flood(&mut report, "all_well", 0).await?;
    let bare = bench.bare_loop(&mut report, &namespace).await?;
    report.at_most("all_well.cpu.all", cost.all_ms(), MOST_CPU_MS, "CPU-ms each");
    let loops = cost.all_ms() / bare.all_ms();
    report.at_most("all_well.cpu_in_bare_loops", loops, MOST_BARE_LOOPS, "bare loops");
    let p99 = bench.pace(&mut report, "all_well", 0).await?;
    history::fill(&bench.pool).await?;
    let (_, later) = bench.flood(&mut report, "ten_million_settled", 0).await?;
    let growth = (later.all_ms() / cost.all_ms() - 1.0) * 100.0;
    report.at_most("ten_million_settled.cpu_growth", growth, MOST_GROWTH, "%");
    history::forget(&bench.pool).await?;
    for (name, hanging) in [("one_hangs", 1), ("five_hang", 5)] {
        merchants::hang(&bench.client, &bench.sandbox.url, hanging).await?;
        bench.write(Wanted::sick(hanging * 100, hanging)).await?;
        merchants::await_probing(&bench.pool, hanging, PATIENCE).await;
        let (kept, _) = bench.flood(&mut report, name, hanging).await?;
        let share = count(merchants::MERCHANTS - hanging) / count(merchants::MERCHANTS);
        let kept = kept / (rate * share);
        report.at_least(&format!("{name}.rate_kept"), kept, LEAST_RATE_KEPT, "of each one's rate");
        let slowest = bench.pace(&mut report, name, hanging).await?;
        report.at_most(&format!("{name}.p99_growth"), slowest / p99, MOST_P99_GROWTH, "times");
    }
    Ok(report)
}

impl Bench {
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
        let messages = DELIVERIES * (merchants::MERCHANTS - hanging) / merchants::MERCHANTS;
        let before = self.meter.read(&self.engine)?;
        let begun = Instant::now();
        self.write(Wanted::healthy(messages, hanging)).await?;
        merchants::await_settled(&self.pool, hanging, PATIENCE).await?;
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
            let merchant = hanging + number % (merchants::MERCHANTS - hanging);
            let one = Wanted { messages: 1, from: merchant, to: merchant + 1 };
            committed.push(self.write(one).await?);
        }
        merchants::await_settled(&self.pool, hanging, PATIENCE).await?;
        let arrived = merchants::arrivals(&self.client, &self.sandbox.url).await?;
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

    async fn bare_loop(&self, report: &mut Report, namespace: &Namespace) -> anyhow::Result<Cost> {
        let program = deliverer::start_bare(namespace, &self.sandbox.url, DELIVERIES).await?;
        let before = self.meter.read_bare(&program)?;
        let begun = Instant::now();
        self.client.post(format!("{}/go", program.url)).send().await?.error_for_status()?;
        let took = begun.elapsed();
        let cost = self.meter.read_bare(&program)?.since(&before, DELIVERIES);
        report.figure("bare_loop.per_second", count(DELIVERIES) / took.as_secs_f64(), "posts/s");
        report.figure("bare_loop.cpu.all", cost.all_ms(), "CPU-ms each");
        Ok(cost)
    }
}

fn count(number: usize) -> f64 {
    f64::from(u32::try_from(number).unwrap_or(u32::MAX))
}
