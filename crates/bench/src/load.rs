//! Sends requests, as fast as 32 connections can or at a fixed rate.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use crate::http::Connection;

const CONNECTIONS: usize = 32;

pub(crate) struct Response {
    /// When the request was sent. At a fixed rate: when it should have been sent, if all connections were busy.
    pub(crate) sent_at: Instant,
    pub(crate) responded_at: Instant,
    pub(crate) body: Vec<u8>,
}

struct Load {
    requests: Vec<Vec<u8>>,
    next: AtomicUsize,
    started: Instant,
    /// Time between two requests. `None` in a closed loop: each connection sends a request as soon as it has the
    /// response to the previous one.
    interval: Option<Duration>,
}

/// Sends all requests and returns the responses in their order. Fails unless each is a success. A single thread sends
/// the requests, to leave the cores to the services.
pub(crate) async fn send_all(
    address: &str,
    requests: Vec<Vec<u8>>,
    per_second: Option<f64>,
) -> anyhow::Result<Vec<Response>> {
    let address = address.to_owned();
    let interval = per_second.map(|rate| Duration::from_secs_f64(1.0 / rate));
    let sending = tokio::task::spawn_blocking(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(send_on_this_thread(&address, requests, interval))
    });
    sending.await?
}

async fn send_on_this_thread(
    address: &str,
    requests: Vec<Vec<u8>>,
    interval: Option<Duration>,
) -> anyhow::Result<Vec<Response>> {
    let number = requests.len();
    let mut connections = Vec::new();
    for _ in 0..CONNECTIONS.min(number) {
        connections.push(Connection::new(TcpStream::connect(address).await?)?);
    }
    let next = AtomicUsize::new(0);
    let load = Arc::new(Load { requests, next, started: Instant::now(), interval });
    let mut workers = JoinSet::new();
    for connection in connections {
        workers.spawn(load.clone().send(connection));
    }
    let mut responses = Vec::with_capacity(number);
    while let Some(worker) = workers.join_next().await {
        responses.extend(worker??);
    }
    responses.sort_unstable_by_key(|(request, _)| *request);
    Ok(responses.into_iter().map(|(_, response)| response).collect())
}

impl Load {
    /// Sends requests until none is left. Returns the responses with the positions of their requests.
    async fn send(
        self: Arc<Self>,
        mut connection: Connection,
    ) -> anyhow::Result<Vec<(usize, Response)>> {
        let mut responses = Vec::new();
        loop {
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            let Some(request) = self.requests.get(number) else { return Ok(responses) };
            let sent_at = self.wait_for_turn(number).await?;
            connection.write(request).await?;
            let response = connection.read().await?.context("the connection was closed")?;
            let responded_at = Instant::now();
            anyhow::ensure!(
                response.first_line().starts_with("HTTP/1.1 2"),
                "{}: {}",
                response.first_line(),
                String::from_utf8_lossy(&response.body)
            );
            responses.push((number, Response { sent_at, responded_at, body: response.body }));
        }
    }

    /// Waits until a request is due, and returns the time from which it counts.
    async fn wait_for_turn(&self, number: usize) -> anyhow::Result<Instant> {
        let Some(interval) = self.interval else { return Ok(Instant::now()) };
        let due = self.started + interval * u32::try_from(number)?;
        if due <= Instant::now() {
            return Ok(due);
        }
        tokio::time::sleep_until(due.into()).await;
        Ok(Instant::now())
    }
}
