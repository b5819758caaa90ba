//! The delivery engine, compared with a loop that consumes, posts and acknowledges.
//!
//! The engine runs in its own process, so that its CPU time can be measured. The merchants are paths of one
//! sandbox, which responds at once unless it is configured to hang.

mod bare_loop;
mod engine_process;
mod fixture;
mod history;
mod merchants;
mod slow;
mod test_merchants;
mod writes;

use std::sync::Arc;

use testkit::Namespace;

use self::fixture::{Burst, TEN};
use crate::{process::Program, report::Report, size::Size};

pub(crate) use bare_loop::run_bare_loop;
pub(crate) use engine_process::run_engine;
pub(crate) use fixture::{DEFAULT_SETTINGS, Fixture};

const DELIVERIES: usize = 20_000;
/// Messages written one by one, at 50 per second.
const PACED_MESSAGES: usize = 1_500;
/// Messages that were settled earlier.
const HISTORY: usize = 4_000_000;

/// A part of the benchmark.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Part {
    /// Messages written in batches, compared with the bare loop
    Batched,
    /// One message per request, with 32 writers
    OneByOne,
    /// 50 messages per second
    Paced,
    /// With millions of settled messages
    History,
    /// With up to 100,000 merchants that wait
    Merchants,
    /// With merchants that become slow
    Slow,
}

pub(crate) async fn run(size: Size, only: Option<Part>) -> anyhow::Result<Report> {
    let selected = |part| only.is_none_or(|only| only == part);
    let mut report = Report::default();
    let shares_fixture = [Part::Batched, Part::OneByOne, Part::Paced, Part::History];
    if shares_fixture.into_iter().any(selected) {
        let fixture = Fixture::start(Arc::new(Namespace::create()), &DEFAULT_SETTINGS).await?;
        let messages = size.items(DELIVERIES);
        fixture.write_batched(messages).await?;
        if selected(Part::Batched) {
            let burst = fixture.write_batched(messages).await?;
            burst.report(&mut report, "batched");
            compare_with_bare_loop(&fixture, &mut report, &burst, messages).await?;
        }
        if selected(Part::OneByOne) {
            one_by_one(&fixture, &mut report, messages).await?;
        }
        if selected(Part::Paced) {
            paced(&fixture, &mut report, size.items(PACED_MESSAGES)).await?;
        }
        if selected(Part::History) {
            with_history(&fixture, &mut report, size).await?;
        }
    }
    if selected(Part::Merchants) {
        merchants::run(&mut report, size).await?;
    }
    if selected(Part::Slow) {
        slow::run(&mut report, size).await?;
    }
    Ok(report)
}

/// Compares the CPU time with the bare loop. Two more figures include publishing, or use batched
/// acknowledgements.
async fn compare_with_bare_loop(
    fixture: &Fixture,
    report: &mut Report,
    burst: &Burst,
    messages: usize,
) -> anyhow::Result<()> {
    let (namespace, url) = (&fixture.namespace, fixture.sandbox.url());
    let program = bare_loop::start(namespace, url, messages).await?;
    let (publish, each) = run_bare_loop_once(fixture, &program, "consume", messages).await?;
    let (_, together) = run_bare_loop_once(fixture, &program, "consume_batched", messages).await?;
    report.figure("bare_loop.cpu.publish", publish, "CPU-us each");
    report.figure("bare_loop.cpu.consume_post_ack", each, "CPU-us each");
    report.figure("bare_loop.cpu.acknowledged_together", together, "CPU-us each");
    let all = burst.cost.all();
    report.figure("batched.cpu_in_bare_loops", all / each, "bare loops");
    report.figure("batched.cpu_in_published_loops", all / (publish + each), "with publishing");
    report.figure("batched.cpu_in_cheapest_loops", all / together, "acknowledged together");
    Ok(())
}

/// The CPU time of publishing, and of consuming, posting and acknowledging, without PostgreSQL.
async fn run_bare_loop_once(
    fixture: &Fixture,
    program: &Program,
    command: &str,
    messages: usize,
) -> anyhow::Result<(f64, f64)> {
    let before = fixture.meter.read([program])?;
    fixture.post(program, "publish").await?;
    let published = fixture.meter.read([program])?;
    fixture.post(program, command).await?;
    let consuming = fixture.meter.read([program])?.since(&published, messages);
    let publishing = published.since(&before, messages);
    Ok((publishing.all() - publishing.postgres(), consuming.all() - consuming.postgres()))
}

async fn one_by_one(fixture: &Fixture, report: &mut Report, messages: usize) -> anyhow::Result<()> {
    for (name, merchants) in [("ten_endpoints", TEN), ("one_endpoint", 0..1)] {
        let name = format!("one_by_one.{name}");
        let (burst, round) = fixture.write_one_by_one(messages, merchants).await?;
        burst.report(report, &name);
        report.latencies(&format!("{name}.commit_to_arrival"), &round);
    }
    Ok(())
}

async fn paced(fixture: &Fixture, report: &mut Report, messages: usize) -> anyhow::Result<()> {
    let paced = fixture.pace(messages).await?;
    report.latencies("paced.sent_to_arrival", &paced.from_request);
    report.latencies("paced.commit_to_arrival", &paced.from_commit);
    paced.cost.report(report, "paced");
    Ok(())
}

async fn with_history(fixture: &Fixture, report: &mut Report, size: Size) -> anyhow::Result<()> {
    let messages = size.items(DELIVERIES);
    let before = fixture.write_batched(messages).await?;
    history::fill(&fixture.pool, size.items(HISTORY)).await?;
    let burst = fixture.write_batched(messages).await?;
    burst.report(report, "history");
    report.figure("history.cpu_growth", burst.cost.growth(&before.cost), "%");
    Ok(())
}
