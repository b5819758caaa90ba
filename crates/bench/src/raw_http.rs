//! A load generator that uses little CPU: it sends prepared HTTP/1.1 requests over persistent connections,
//! one request at a time on each.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use platform::{Clock, Timestamp};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use crate::load::Round;

/// The bytes of a POST request.
pub(crate) fn post(address: &str, path: &str, token: &str, body: &[u8]) -> Vec<u8> {
    let length = body.len();
    let head = format!(
        "POST {path} HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {token}\r\n\
         api-version: 3\r\naccept: application/json\r\ncontent-type: application/json\r\n\
         content-length: {length}\r\n\r\n"
    );
    [head.as_bytes(), body].concat()
}

/// The bytes of a GET request.
pub(crate) fn get(address: &str, path: &str, token: &str) -> Vec<u8> {
    let head = format!(
        "GET {path} HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {token}\r\n\
         accept: application/json\r\n\r\n"
    );
    head.into_bytes()
}

/// The response to one request.
pub(crate) struct Response {
    pub(crate) sent_at: Timestamp,
    latency: Duration,
    pub(crate) body: Vec<u8>,
}

/// Sends all requests and fails unless every response is a success.
pub(crate) async fn drive(
    address: &str,
    connections: usize,
    requests: Vec<Vec<u8>>,
) -> anyhow::Result<Round> {
    Ok(send_all(address, connections, requests).await?.1)
}

/// As [`drive`], with the responses. A single thread sends the requests, to leave the CPU to the services
/// under test.
pub(crate) async fn send_all(
    address: &str,
    connections: usize,
    requests: Vec<Vec<u8>>,
) -> anyhow::Result<(Vec<Response>, Round)> {
    let address = address.to_owned();
    let result = tokio::task::spawn_blocking(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
        runtime.block_on(send_on_this_thread(&address, connections, requests))
    });
    result.await?
}

async fn send_on_this_thread(
    address: &str,
    connections: usize,
    requests: Vec<Vec<u8>>,
) -> anyhow::Result<(Vec<Response>, Round)> {
    let (requests, next) = (Arc::new(requests), Arc::new(AtomicUsize::new(0)));
    let mut streams = Vec::new();
    for _ in 0..connections {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        streams.push(stream);
    }
    let started = Instant::now();
    let mut workers = JoinSet::new();
    for stream in streams {
        workers.spawn(send_requests(stream, requests.clone(), next.clone()));
    }
    let mut responses = Vec::with_capacity(requests.len());
    while let Some(worker) = workers.join_next().await {
        responses.extend(worker??);
    }
    let latencies = responses.iter().map(|response| response.latency).collect();
    Ok((responses, Round::new(latencies, started.elapsed())))
}

async fn send_requests(
    mut stream: TcpStream,
    requests: Arc<Vec<Vec<u8>>>,
    next: Arc<AtomicUsize>,
) -> anyhow::Result<Vec<Response>> {
    let (mut responses, clock) = (Vec::new(), Clock::system());
    let mut buffer = Vec::with_capacity(16 * 1024);
    loop {
        let Some(request) = requests.get(next.fetch_add(1, Ordering::Relaxed)) else {
            return Ok(responses);
        };
        let (sent_at, started) = (clock.now(), Instant::now());
        stream.write_all(request).await?;
        buffer.clear();
        let (body, end) = loop {
            anyhow::ensure!(stream.read_buf(&mut buffer).await? > 0, "connection closed");
            if let Some(found) = body_of_response(&buffer)? {
                break found;
            }
        };
        let latency = started.elapsed();
        anyhow::ensure!(
            buffer.starts_with(b"HTTP/1.1 2"),
            "request failed: {}",
            String::from_utf8_lossy(buffer.get(..end).unwrap_or(&buffer))
        );
        let body = buffer.get(body..end).unwrap_or_default().to_vec();
        responses.push(Response { sent_at, latency, body });
    }
}

/// Start and end of the response's body, once it is complete.
fn body_of_response(buffer: &[u8]) -> anyhow::Result<Option<(usize, usize)>> {
    let Some(head) = buffer.windows(4).position(|window| window == b"\r\n\r\n") else {
        return Ok(None);
    };
    let text = String::from_utf8_lossy(buffer.get(..head).unwrap_or(buffer)).to_ascii_lowercase();
    let length = text.split("\r\n").find_map(|line| line.strip_prefix("content-length:"));
    let length: usize = length.context("the response has no content-length")?.trim().parse()?;
    let (body, end) = (head + 4, head + 4 + length);
    Ok((buffer.len() >= end).then_some((body, end)))
}
