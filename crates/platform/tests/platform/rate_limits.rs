//! Rate limits of client addresses, and the connections of their networks.

use std::time::Duration;

use reqwest::{StatusCode, header};
use rustls::version::TLS12;
use serde_json::Value;
use testkit::eventually;
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _},
    net::TcpStream,
};

use crate::server::{raw, send};
use crate::{client, start, tls};

const LIMIT: (&str, &str) = ("LIMITS__REQUESTS_PER_MINUTE", "40");
const GOOD: &str = "GET /address HTTP/1.1\r\nHost: x\r\n\r\n";
/// The last request of its connection.
const LAST: &str = "GET /address HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
const TIMEOUT: Duration = Duration::from_secs(300);
const MALFORMED: [&str; 2] =
    ["GET /address HTTP/9.9\r\n\r\n", "GET / HTTP/1.1\r\nbad header\r\n\r\n"];

/// Sends requests on a connection until one is over the limit. Returns the number of requests before it.
async fn requests_left(mut stream: impl AsyncRead + AsyncWrite + Unpin) -> usize {
    for number in 0..1000 {
        stream.write_all(GOOD.as_bytes()).await.unwrap();
        let response = read_response(&mut stream).await;
        if response.starts_with("HTTP/1.1 429") {
            return number;
        }
        assert!(response.starts_with("HTTP/1.1 200"), "{response}");
    }
    panic!("there is no limit");
}

/// Reads one response: the head, and the body of which the head has the length.
async fn read_response(stream: &mut (impl AsyncRead + Unpin)) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.unwrap());
    }
    let head = String::from_utf8(head).unwrap();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
    let mut body = vec![0; length.unwrap().parse().unwrap()];
    stream.read_exact(&mut body).await.unwrap();
    head + &String::from_utf8(body).unwrap()
}

async fn connect(url: &str) -> TcpStream {
    TcpStream::connect(url.strip_prefix("http://").unwrap()).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_has_a_limit_of_requests_per_minute() {
    let service =
        start(&[("LIMITS__REQUESTS_PER_MINUTE", "2"), ("HTTP__TRUSTED_PROXIES", "127.0.0.1")])
            .await;
    let send = async |path: &str, address: &str| {
        let request = client().get(format!("{}{path}", service.url));
        request.header("x-forwarded-for", address).send().await.unwrap()
    };
    for probe in ["/healthz", "/metrics", "/healthz"] {
        assert_eq!(send(probe, "192.0.2.1").await.status(), StatusCode::OK);
    }
    assert_eq!(send("/address", "192.0.2.1").await.status(), StatusCode::OK);
    assert_eq!(send("/nowhere", "192.0.2.1").await.status(), StatusCode::NOT_FOUND);
    let limited = send("/address", "192.0.2.1").await;
    assert_eq!(limited.status(), StatusCode::TOO_MANY_REQUESTS);
    let pause: u64 = limited.headers()[header::RETRY_AFTER].to_str().unwrap().parse().unwrap();
    assert!((1..=61).contains(&pause), "{pause}");
    assert!(limited.json::<Value>().await.unwrap()["request_id"].is_string());
    assert_eq!(send("/healthz", "192.0.2.1").await.status(), StatusCode::OK);
    assert_eq!(send("/address", "192.0.2.2").await.status(), StatusCode::OK);
    assert!(service.stop().await);
}

/// The response on a connection that the server may have closed already.
async fn response_until_closed(url: &str) -> String {
    let mut stream = connect(url).await;
    stream.write_all(LAST.as_bytes()).await.ok();
    let mut response = Vec::new();
    stream.read_to_end(&mut response).await.ok();
    String::from_utf8(response).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_network_has_a_share_of_the_connections() {
    // The share is one connection of eight.
    let service = start(&[("HTTP__MAX_CONNECTIONS", "8")]).await;
    let mut own = connect(&service.url).await;
    own.write_all(GOOD.as_bytes()).await.unwrap();
    assert!(read_response(&mut own).await.starts_with("HTTP/1.1 200"));
    // A request that arrives after the connection was closed gets no response.
    let response = response_until_closed(&service.url).await;
    assert!(response.is_empty() || response.starts_with("HTTP/1.1 429"), "{response}");
    own.write_all(GOOD.as_bytes()).await.unwrap();
    assert!(read_response(&mut own).await.starts_with("HTTP/1.1 200"));
    drop(own);
    eventually("the network has a connection again", TIMEOUT, async || {
        response_until_closed(&service.url).await.starts_with("HTTP/1.1 200").then_some(())
    })
    .await;
    assert!(service.stop().await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_trusted_proxy_can_have_more_connections_than_a_network() {
    let service =
        start(&[("HTTP__MAX_CONNECTIONS", "8"), ("HTTP__TRUSTED_PROXIES", "127.0.0.1")]).await;
    let mut open = Vec::new();
    for _ in 0..4 {
        let mut stream = connect(&service.url).await;
        stream.write_all(GOOD.as_bytes()).await.unwrap();
        assert!(read_response(&mut stream).await.starts_with("HTTP/1.1 200"));
        open.push(stream);
    }
    drop(open);
    assert!(service.stop().await);
}

/// The last requests may be counted a moment after their responses. So the tests below compare numbers
/// that are far apart.
#[tokio::test(flavor = "multi_thread")]
async fn requests_that_cannot_be_parsed_count() {
    let service = start(&[LIMIT]).await;
    for malformed in MALFORMED.repeat(20) {
        let (response, _) = raw(&service.url, malformed).await;
        assert!(response.starts_with("HTTP/1.1 400"), "{response}");
    }
    let left = requests_left(connect(&service.url).await).await;
    assert!(left < 10, "{left}");
    assert!(service.stop().await);
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_that_cannot_be_parsed_count_after_a_good_request() {
    let service = start(&[LIMIT]).await;
    for malformed in MALFORMED.repeat(5) {
        let (response, _) = raw(&service.url, &format!("{GOOD}{malformed}")).await;
        assert!(response.starts_with("HTTP/1.1 200"), "{response}");
        assert!(response.contains("HTTP/1.1 400"), "{response}");

        let mut stream = connect(&service.url).await;
        stream.write_all(GOOD.as_bytes()).await.unwrap();
        assert!(read_response(&mut stream).await.starts_with("HTTP/1.1 200"));
        let (response, _) = send(stream, malformed).await;
        assert!(response.starts_with("HTTP/1.1 400"), "{response}");
    }
    // The twenty good requests alone would leave twenty more.
    let left = requests_left(connect(&service.url).await).await;
    assert!(left < 10, "{left}");
    assert!(service.stop().await);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_end_of_a_connection_does_not_count() {
    let service = start(&[LIMIT, ("HTTP__KEEP_ALIVE", "1s")]).await;
    for _ in 0..6 {
        // The client closes the connection.
        let mut stream = connect(&service.url).await;
        stream.write_all(GOOD.as_bytes()).await.unwrap();
        read_response(&mut stream).await;
        drop(stream);
        // The client closes its side before the response.
        let mut stream = connect(&service.url).await;
        stream.write_all(GOOD.as_bytes()).await.unwrap();
        stream.shutdown().await.unwrap();
        read_response(&mut stream).await;
        // The server closes the connection, as the client requested.
        let close = "GET /address HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
        assert!(raw(&service.url, close).await.0.starts_with("HTTP/1.1 200"));
    }
    // The server closes an idle connection.
    for _ in 0..2 {
        assert!(raw(&service.url, GOOD).await.0.starts_with("HTTP/1.1 200"));
    }
    assert_eq!(requests_left(connect(&service.url).await).await, 20);
    assert!(service.stop().await);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_holds_for_tls() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let trusted = [tls::certificate(folder.path(), 1)];
    let (certificate, key) = (path("cert.pem"), path("key.pem"));
    let files = [("HTTP__TLS__CERTIFICATE", certificate.as_str()), ("HTTP__TLS__KEY", &key)];
    for (ending, expected) in [("", 20..21), (MALFORMED[0], 0..10)] {
        let service = start(&[LIMIT, files[0], files[1]]).await;
        for _ in 0..20 {
            let mut stream = tls::connect(&service.url, &trusted, &[&TLS12]).await.unwrap();
            stream.write_all(GOOD.as_bytes()).await.unwrap();
            assert!(read_response(&mut stream).await.starts_with("HTTP/1.1 200"));
            stream.write_all(ending.as_bytes()).await.unwrap();
            if !ending.is_empty() {
                let mut response = Vec::new();
                // The server closes the connection without the notice that TLS requires.
                stream.read_to_end(&mut response).await.ok();
                assert!(response.starts_with(b"HTTP/1.1 400"));
            }
        }
        let stream = tls::connect(&service.url, &trusted, &[&TLS12]).await.unwrap();
        let left = requests_left(stream).await;
        assert!(expected.contains(&left), "{left}");
        assert!(service.stop().await);
    }
}
