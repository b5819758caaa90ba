//! Projection of orders from the event queue, alone and while order-intake receives them; returns and carrier
//! events over 32 connections, with a paused endpoint and until their messages are delivered.

mod engine_process;
mod request_to_delivery;

use std::time::{Duration, Instant};

use self::engine_process::{CONNECTIONS, Engine};
use self::request_to_delivery::RequestToDelivery;
use crate::cpu::CpuMeter;
use crate::intake_process::Intake;
use crate::raw_http::drive;
use crate::report::Report;
use crate::size::Size;
use crate::totals::{Totals, micros};

/// Orders per round.
const ORDERS: usize = 16_000;
/// Returns per round, each of one unit of its own order.
const RETURNS: usize = 8_000;

pub(crate) async fn run(size: Size) -> anyhow::Result<Report> {
    let mut intake = Intake::start().await?;
    let mut engine = Engine::start(&intake).await?;
    let mut report = Report::default();
    project(&mut report, &mut intake, &mut engine, size.items(ORDERS)).await?;

    let returns = size.items(RETURNS);
    let requests = engine.return_requests(&mut intake, returns).await?;
    let meter = CpuMeter::find().await?;
    let before = meter.read([&engine.program])?;
    let round = drive(engine.program.address(), CONNECTIONS, requests).await?;
    let cost = meter.read([&engine.program])?.since(&before, returns);
    report.figure("started.per_second", round.rate(), "returns/s");
    cost.report(&mut report, "started");
    report.latencies("started.response", &round);

    let benchmark = RequestToDelivery::start(&intake, &mut engine, returns * 3).await?;
    let requests = engine.return_requests(&mut intake, returns).await?;
    benchmark.run(&mut report, &mut engine, requests).await?;
    let (now, highest) = engine.program.memory()?;
    report.figure("memory", now, "MiB");
    report.figure("memory_highest", highest, "MiB");
    Ok(report)
}

async fn project(
    report: &mut Report,
    intake: &mut Intake,
    engine: &mut Engine,
    orders: usize,
) -> anyhow::Result<()> {
    // The queue is filled first, so that only the projection is measured.
    let requests = intake.requests(orders, 1);
    let alone = drive(&intake.address, CONNECTIONS, requests).await?;
    let (projected, own) = engine.project(intake, orders).await?;
    let (own, postgres) = (micros(own) / projected.items, projected.postgres_cpu_micros());
    report.figure("projection.per_second", projected.rate(), "orders/s");
    report.figure("projection.cpu", own + postgres, "CPU-us each");
    report.figure("projection.cpu.service", own, "CPU-us each");
    report.figure("projection.cpu.postgres", postgres, "CPU-us each");

    // The engine must keep up with the intake.
    let before = engine.projected_orders().await?;
    let requests = intake.requests(orders, 1);
    let started = Instant::now();
    let together = drive(&intake.address, CONNECTIONS, requests).await?;
    engine.await_orders(before + i64::try_from(orders)?).await?;
    let mut projected = Totals::default();
    projected.add(together.requests(), started.elapsed(), Duration::ZERO);
    report.figure("intake.per_second_alone", alone.rate(), "orders/s");
    report.figure("intake.per_second", together.rate(), "orders/s");
    report.figure("projection.per_second_beside_intake", projected.rate(), "orders/s");
    report.figure("keeps_up", projected.rate() / together.rate(), "projection/intake");
    Ok(())
}
