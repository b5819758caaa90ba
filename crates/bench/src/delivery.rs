//! The delivery engine, compared with a loop that consumes, posts and acknowledges.
//!
//! The engine runs in its own process, so that its CPU time can be measured. The merchants are paths of one
//! sandbox, which responds at once unless it is configured to hang.

mod cpu;
mod history;
mod processes;
mod test_merchants;

use std::time::{Duration, Instant};

use anyhow::Context as _;
use platform::database::Pool;
use reqwest::Client;
use testkit::{Database, Namespace};

use self::{
    cpu::{CpuCost, CpuMeter},
    test_merchants::{WriteRequest, WriteResponse},
};
use crate::{process::Program, report::Report};

pub(crate) use processes::{run_bare_loop, run_engine};

const DELIVERIES: usize = 20_000;
/// Messages written one by one, at 50 per second.
const PACED_MESSAGES: usize = 2_000;
const PACE: Duration = Duration::from_millis(20);
const TIMEOUT: Duration = Duration::from_secs(180);
const MAX_CPU_MS: f64 = 0.4;
const MAX_BARE_LOOPS: f64 = 4.0;
const MIN_RATE_KEPT: f64 = 0.9;
const MAX_P99_GROWTH: f64 = 1.2;
/// In percent, with ten million settled messages.
const MAX_GROWTH: f64 = 10.0;

/// A part of the benchmark.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Part {
    /// Compared with the bare loop
    Cost,
    /// With ten million settled messages
    History,
    /// With endpoints that hang
    Hanging,
}

/// The engine, its servers and ten merchants.
struct Bench {
    namespace: Namespace,
    pool: Pool,
    sandbox: Program,
    engine: Program,
    client: Client,
    meter: CpuMeter,
    /// Deleted when dropped.
    _database: Database,
}

pub(crate) async fn run(only: Option<Part>) -> anyhow::Result<Report> {
    let selected = |part| only.is_none_or(|only| only == part);
    let bench = Bench::start().await?;
    let mut report = Report::default();
    bench.flood(&mut Report::default(), "warm_up", 0).await?;
    let (_, cost) = bench.flood(&mut report, "all_well", 0).await?;
    report.at_most("all_well.cpu.all", cost.all_ms(), MAX_CPU_MS, "CPU-ms each");
    if selected(Part::Cost) {
        bench.compare_with_bare_loop(&mut report, cost).await?;
    }
    bench.pace(&mut report, "all_well", 0).await?;
    if selected(Part::History) {
        bench.with_history(&mut report, cost).await?;
    }
    if selected(Part::Hanging) {
        bench.with_hanging(&mut report).await?;
    }
    Ok(report)
}

impl Bench {
    async fn start() -> anyhow::Result<Self> {
        let (database, namespace) =
            (Database::create(processes::migrations()).await, Namespace::create());
        let sandbox = processes::start_sandbox().await?;
        test_merchants::create(&database, &sandbox.url).await?;
        let engine = processes::start(&database, &namespace).await?;
        let meter = CpuMeter::find(&database).await?;
        let (pool, client) = (database.pool(), platform::http_client(TIMEOUT)?);
        Ok(Self { namespace, pool, sandbox, engine, client, meter, _database: database })
    }

    /// Compares the CPU time with the bare loop. Two more figures include publishing, or use batched
    /// acknowledgements.
    async fn compare_with_bare_loop(
        &self,
        report: &mut Report,
        cost: CpuCost,
    ) -> anyhow::Result<()> {
        let program =
            processes::start_bare_loop(&self.namespace, &self.sandbox.url, DELIVERIES).await?;
        let (publishing, each) = self.run_bare_loop(&program, "consume").await?;
        let (_, together) = self.run_bare_loop(&program, "consume_batched").await?;
        let [publish, each, together] = [publishing, each, together].map(|cost| cost.all_ms());
        report.figure("bare_loop.cpu.publish", publish, "CPU-ms each");
        report.figure("bare_loop.cpu.consume_post_ack", each, "CPU-ms each");
        report.figure("bare_loop.cpu.acknowledged_together", together, "CPU-ms each");
        let all = cost.all_ms();
        report.at_most("all_well.cpu_in_bare_loops", all / each, MAX_BARE_LOOPS, "bare loops");
        report.figure("all_well.cpu_in_published_loops", all / (publish + each), "with publishing");
        report.figure("all_well.cpu_in_cheapest_loops", all / together, "acknowledged together");
        Ok(())
    }

    async fn with_history(&self, report: &mut Report, before: CpuCost) -> anyhow::Result<()> {
        history::fill(&self.pool).await?;
        let (_, cost) = self.flood(report, "ten_million_settled", 0).await?;
        let growth = (cost.all_ms() / before.all_ms() - 1.0) * 100.0;
        report.at_most("ten_million_settled.cpu_growth", growth, MAX_GROWTH, "%");
        history::delete(&self.pool).await
    }

    /// Compares rate and latency of the healthy merchants before and after the others hang.
    async fn with_hanging(&self, report: &mut Report) -> anyhow::Result<()> {
        const HANGING: [(&str, usize); 2] = [("one_hangs", 1), ("five_hang", 5)];
        let mut before = Vec::with_capacity(HANGING.len());
        for (name, hanging) in HANGING {
            let name = format!("{name}.before");
            let (rate, _) = self.flood(report, &name, hanging).await?;
            before.push((rate, self.pace(report, &name, hanging).await?));
        }
        for ((name, hanging), (before, p99)) in HANGING.into_iter().zip(before) {
            test_merchants::hang(&self.client, &self.sandbox.url, hanging).await?;
            self.write(WriteRequest::hanging(hanging * 100, hanging)).await?;
            test_merchants::await_probing(&self.pool, hanging, TIMEOUT).await;
            let (rate, _) = self.flood(report, name, hanging).await?;
            let kept = rate / before;
            report.at_least(&format!("{name}.rate_kept"), kept, MIN_RATE_KEPT, "of their rate");
            let slowest = self.pace(report, name, hanging).await?;
            report.at_most(&format!("{name}.p99_growth"), slowest / p99, MAX_P99_GROWTH, "times");
        }
        Ok(())
    }

    async fn write(&self, request: WriteRequest) -> anyhow::Result<WriteResponse> {
        let url = format!("{}/write", self.engine.url);
        let response = self.client.post(url).json(&request).send().await?;
        Ok(response.error_for_status()?.json().await?)
    }

    /// Writes messages to all healthy merchants and waits until they are delivered. The number of messages
    /// per merchant is always the same.
    async fn flood(
        &self,
        report: &mut Report,
        name: &str,
        hanging: usize,
    ) -> anyhow::Result<(f64, CpuCost)> {
        let messages =
            DELIVERIES * (test_merchants::MERCHANTS - hanging) / test_merchants::MERCHANTS;
        let before = self.meter.read(&self.engine)?;
        let started = Instant::now();
        self.write(WriteRequest::healthy(messages, hanging)).await?;
        test_merchants::await_settled(&self.pool, hanging, TIMEOUT).await?;
        let elapsed = started.elapsed();
        let cost = self.meter.read(&self.engine)?.since(&before, messages);
        let rate = count(messages) / elapsed.as_secs_f64();
        report.figure(&format!("{name}.per_second"), rate, "deliveries/s");
        cost.report(report, name);
        Ok((rate, cost))
    }

    /// Writes messages one by one and measures the time until each arrives.
    async fn pace(&self, report: &mut Report, name: &str, hanging: usize) -> anyhow::Result<f64> {
        let mut responses = Vec::with_capacity(PACED_MESSAGES);
        let mut ticks = tokio::time::interval(PACE);
        for number in 0..PACED_MESSAGES {
            ticks.tick().await;
            let merchant = hanging + number % (test_merchants::MERCHANTS - hanging);
            let one = WriteRequest { messages: 1, from: merchant, to: merchant + 1 };
            responses.push(self.write(one).await?);
        }
        test_merchants::await_settled(&self.pool, hanging, TIMEOUT).await?;
        let arrived = test_merchants::arrivals(&self.client, &self.sandbox.url).await?;
        let mut latencies = Vec::with_capacity(PACED_MESSAGES);
        for WriteResponse { last, committed_at } in responses {
            let arrived = arrived.get(&last).with_context(|| format!("{last} did not arrive"))?;
            latencies.push((*arrived - committed_at).as_seconds_f64().max(0.0) * 1e3);
        }
        latencies.sort_by(f64::total_cmp);
        let at = |index: usize| latencies.get(index).copied().unwrap_or_default();
        let (p50, p99) = (at(PACED_MESSAGES / 2), at(PACED_MESSAGES * 99 / 100));
        report.figure(&format!("{name}.p50"), p50, "ms from commit to arrival");
        report.figure(&format!("{name}.p99"), p99, "ms from commit to arrival");
        Ok(p99)
    }

    /// The CPU time of publishing, and of consuming, posting and acknowledging.
    async fn run_bare_loop(
        &self,
        program: &Program,
        command: &str,
    ) -> anyhow::Result<(CpuCost, CpuCost)> {
        let call = async |command| {
            let url = format!("{}/{command}", program.url);
            self.client.post(url).send().await?.error_for_status()
        };
        let before = self.meter.read_bare(program)?;
        call("publish").await?;
        let published = self.meter.read_bare(program)?;
        call(command).await?;
        let consuming = self.meter.read_bare(program)?.since(&published, DELIVERIES);
        Ok((published.since(&before, DELIVERIES), consuming))
    }
}

fn count(number: usize) -> f64 {
    f64::from(u32::try_from(number).unwrap_or(u32::MAX))
}
