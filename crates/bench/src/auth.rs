//! Token requests, compared with a JSON echo server.

use std::time::Duration;

use reqwest::{Client, Method, Request, Url};
use serde_json::json;

use crate::{
    auth_process::{Auth, CLIENT_ID, CLIENT_SECRET},
    echo,
    load::{Round, drive},
    process::Program,
    report::Report,
    size::Size,
};

const CONNECTIONS: usize = 32;
const ROUNDS: usize = 4;
const ROUND: Duration = Duration::from_secs(3);

/// A server under load, and its totals so far.
struct Server<'a> {
    program: &'a Program,
    path: &'static str,
    round: Round,
    cpu: Duration,
}

impl<'a> Server<'a> {
    fn new(program: &'a Program, path: &'static str) -> Self {
        Self { program, path, round: Round::default(), cpu: Duration::ZERO }
    }

    async fn run(&mut self, client: &Client, duration: Duration) -> anyhow::Result<Duration> {
        let url: Url = format!("{}{}", self.program.url, self.path).parse()?;
        let body = json!({"grant_type": "client_credentials", "client_id": CLIENT_ID, "client_secret": CLIENT_SECRET});
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

pub(crate) async fn run(size: Size) -> anyhow::Result<Report> {
    let (auth, echo) = (Auth::start().await?, echo::start().await?);
    let mut tokens = Server::new(&auth.program, "/oauth/token");
    let mut echoes = Server::new(&echo, "/echo");
    let client = platform::http_client(Duration::from_secs(10))?;
    for server in [&mut tokens, &mut echoes] {
        server.run(&client, size.time(ROUND)).await?;
        server.round = Round::default();
    }
    for _ in 0..size.rounds(ROUNDS) {
        for server in [&mut tokens, &mut echoes] {
            let cpu = server.run(&client, size.time(ROUND)).await?;
            server.cpu += cpu;
        }
    }
    let mut report = Report::default();
    for (name, server) in [("grant", &tokens), ("echo", &echoes)] {
        report.figure(&format!("{name}.per_second"), server.round.rate(), "requests/s");
        report.figure(&format!("{name}.cpu"), server.cpu_micros(), "CPU-us each");
        report.latencies(&format!("{name}.response"), &server.round);
    }
    let ratio = tokens.cpu_micros() / echoes.cpu_micros();
    report.figure("grant.cpu_in_echoes", ratio, "echoes");
    Ok(report)
}
