//! The service as a process with a memory limit, and callers that do not read its responses.

#![expect(clippy::unwrap_used, reason = "a test that cannot continue should panic")]

use std::process::{Child, Command, Stdio};
use std::time::Duration;

use domain::warehouse::sample::inbound_asn;
use platform::Service as _;
use reqwest::RequestBuilder;
use serde_json::json;
use testkit::{DELIVERY_SETTINGS, Database, Issuer, Namespace, eventually, free_port, introduce};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};
use warehouse_notifier::App;

const TIMEOUT: Duration = Duration::from_secs(120);
const LIMIT_KIB: u64 = 512 * 1024;
const UNREAD_RESPONSES: usize = 130;

/// The service as a process whose data segment and anonymous memory cannot exceed 512 MiB.
struct LimitedProcess(Child);

impl LimitedProcess {
    fn start(port: u16, database: &Database, namespace: &Namespace, issuer: &Issuer) -> Self {
        let (port, database) = (port.to_string(), database.url());
        let settings = [
            ("HTTP__PORT", port.as_str()),
            ("DATABASE__URL", &database),
            ("DATABASE__ACQUIRE_TIMEOUT", "20s"),
            ("BROKER__URL", namespace.amqp_url()),
            ("BROKER__NAMESPACE", &namespace.name),
        ];
        let limited = format!("ulimit -d {LIMIT_KIB} && exec \"$0\" serve");
        let mut command = Command::new("sh");
        command.args(["-c", &limited, env!("CARGO_BIN_EXE_warehouse-notifier")]);
        for (name, value) in settings.into_iter().chain(DELIVERY_SETTINGS).chain(issuer.settings())
        {
            command.env(format!("WAREHOUSE_NOTIFIER__{name}"), value);
        }
        Self(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap())
    }

    /// The peak of the resident memory.
    fn peak_kib(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.0.id())).unwrap();
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
        peak.split_whitespace().next().unwrap().parse().unwrap()
    }
}

impl Drop for LimitedProcess {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

/// Sends a request and reads only the status of its response.
async fn request_unread(port: u16, request: &str) -> (u16, TcpStream) {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4096).unwrap();
    let mut stream = socket.connect(([127, 0, 0, 1], port).into()).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut head = [0; 12];
    tokio::time::timeout(TIMEOUT, stream.read_exact(&mut head)).await.unwrap().unwrap();
    let status = std::str::from_utf8(&head).unwrap().strip_prefix("HTTP/1.1 ").unwrap();
    (status.parse().unwrap(), stream)
}

#[tokio::test(flavor = "multi_thread")]
async fn unread_responses_of_the_largest_asn_fit_into_512_mib() {
    let (database, namespace) = (Database::create(App::migrations()).await, Namespace::create());
    let (issuer, port) = (Issuer::start(), free_port());
    let process = LimitedProcess::start(port, &database, &namespace, &issuer);
    let client = platform::http_client(TIMEOUT).unwrap();
    let url = |path: &str| format!("http://127.0.0.1:{port}{path}");
    eventually("the service is ready", TIMEOUT, || async {
        client.get(url("/readyz")).send().await.ok()?.status().is_success().then_some(())
    })
    .await;
    introduce(&namespace, "warehouse-notifier", testkit::merchant("acme")).await;
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
    let unread = (0..UNREAD_RESPONSES).map(|_| request_unread(port, &request));
    let unread = futures_util::future::join_all(unread).await;
    let count = |status: u16| unread.iter().filter(|(seen, _)| *seen == status).count();
    assert!(count(200) > 0, "no response was sent");
    assert_eq!(count(200) + count(503), UNREAD_RESPONSES);
    assert!(process.peak_kib() < LIMIT_KIB, "{} KiB", process.peak_kib());

    drop(unread);
    eventually("the memory is free again", TIMEOUT, || async {
        let response = of_acme(client.get(url("/v1/inbound_asns/IN-1"))).send().await.ok()?;
        let is_ok = response.status() == 200;
        let length = response.bytes().await.ok()?.len();
        is_ok.then(|| assert!(length > 16_000_000, "{length}"))
    })
    .await;
    assert!(process.peak_kib() < LIMIT_KIB, "{} KiB", process.peak_kib());
}
