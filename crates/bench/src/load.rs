//! A closed loop of requests: each connection asks again as soon as it was answered.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::ensure;
use reqwest::{Client, Request};
use tokio::task::JoinSet;

/// What came of one round.
#[derive(Default)]
pub(crate) struct Round {
    latencies: Vec<Duration>,
    took: Duration,
}

impl Round {
    pub(crate) fn new(latencies: Vec<Duration>, took: Duration) -> Self {
        Self { latencies, took }
    }

    pub(crate) fn requests(&self) -> f64 {
        f64::from(u32::try_from(self.latencies.len()).unwrap_or(u32::MAX))
    }

    pub(crate) fn took(&self) -> Duration {
        self.took
    }

    pub(crate) fn rate(&self) -> f64 {
        self.requests() / self.took.as_secs_f64()
    }

    /// The latency that this share of requests stayed below.
    pub(crate) fn quantile(&self, share: f64) -> Duration {
        let mut sorted = self.latencies.clone();
        sorted.sort_unstable();
        #[expect(
            clippy::as_conversions,
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a share of a count"
        )]
        let index = (self.requests() * share) as usize;
        sorted.get(index.min(sorted.len().saturating_sub(1))).copied().unwrap_or_default()
    }

    pub(crate) fn join(&mut self, other: Self) {
        self.latencies.extend(other.latencies);
        self.took += other.took;
    }
}

/// Sends `request` over so many connections for so long; every answer must be a success.
pub(crate) async fn drive(
    client: &Client,
    connections: usize,
    length: Duration,
    request: impl Fn() -> anyhow::Result<Request> + Send + Sync + 'static,
) -> anyhow::Result<Round> {
    let (started, request) = (Instant::now(), Arc::new(request));
    let mut workers = JoinSet::new();
    for _ in 0..connections {
        let (client, request) = (client.clone(), request.clone());
        workers.spawn(async move {
            let mut latencies = Vec::new();
            while started.elapsed() < length {
                let sent = Instant::now();
                let answer = client.execute(request()?).await?;
                let status = answer.status();
                answer.bytes().await?;
                ensure!(status.is_success(), "answered {status}");
                latencies.push(sent.elapsed());
            }
            anyhow::Ok(latencies)
        });
    }
    let mut round = Round::default();
    while let Some(worker) = workers.join_next().await {
        round.latencies.extend(worker??);
    }
    round.took = started.elapsed();
    Ok(round)
}
