//! Deliveries beside many merchants whose messages wait for a retry, and one with a long backlog.
//!
//! Every merchant has three messages that are due in an hour. One merchant hangs and has the backlog. The ten
//! merchants that receive messages are the same as in the run without the others.

use std::{sync::Arc, time::Duration};

use domain::message_kind::MessageKind;
use testkit::Namespace;

use super::{
    fixture::{DEFAULT_SETTINGS, Fixture},
    history, test_merchants,
    writes::WriteRequest,
};
use crate::{
    cpu::CpuCost,
    report::Report,
    size::{Size, count},
};

const LEVELS: [usize; 4] = [10, 1_000, 10_000, 100_000];
const WAITING_PER_MERCHANT: usize = 3;
const BACKLOG: usize = 1_000_000;
/// Messages of one request that fills a table.
const FILL_SIZE: usize = 20_000;
const DELIVERIES: usize = 20_000;
const PACED_MESSAGES: usize = 1_000;
/// Polls of an engine without work, at short intervals, so that its other work hardly counts. The interval grows to
/// ten times the setting.
const POLL_SETTINGS: [(&str, &str); 2] =
    [("DELIVERY__ATTEMPT_TIMEOUT", "5s"), ("DELIVERY__POLL_INTERVAL", "1ms")];
const POLL_INTERVAL: Duration = Duration::from_millis(10);
const POLL_PERIOD: Duration = Duration::from_secs(10);

/// CPU time of a delivery and the 99th percentile, which the others must keep.
struct Plain {
    cost: CpuCost,
    p99: f64,
}

pub(super) async fn run(report: &mut Report, size: Size) -> anyhow::Result<()> {
    let namespace = Arc::new(Namespace::create());
    let mut fixture = Fixture::start(namespace, &DEFAULT_SETTINGS).await?;
    fixture.write_batched(size.items(DELIVERIES)).await?;
    let plain = measure(&fixture, report, "merchants.plain", size).await?;
    let backlog = size.items(LEVELS.into_iter().max().unwrap_or_default());
    add_backlog(&fixture, backlog, size.items(BACKLOG)).await?;
    let mut known = 10;
    fill(&fixture, 0..known * WAITING_PER_MERCHANT, 0..known, true).await?;
    for level in LEVELS {
        let (name, merchants) = (format!("merchants.at_{level}"), size.items(level));
        let new = known..merchants.max(known);
        if !new.is_empty() {
            let kinds = [MessageKind::Rma];
            test_merchants::create(&fixture.pool, &fixture.sandbox, new.clone(), &kinds).await?;
            fill(&fixture, 0..new.len() * WAITING_PER_MERCHANT, new.clone(), true).await?;
            known = new.end;
        }
        history::vacuum(&fixture.pool).await?;
        let ready = fixture.restart(&DEFAULT_SETTINGS).await?;
        report.figure(&format!("{name}.ready"), ready.as_secs_f64(), "s");
        // The start of the process costs more with more merchants, and is not part of a delivery.
        fixture.write_batched(size.items(DELIVERIES)).await?;
        let Plain { cost, p99 } = measure(&fixture, report, &name, size).await?;
        report.figure(&format!("{name}.cpu_growth"), cost.growth(&plain.cost), "%");
        report.figure(&format!("{name}.p99_growth"), p99 / plain.p99, "times");
        report.figure(&format!("{name}.memory"), fixture.engine.memory()?.0, "MiB");
        let poll = poll_cpu(&mut fixture, size).await?;
        report.figure(&format!("{name}.poll_cpu"), poll, "CPU-us each");
    }
    Ok(())
}

async fn measure(
    fixture: &Fixture,
    report: &mut Report,
    name: &str,
    size: Size,
) -> anyhow::Result<Plain> {
    let burst = fixture.write_batched(size.items(DELIVERIES)).await?;
    burst.report(report, name);
    let paced = fixture.pace(size.items(PACED_MESSAGES)).await?;
    report.latencies(&format!("{name}.commit_to_arrival"), &paced.from_commit);
    Ok(Plain { cost: burst.cost, p99: paced.from_commit.millis(0.99) })
}

/// Creates the merchant that hangs, and its backlog.
async fn add_backlog(fixture: &Fixture, merchant: usize, messages: usize) -> anyhow::Result<()> {
    let merchants = merchant..merchant + 1;
    fixture.sandbox.hang(merchants.clone()).await?;
    let kinds = [MessageKind::Rma];
    test_merchants::create(&fixture.pool, &fixture.sandbox, merchants.clone(), &kinds).await?;
    fill(fixture, 0..messages, merchants, false).await
}

/// Writes messages that the engine does not deliver.
async fn fill(
    fixture: &Fixture,
    numbers: std::ops::Range<usize>,
    merchants: std::ops::Range<usize>,
    is_waiting: bool,
) -> anyhow::Result<()> {
    for from in numbers.clone().step_by(FILL_SIZE * 2) {
        // Two requests at once use both cores.
        let part = |from: usize| {
            let numbers = from..(from + FILL_SIZE).min(numbers.end);
            let request = WriteRequest::new(numbers, merchants.clone());
            let request = WriteRequest { is_waiting, is_empty: true, ..request };
            async move { fixture.write(&request).await.map(drop) }
        };
        tokio::try_join!(part(from), part((from + FILL_SIZE).min(numbers.end)))?;
    }
    Ok(())
}

/// CPU time of a poll of the dispatcher when nothing is due: that of the engine and PostgreSQL over some time
/// without writes, divided by the number of polls.
async fn poll_cpu(fixture: &mut Fixture, size: Size) -> anyhow::Result<f64> {
    fixture.restart(&POLL_SETTINGS).await?;
    let period = size.time(POLL_PERIOD);
    tokio::time::sleep(period / 2).await;
    let before = fixture.meter.read([&fixture.engine])?;
    tokio::time::sleep(period).await;
    let cost = fixture.meter.read([&fixture.engine])?.since(&before, 1);
    let polls = period.as_secs_f64() / POLL_INTERVAL.as_secs_f64();
    anyhow::ensure!(polls > count(1), "the period is too short");
    Ok((cost.all() - cost.rabbitmq()) / polls)
}
