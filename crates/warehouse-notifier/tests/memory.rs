//! The service as a process with a memory limit, and callers that do not read its responses.

#![expect(clippy::unwrap_used, reason = "a test that cannot continue should panic")]

use std::time::Duration;

use domain::warehouse::sample::inbound_asn;
use platform::Service as _;
use reqwest::RequestBuilder;
use serde_json::json;
use testkit::{
    DELIVERY_SETTINGS, Database, Issuer, MEMORY_LIMIT_KIB, Namespace, Replica, eventually,
    publish_merchant,
};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};
use warehouse_notifier::App;

const TIMEOUT: Duration = Duration::from_secs(300);
const UNREAD_RESPONSES: usize = 130;

/// Sends a request and reads only the status of its response.
async fn request_unread(address: &str, request: &str) -> (u16, TcpStream) {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4096).unwrap();
    let mut stream = socket.connect(address.parse().unwrap()).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut head = [0; 12];
    tokio::time::timeout(TIMEOUT, stream.read_exact(&mut head)).await.unwrap().unwrap();
    let status = std::str::from_utf8(&head).unwrap().strip_prefix("HTTP/1.1 ").unwrap();
    (status.parse().unwrap(), stream)
}

#[tokio::test(flavor = "multi_thread")]
async fn unread_responses_of_the_largest_asn_fit_into_512_mib() {
    let database = Database::create(App::migrations()).await;
    let namespace = Namespace::create();
    let issuer = Issuer::start();
    let settings: Vec<_> =
        DELIVERY_SETTINGS.into_iter().chain([("DATABASE__ACQUIRE_TIMEOUT", "20s")]).collect();
    let replica = Replica::start_limited(
        "warehouse-notifier",
        env!("CARGO_BIN_EXE_warehouse-notifier"),
        (&database, &namespace, &issuer),
        &settings,
    )
    .await;
    assert!(!replica.has_huge_pages());
    let client = platform::http_client(TIMEOUT).unwrap();
    let url = |path: &str| format!("{}{path}", replica.url);
    let address = replica.url.trim_start_matches("http://");
    publish_merchant(&namespace, "warehouse-notifier", testkit::merchant("acme")).await;
    let token = issuer.token(None, "warehouse");
    let of_acme =
        |request: RequestBuilder| request.bearer_auth(&token).header("X-Service-Id", "acme");

    // The largest body, and carton fields that every line repeats.
    let mut asn = inbound_asn("IN-1", 20_000);
    asn["cartons"][0]["identifier"] = json!("x".repeat(200));
    asn["cartons"][0]["reference"]["identifier"] = json!("x".repeat(200));
    for line in asn["cartons"][0]["details"].as_array_mut().unwrap() {
        line["return_reason"] = json!("x".repeat(220));
    }
    let body = asn.to_string();
    assert!((7_000_000..8_388_608).contains(&body.len()), "{}", body.len());
    eventually("the ASN is registered", TIMEOUT, || async {
        let request = of_acme(client.post(url("/v1/inbound_asns")));
        let request = request.header("Content-Type", "application/json").body(body.clone());
        (request.send().await.ok()?.status() == 201).then_some(())
    })
    .await;

    let request = format!(
        "GET /v1/inbound_asns/IN-1 HTTP/1.1\r\nHost: warehouse\r\nAuthorization: Bearer {token}\r\n\
         X-Service-Id: acme\r\n\r\n"
    );
    let unread = (0..UNREAD_RESPONSES).map(|_| request_unread(address, &request));
    let unread = futures_util::future::join_all(unread).await;
    let count = |status: u16| unread.iter().filter(|(seen, _)| *seen == status).count();
    assert!(count(200) > 0, "no response was sent");
    assert_eq!(count(200) + count(429), UNREAD_RESPONSES);
    assert!(replica.peak_memory_kib() < MEMORY_LIMIT_KIB, "{} KiB", replica.peak_memory_kib());

    drop(unread);
    eventually("the memory is free again", TIMEOUT, || async {
        let response = of_acme(client.get(url("/v1/inbound_asns/IN-1"))).send().await.ok()?;
        let is_ok = response.status() == 200;
        let length = response.bytes().await.ok()?.len();
        is_ok.then(|| assert!(length > 16_000_000, "{length}"))
    })
    .await;
    assert!(replica.peak_memory_kib() < MEMORY_LIMIT_KIB, "{} KiB", replica.peak_memory_kib());
}
