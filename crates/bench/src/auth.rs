//! Token requests, compared with a JSON echo server.

use std::time::Duration;

use ::auth::App;
use platform::Service as _;
use reqwest::{Client, Method, Request, Url};
use serde_json::json;
use testkit::{Database, Namespace, sealing_keys};

use crate::{
    echo,
    load::{Round, drive},
    process::{Program, free_port},
    report::Report,
};

const CONNECTIONS: usize = 32;
const ROUNDS: usize = 4;
const ROUND: Duration = Duration::from_secs(3);
const SECRET: &str = "a-secret-long-enough-for-a-bench";
/// Limit of the CPU time of a token request, in echo requests.
const MAX_CPU_RATIO: f64 = 6.0;

/// A server under load, and its totals so far.
struct Server {
    program: Program,
    path: &'static str,
    round: Round,
    cpu: Duration,
}

impl Server {
    fn new(program: Program, path: &'static str) -> Self {
        Self { program, path, round: Round::default(), cpu: Duration::ZERO }
    }

    async fn run(&mut self, client: &Client, duration: Duration) -> anyhow::Result<Duration> {
        let url: Url = format!("{}{}", self.program.url, self.path).parse()?;
        let body = json!({"grant_type": "client_credentials", "client_id": "bench", "client_secret": SECRET});
        let request = {
            let client = client.clone();
            move || -> anyhow::Result<Request> {
                Ok(client.request(Method::POST, url.clone()).json(&body).build()?)
            }
        };
        let before = self.program.cpu()?;
        let round = drive(client, CONNECTIONS, duration, request).await?;
        self.round.extend(round);
        Ok(self.program.cpu()?.saturating_sub(before))
    }

    fn cpu_micros(&self) -> f64 {
        self.cpu.as_secs_f64() * 1e6 / self.round.requests()
    }
}

pub(crate) async fn run() -> anyhow::Result<Report> {
    let (database, namespace) = (Database::create(App::migrations()).await, Namespace::create());
    let mut tokens = Server::new(start_auth(&database, &namespace).await?, "/oauth/token");
    let mut echoes = Server::new(echo::start().await?, "/echo");
    let client = platform::http_client(Duration::from_secs(10))?;
    for server in [&mut tokens, &mut echoes] {
        server.run(&client, Duration::from_secs(1)).await?;
        server.round = Round::default();
    }
    for _ in 0..ROUNDS {
        for server in [&mut tokens, &mut echoes] {
            let cpu = server.run(&client, ROUND).await?;
            server.cpu += cpu;
        }
    }
    let mut report = Report::default();
    for (name, server) in [("grant", &tokens), ("echo", &echoes)] {
        report.figure(&format!("{name}.per_second"), server.round.rate(), "requests/s");
        let per_cpu = server.round.requests() / server.cpu.as_secs_f64();
        report.figure(&format!("{name}.per_cpu_second"), per_cpu, "requests/CPU-s");
        report.figure(&format!("{name}.cpu"), server.cpu_micros(), "CPU-us each");
        report.figure(
            &format!("{name}.p50"),
            server.round.quantile(0.50).as_secs_f64() * 1e3,
            "ms",
        );
        report.figure(
            &format!("{name}.p99"),
            server.round.quantile(0.99).as_secs_f64() * 1e3,
            "ms",
        );
    }
    let ratio = tokens.cpu_micros() / echoes.cpu_micros();
    report.at_most("grant.cpu_in_echoes", ratio, MAX_CPU_RATIO, "echoes");
    Ok(report)
}

async fn start_auth(database: &Database, namespace: &Namespace) -> anyhow::Result<Program> {
    let (port, url) = (free_port()?, database.url());
    let port_text = port.to_string();
    let environment = [
        ("AUTH__HTTP__PORT", port_text.as_str()),
        ("AUTH__LIMITS__REQUESTS_PER_MINUTE", "100000000"),
        ("AUTH__DATABASE__URL", &url),
        ("AUTH__BROKER__URL", namespace.amqp_url()),
        ("AUTH__BROKER__NAMESPACE", &namespace.name),
        ("AUTH__SEALING__KEYS", sealing_keys()),
        ("AUTH__BOOTSTRAP__CLIENT_ID", "bench"),
        ("AUTH__BOOTSTRAP__CLIENT_SECRET", SECRET),
    ];
    let program = Program::start("auth", &["serve"], &environment, port, "/readyz").await?;
    let token = format!("{}/oauth/token", program.url);
    let body =
        json!({"grant_type": "client_credentials", "client_id": "bench", "client_secret": SECRET});
    let client = platform::http_client(Duration::from_secs(5))?;
    testkit::eventually("the client gets a token", Duration::from_secs(20), async || {
        client.post(&token).json(&body).send().await.ok()?.status().is_success().then_some(())
    })
    .await;
    Ok(program)
}
