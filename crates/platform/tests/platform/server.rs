//! Slow clients, large bodies, unknown paths and timeouts.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use reqwest::{StatusCode, header};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use crate::authentication::service_with_key;
use crate::{BLOCKING_REQUESTS, client, start};

pub(crate) async fn raw(url: &str, bytes: &str) -> (String, Duration) {
    let stream = TcpStream::connect(url.strip_prefix("http://").unwrap()).await.unwrap();
    send(stream, bytes).await
}

/// Sends these bytes; returns the response until the server closes the connection, and the time.
pub(crate) async fn send(mut stream: TcpStream, bytes: &str) -> (String, Duration) {
    stream.write_all(bytes.as_bytes()).await.unwrap();
    let started = Instant::now();
    let mut response = Vec::new();
    let read = tokio::time::timeout(Duration::from_secs(120), stream.read_to_end(&mut response));
    read.await.expect("the server did not close the connection of a slow client").unwrap();
    (String::from_utf8_lossy(&response).into_owned(), started.elapsed())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slow_client_is_disconnected() {
    let service = start(&[
        ("HTTP__HEADER_TIMEOUT", "1s"),
        ("HTTP__BODY_TIMEOUT", "300ms"),
        ("HTTP__KEEP_ALIVE", "1s"),
    ])
    .await;
    let (response, took) = raw(&service.url, "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Ty").await;
    assert!(response.is_empty() || response.starts_with("HTTP/1.1 408"), "{response}");
    assert!(took < Duration::from_secs(8), "{took:?}");
    let half = "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{\"a\":";
    let (response, took) = raw(&service.url, half).await;
    assert!(response.starts_with("HTTP/1.1 408"), "{response}");
    assert!(took < Duration::from_secs(8), "{took:?}");
    // The second request of a connection, too.
    let mut stream =
        TcpStream::connect(service.url.strip_prefix("http://").unwrap()).await.unwrap();
    stream.write_all(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n").await.unwrap();
    let mut first = [0; 12];
    stream.read_exact(&mut first).await.unwrap();
    assert_eq!(&first, b"HTTP/1.1 200");
    let (_, took) = send(stream, "G").await;
    assert!(took < Duration::from_secs(8), "{took:?}");
    assert!(service.stop().await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_response_in_parts_is_sent_to_its_end() {
    let service = start(&[("HTTP__HEADER_TIMEOUT", "1s"), ("HTTP__KEEP_ALIVE", "1s")]).await;
    let response = client().get(format!("{}/parts/25", service.url)).send().await.unwrap();
    assert_eq!(response.text().await.unwrap(), ".".repeat(25));
    assert!(service.stop().await);
}

/// The client connected before the worker was busy, and sent its request meanwhile.
#[tokio::test(flavor = "multi_thread")]
async fn a_complete_request_waits_for_a_busy_worker() {
    let service = start(&[("HTTP__HEADER_TIMEOUT", "3s")]).await;
    let address = service.url.strip_prefix("http://").unwrap().to_owned();
    let (mut busy, mut waiting) = loop {
        let connected_at = Instant::now();
        let mut waiting = TcpStream::connect(&address).await.unwrap();
        let mut busy = TcpStream::connect(&address).await.unwrap();
        // The worker has accepted both connections when it has responded on the second.
        busy.write_all(b"GET /address HTTP/1.1\r\nHost: x\r\n\r\n").await.unwrap();
        busy.read_exact(&mut [0; 12]).await.unwrap();
        let blocking = BLOCKING_REQUESTS.load(Ordering::Relaxed);
        busy.write_all(b"GET /block/6000 HTTP/1.1\r\nHost: x\r\n\r\n").await.unwrap();
        testkit::eventually("the worker is busy", Duration::from_secs(300), async || {
            (BLOCKING_REQUESTS.load(Ordering::Relaxed) > blocking).then_some(())
        })
        .await;
        waiting.write_all(b"GET /address HTTP/1.1\r\nHost: x\r\n\r\n").await.unwrap();
        // On a busy machine the time of the client may be over before it sends its request.
        if connected_at.elapsed() < Duration::from_secs(2) {
            break (busy, waiting);
        }
    };
    let mut status = [0; 12];
    waiting.read_exact(&mut status).await.unwrap();
    assert_eq!(&status, b"HTTP/1.1 200");
    busy.read_exact(&mut [0; 12]).await.unwrap();
    assert!(service.stop().await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_with_many_keys_is_parsed_off_the_worker() {
    let (service, key) = service_with_key().await;
    let token = key.token(|_, _| {});
    let keys: Vec<_> = (0..90_000).map(|key| format!("\"k{key}\":0")).collect();
    let body = format!("{{{}}}", keys.join(","));
    assert!(body.len() < 1 << 20);
    let echo = || {
        let request = client().post(format!("{}/orders", service.url)).bearer_auth(&token);
        request.header(header::CONTENT_TYPE, "application/json").body(body.clone()).send()
    };
    let (large, small) = tokio::join!(
        futures_util::future::join_all((0..3).map(|_| echo())),
        client().get(format!("{}/address", service.url)).send(),
    );
    assert_eq!(small.unwrap().status(), StatusCode::OK);
    for response in large {
        assert_eq!(response.unwrap().json::<Value>().await.unwrap()["k89999"], 0);
    }
    assert!(service.stop().await);
}

#[tokio::test(flavor = "multi_thread")]
async fn bodies_are_bounded_and_read_strictly() {
    let service = start(&[("HTTP__MAX_BODY", "1000")]).await;
    let post = |kind: &str, body: Vec<u8>| {
        client().post(format!("{}/echo", service.url)).header(header::CONTENT_TYPE, kind).body(body)
    };
    let check = async |request: reqwest::RequestBuilder, status: StatusCode| {
        let response = request.send().await.unwrap();
        assert_eq!(response.status(), status);
        assert!(response.headers().contains_key("x-request-id"));
        let body: Value = response.json().await.unwrap();
        assert!(
            status.is_success() || (body["message"].is_string() && body["request_id"].is_string()),
            "{body}"
        );
    };
    let json = "application/json";
    check(post(json, b"{\"a\": 1}".to_vec()), StatusCode::OK).await;
    check(post("application/json; charset=utf-8", b"[]".to_vec()), StatusCode::OK).await;
    check(post(json, format!("\"{}\"", "x".repeat(998)).into_bytes()), StatusCode::OK).await;
    check(
        post(json, format!("\"{}\"", "x".repeat(999)).into_bytes()),
        StatusCode::PAYLOAD_TOO_LARGE,
    )
    .await;
    check(post(json, b"{\"a\": 1, \"a\": 2}".to_vec()), StatusCode::BAD_REQUEST).await;
    check(post(json, b"\xff\xfe".to_vec()), StatusCode::BAD_REQUEST).await;
    check(post(json, b"{".to_vec()), StatusCode::BAD_REQUEST).await;
    check(post("text/plain", b"{}".to_vec()), StatusCode::UNSUPPORTED_MEDIA_TYPE).await;
    check(
        post(json, b"{}".to_vec()).header("content-encoding", "br"),
        StatusCode::UNSUPPORTED_MEDIA_TYPE,
    )
    .await;
    check(post(json, b"{}".to_vec()).header("content-encoding", "gzip"), StatusCode::BAD_REQUEST)
        .await;
    assert!(service.stop().await);
}

#[tokio::test(flavor = "multi_thread")]
async fn only_a_request_with_a_token_may_have_a_large_body() {
    let (service, key) = service_with_key().await;
    let token = key.token(|_, _| {});
    let post = async |path: &str, length: usize| {
        let body = format!("\"{}\"", "x".repeat(length - 2));
        let request = client().post(format!("{}{path}", service.url)).bearer_auth(&token);
        let request = request.header(header::CONTENT_TYPE, "application/json").body(body);
        request.send().await.unwrap().status()
    };
    // This operation does not look at the token.
    assert_eq!(post("/echo", 32 * 1024).await, StatusCode::OK);
    assert_eq!(post("/echo", 32 * 1024 + 1).await, StatusCode::PAYLOAD_TOO_LARGE);
    assert_eq!(post("/orders", 1024 * 1024).await, StatusCode::OK);
    assert!(service.stop().await);
}

#[tokio::test(flavor = "multi_thread")]
async fn announced_bodies_without_a_token_take_no_memory() {
    // Memory for one body of the largest size.
    let settings =
        [("HTTP__MAX_BODY", "32768"), ("HTTP__MAX_INFLIGHT", "0"), ("HTTP__BODY_TIMEOUT", "5m")];
    let service = start(&[&settings[..], &[("HTTP__REQUEST_TIMEOUT", "5m")]].concat()).await;
    let address = service.url.strip_prefix("http://").unwrap();
    let chunked = "Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\n";
    let gzipped = "Content-Encoding: gzip\r\nContent-Length: 10\r\n\r\n{";
    let mut waiting = Vec::new();
    for announced in ["Content-Length: 32768\r\n\r\n{", chunked, gzipped].repeat(3) {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let head = "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n";
        let request = format!("{head}Expect: 100-continue\r\n{announced}");
        stream.write_all(request.as_bytes()).await.unwrap();
        // The service waits for the body now.
        let mut status = [0; 12];
        stream.read_exact(&mut status).await.unwrap();
        assert_eq!(&status, b"HTTP/1.1 100");
        waiting.push(stream);
    }
    let request = client().post(format!("{}/echo", service.url));
    assert_eq!(request.json(&json!({})).send().await.unwrap().status(), StatusCode::OK);
    drop(waiting);
    assert!(service.stop().await);
}

#[tokio::test(flavor = "multi_thread")]
async fn unknown_paths_and_methods_get_404_and_405() {
    let service = start(&[]).await;
    let response = client().get(format!("{}/nowhere", service.url)).send().await.unwrap();
    assert_eq!(response.status(), StatusCode::NOT_FOUND);
    let response = client().get(format!("{}/echo", service.url)).send().await.unwrap();
    assert_eq!(
        (response.status(), &response.headers()[header::ALLOW]),
        (StatusCode::METHOD_NOT_ALLOWED, &"POST".parse().unwrap())
    );
    let response = client().get(format!("{}/slow/soon", service.url)).send().await.unwrap();
    assert_eq!(response.status(), StatusCode::NOT_FOUND);
    let document: Value = client()
        .get(format!("{}/openapi.json", service.url))
        .send()
        .await
        .unwrap()
        .json()
        .await
        .unwrap();
    assert!(document["paths"]["/echo"]["post"].is_object());
    assert!(service.stop().await);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_version_and_the_commit_are_served_without_a_token() {
    let service = start(&[]).await;
    let response = client().get(format!("{}/version", service.url)).send().await.unwrap();
    assert_eq!(response.status(), StatusCode::OK);
    let version = platform::VERSION;
    let commit = platform::COMMIT;
    let expected = json!({ "service": "echo", "version": version, "commit": commit });
    assert_eq!(response.json::<Value>().await.unwrap(), expected);
    assert_eq!(platform::version_text(), format!("{version} (commit {commit})"));
    assert!(service.stop().await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_takes_too_long_gets_503() {
    let service = start(&[("HTTP__REQUEST_TIMEOUT", "200ms")]).await;
    let response = client().get(format!("{}/slow/60000", service.url)).send().await.unwrap();
    assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE);
    assert!(response.headers().contains_key(header::RETRY_AFTER));
    let id = response.headers()["x-request-id"].to_str().unwrap().to_owned();
    assert_eq!(response.json::<Value>().await.unwrap()["request_id"], id);
    let metrics = client().get(format!("{}/metrics", service.url)).send().await.unwrap();
    let counted =
        metrics.text().await.unwrap().lines().any(|line| {
            line.contains("route=\"/slow/{millis}\"") && line.contains("status=\"503\"")
        });
    assert!(counted, "the route of a request that took too long is not known");
    assert!(service.stop().await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_in_flight_is_finished_before_the_process_ends() {
    let service = start(&[]).await;
    let url = service.url.clone();
    let slow_request =
        spawn(
            async move { client().get(format!("{url}/slow/700")).send().await.unwrap().status() },
        );
    let arrived = format!("{}/slow_requests", service.url);
    testkit::eventually("the request is in flight", Duration::from_secs(300), async || {
        (client().get(&arrived).send().await.ok()?.json::<usize>().await.ok()? == 1).then_some(())
    })
    .await;
    assert!(service.stop().await);
    assert_eq!(slow_request.await.unwrap(), StatusCode::OK);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_callers_request_id_is_kept_when_it_is_harmless() {
    let service = start(&[]).await;
    let echoed = async |id: &str| {
        let response = client()
            .get(format!("{}/healthz", service.url))
            .header("x-request-id", id)
            .send()
            .await
            .unwrap();
        response.headers()["x-request-id"].to_str().unwrap().to_owned()
    };
    assert_eq!(echoed("order-42").await, "order-42");
    assert_ne!(echoed("a b").await, "a b");
    assert_ne!(echoed(&"x".repeat(65)).await, "x".repeat(65));
    assert!(service.stop().await);
}

#[tokio::test(flavor = "multi_thread")]
async fn only_trusted_proxies_name_the_client_and_only_in_the_header_they_write() {
    let client_address = async |settings: &[(&str, &str)]| {
        let service = start(settings).await;
        let request = client()
            .get(format!("{}/address", service.url))
            .header("forwarded", "for=203.0.113.1")
            .header("x-forwarded-for", "198.51.100.7");
        let address: Value = request.send().await.unwrap().json().await.unwrap();
        assert!(service.stop().await);
        address
    };
    let trusted = ("HTTP__TRUSTED_PROXIES", "127.0.0.0/8");
    assert_eq!(client_address(&[]).await, json!("127.0.0.1"));
    assert_eq!(client_address(&[trusted]).await, json!("198.51.100.7"));
    let other = ("HTTP__PROXY_HEADER", "forwarded");
    assert_eq!(client_address(&[trusted, other]).await, json!("203.0.113.1"));
}

#[tokio::test(flavor = "multi_thread")]
async fn nul_is_in_no_url() {
    let service = start(&[]).await;
    for (path, status) in [
        ("/slow/%00", StatusCode::NOT_FOUND),
        ("/address?a=%00", StatusCode::BAD_REQUEST),
        ("/address?a=%2500", StatusCode::OK),
    ] {
        let response = client().get(format!("{}{path}", service.url)).send().await.unwrap();
        assert_eq!(response.status(), status, "{path}");
    }
    assert!(service.stop().await);
}

#[tokio::test(flavor = "multi_thread")]
async fn measurements_name_the_route_and_not_the_path() {
    let service = start(&[]).await;
    client().get(format!("{}/slow/1", service.url)).send().await.unwrap();
    let text = client()
        .get(format!("{}/metrics", service.url))
        .send()
        .await
        .unwrap()
        .text()
        .await
        .unwrap();
    assert!(text.contains("backhaul_http_request_duration_seconds_count{"), "{text}");
    assert!(text.contains("route=\"/slow/{millis}\"") && !text.contains("/slow/1\""), "{text}");
    assert!(service.stop().await);
}

#[tokio::test(flavor = "multi_thread")]
async fn plain_http_stays_on_loopback_unless_a_setting_allows_it() {
    let environment = |proxy: &str| {
        [
            ("HTTP__HOST", "0.0.0.0"),
            ("HTTP__BEHIND_TLS_PROXY", proxy),
            ("DATABASE__URL", "postgres://x@127.0.0.1:1/x"),
        ]
        .map(|(key, value)| (format!("ECHO__{key}"), value.to_owned()))
        .into_iter()
        .collect()
    };
    let attempt = async |proxy| {
        let (platform, own) =
            platform::settings::load::<crate::Settings>("echo", &[], None, environment(proxy))
                .unwrap();
        platform::Running::start::<crate::EchoService>(platform, own, platform::Clock::system())
            .await
    };
    let error = attempt("false").await.err().unwrap().to_string();
    assert!(error.contains("http.tls is not set"), "{error}");
    assert!(attempt("true").await.unwrap().stop().await);
}

#[expect(clippy::disallowed_methods, reason = "the test waits for what it spawns")]
fn spawn<F: Future<Output: Send> + Send + 'static>(work: F) -> tokio::task::JoinHandle<F::Output> {
    tokio::spawn(work)
}
