//! Token grants beside a bare JSON echo.

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
/// A grant may cost so many echoes.
const MOST_ECHOES: f64 = 6.0;

/// A server under load, and what it has cost so far.
struct Runner {
    program: Program,
    path: &'static str,
    round: Round,
    cpu: Duration,
}

impl Runner {
    fn new(program: Program, path: &'static str) -> Self {
        Self { program, path, round: Round::default(), cpu: Duration::ZERO }
    }

    async fn run(&mut self, client: &Client, length: Duration) -> anyhow::Result<Duration> {
        let url: Url = format!("{}{}", self.program.url, self.path).parse()?;
        let body = json!({"grant_type": "client_credentials", "client_id": "bench", "client_secret": SECRET});
        let request = {
            let client = client.clone();
            move || -> anyhow::Result<Request> {
                Ok(client.request(Method::POST, url.clone()).json(&body).build()?)
            }
        };
        let before = self.program.cpu()?;
        let round = drive(client, CONNECTIONS, length, request).await?;
        self.round.join(round);
        Ok(self.program.cpu()?.saturating_sub(before))
    }

    fn cpu_micros(&self) -> f64 {
        self.cpu.as_secs_f64() * 1e6 / self.round.requests()
    }
}

pub(crate) async fn run() -> anyhow::Result<Report> {
    let (database, namespace) = (Database::create(App::migrations()).await, Namespace::create());
    let mut grants = Runner::new(start_auth(&database, &namespace).await?, "/oauth/token");
    let mut echoes = Runner::new(echo::start().await?, "/echo");
    let client = platform::http_client(Duration::from_secs(10))?;
    for runner in [&mut grants, &mut echoes] {
        runner.run(&client, Duration::from_secs(1)).await?;
        runner.round = Round::default();
    }
    for _ in 0..ROUNDS {
        for runner in [&mut grants, &mut echoes] {
            let cpu = runner.run(&client, ROUND).await?;
            runner.cpu += cpu;
        }
    }
    let mut report = Report::default();
    for (name, runner) in [("grant", &grants), ("echo", &echoes)] {
        report.figure(&format!("{name}.per_second"), runner.round.rate(), "requests/s");
        let per_cpu = runner.round.requests() / runner.cpu.as_secs_f64();
        report.figure(&format!("{name}.per_cpu_second"), per_cpu, "requests/CPU-s");
        report.figure(&format!("{name}.cpu"), runner.cpu_micros(), "CPU-us each");
        report.figure(
            &format!("{name}.p50"),
            runner.round.quantile(0.50).as_secs_f64() * 1e3,
            "ms",
        );
        report.figure(
            &format!("{name}.p99"),
            runner.round.quantile(0.99).as_secs_f64() * 1e3,
            "ms",
        );
    }
    let ratio = grants.cpu_micros() / echoes.cpu_micros();
    report.at_most("grant.cpu_in_echoes", ratio, MOST_ECHOES, "echoes");
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
    testkit::eventually("the client is let in", Duration::from_secs(20), async || {
        client.post(&token).json(&body).send().await.ok()?.status().is_success().then_some(())
    })
    .await;
    Ok(program)
}
