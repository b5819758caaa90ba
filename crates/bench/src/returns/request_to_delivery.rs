//! Requests to rma-engine until the merchant has received their messages: 32 connections, one endpoint.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use serde_json::Value;

use super::engine_process::{CONNECTIONS, Engine};
use crate::cpu::CpuMeter;
use crate::intake_process::Intake;
use crate::load::Round;
use crate::raw_http::{Response, send_all};
use crate::report::Report;
use crate::sandbox_process::Sandbox;

const TIMEOUT: Duration = Duration::from_secs(300);

pub(super) struct RequestToDelivery {
    sandbox: Sandbox,
    meter: CpuMeter,
}

impl RequestToDelivery {
    /// Resumes the merchant's endpoint, and waits until the messages of earlier returns are delivered.
    pub(super) async fn start(
        intake: &Intake,
        engine: &mut Engine,
        requests: usize,
    ) -> anyhow::Result<Self> {
        let benchmark =
            Self { sandbox: Sandbox::start(requests).await?, meter: CpuMeter::find().await? };
        engine.resume(intake, benchmark.sandbox.url()).await;
        benchmark.await_settled(engine).await?;
        Ok(benchmark)
    }

    /// Starts returns and reports a carrier event about each.
    pub(super) async fn run(
        &self,
        report: &mut Report,
        engine: &mut Engine,
        starts: Vec<Vec<u8>>,
    ) -> anyhow::Result<()> {
        let started = self.measure(report, "start_to_delivery", engine, starts).await?;
        let started = started.iter().map(|response| {
            let body: Value = serde_json::from_slice(&response.body)?;
            let rma_identifier = body.get("rma_identifier").and_then(Value::as_str);
            Ok(engine.carrier_event(rma_identifier.context("a return has no identifier")?))
        });
        let events = started.collect::<anyhow::Result<Vec<_>>>()?;
        self.measure(report, "carrier_event_to_delivery", engine, events).await?;
        Ok(())
    }

    /// Sends requests, each of which causes one message, and waits until the messages are delivered.
    async fn measure(
        &self,
        report: &mut Report,
        name: &str,
        engine: &mut Engine,
        requests: Vec<Vec<u8>>,
    ) -> anyhow::Result<Vec<Response>> {
        let (number, arrived) = (requests.len(), self.sandbox.total().await?);
        let (before, started) = (self.meter.read([&engine.program])?, Instant::now());
        let (responses, _) = send_all(engine.program.address(), CONNECTIONS, requests).await?;
        self.await_settled(engine).await?;
        let elapsed = started.elapsed();
        let cost = self.meter.read([&engine.program])?.since(&before, number);
        let round = self.round(&responses, arrived, elapsed).await?;
        report.figure(&format!("{name}.per_second"), round.rate(), "messages/s");
        cost.report(report, name);
        report.latencies(&format!("{name}.sent_to_arrival"), &round);
        Ok(responses)
    }

    /// The times from requests to the arrival of their messages. Both name the return.
    async fn round(
        &self,
        responses: &[Response],
        arrived: u64,
        elapsed: Duration,
    ) -> anyhow::Result<Round> {
        let arrivals = self.sandbox.arrivals_after(arrived).await?;
        let arrivals: HashMap<_, _> =
            arrivals.iter().filter_map(|arrival| Some((rma(&arrival.body)?, arrival.at))).collect();
        let latencies = responses.iter().map(|response| {
            let body: Value = serde_json::from_slice(&response.body)?;
            let identifier = rma(&body).context("a response names no return")?;
            let at = arrivals.get(identifier);
            let at = at.with_context(|| format!("no message about {identifier} arrived"))?;
            Ok((*at - response.sent_at).to_std().unwrap_or_default())
        });
        Ok(Round::new(latencies.collect::<anyhow::Result<_>>()?, elapsed))
    }

    /// Waits until all deliveries are settled. The query reads one row, because its CPU time counts.
    async fn await_settled(&self, engine: &mut Engine) -> anyhow::Result<()> {
        let settled = async {
            let mut ticks = tokio::time::interval(Duration::from_millis(50));
            loop {
                ticks.tick().await;
                let one = "SELECT count(*) FROM (SELECT FROM deliveries LIMIT 1) AS one";
                if engine.postgres.count(one).await? == 0 {
                    return anyhow::Ok(());
                }
            }
        };
        tokio::time::timeout(TIMEOUT, settled).await.context("the deliveries are not settled")?
    }
}

/// The return that a message, a started return or the result of a carrier event is about.
fn rma(body: &Value) -> Option<&str> {
    let own = body.get("rma_identifier");
    own.or_else(|| body.pointer("/returns/0/rma_identifier"))?.as_str()
}
