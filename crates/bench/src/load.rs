//! A closed-loop load generator: each connection sends a request as soon as the previous one is complete.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::ensure;
use reqwest::{Client, Request};
use tokio::task::JoinSet;

/// The result of one round.
#[derive(Clone, Default)]
pub(crate) struct Round {
    latencies: Vec<Duration>,
    elapsed: Duration,
}

impl Round {
    pub(crate) fn new(latencies: Vec<Duration>, elapsed: Duration) -> Self {
        Self { latencies, elapsed }
    }

    pub(crate) fn requests(&self) -> f64 {
        f64::from(u32::try_from(self.latencies.len()).unwrap_or(u32::MAX))
    }

    pub(crate) fn elapsed(&self) -> Duration {
        self.elapsed
    }

    pub(crate) fn rate(&self) -> f64 {
        self.requests() / self.elapsed.as_secs_f64()
    }

    /// The latency at a quantile between 0 and 1.
    pub(crate) fn quantile(&self, quantile: f64) -> Duration {
        let mut sorted = self.latencies.clone();
        sorted.sort_unstable();
        #[expect(
            clippy::as_conversions,
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "the index is below the number of requests"
        )]
        let index = (self.requests() * quantile) as usize;
        sorted.get(index.min(sorted.len().saturating_sub(1))).copied().unwrap_or_default()
    }

    /// The latency at a quantile in milliseconds.
    pub(crate) fn millis(&self, quantile: f64) -> f64 {
        self.quantile(quantile).as_secs_f64() * 1e3
    }

    pub(crate) fn extend(&mut self, other: Self) {
        self.latencies.extend(other.latencies);
        self.elapsed += other.elapsed;
    }
}

/// Sends `request` repeatedly for `duration` and fails unless every response is a success.
pub(crate) async fn drive(
    client: &Client,
    connections: usize,
    duration: Duration,
    request: impl Fn() -> anyhow::Result<Request> + Send + Sync + 'static,
) -> anyhow::Result<Round> {
    let (started, request) = (Instant::now(), Arc::new(request));
    let mut workers = JoinSet::new();
    for _ in 0..connections {
        let (client, request) = (client.clone(), request.clone());
        workers.spawn(async move {
            let mut latencies = Vec::new();
            while started.elapsed() < duration {
                let sent = Instant::now();
                let response = client.execute(request()?).await?;
                let status = response.status();
                response.bytes().await?;
                ensure!(status.is_success(), "response status {status}");
                latencies.push(sent.elapsed());
            }
            anyhow::Ok(latencies)
        });
    }
    let mut round = Round::default();
    while let Some(worker) = workers.join_next().await {
        round.latencies.extend(worker??);
    }
    round.elapsed = started.elapsed();
    Ok(round)
}
