//! Variants from memory and from the merchant, beside the bare call to that merchant.

use std::time::Duration;

use exchange::App;
use platform::Service as _;
use testkit::{Database, Issuer, Namespace, eventually, introduce, merchant, sealing_keys};

use crate::load::Round;
use crate::process::{Program, free_port};
use crate::report::Report;
use crate::wire::{drive, get};

const CONNECTIONS: usize = 32;
const ROUNDS: usize = 4;
/// Requests in one turn of each.
const TURN: usize = 8_000;
const MERCHANT: &str = "acme";
/// An answer may take so many bare calls: from memory, and when the merchant is asked.
const MOST_KEPT: f64 = 3.0;
const MOST_ASKED: f64 = 8.0;

/// The service, a merchant, and a token.
struct Shop {
    service: Program,
    sandbox: Program,
    token: String,
    /// So that no product is asked for twice.
    asked: usize,
    // They go when this is dropped.
    _database: Database,
    _namespace: Namespace,
    _issuer: Issuer,
}

/// Several turns of one kind, and the service's CPU time in them.
#[derive(Default)]
struct Turns {
    round: Round,
    cpu: Duration,
}

pub(crate) async fn run() -> anyhow::Result<Report> {
    let mut shop = Shop::open().await?;
    let [mut kept, mut asked, mut bare] = [(); 3].map(|()| Turns::default());
    shop.turn(&mut Turns::default(), Kind::Asked, TURN / 4).await?;
    for _ in 0..ROUNDS {
        shop.turn(&mut kept, Kind::Kept, TURN).await?;
        shop.turn(&mut asked, Kind::Asked, TURN).await?;
        shop.turn(&mut bare, Kind::Bare, TURN).await?;
    }
    let mut report = Report::default();
    for (name, turns) in [("kept", &kept), ("asked", &asked), ("bare", &bare)] {
        report.figure(&format!("{name}.per_second"), turns.round.rate(), "requests/s");
        report.figure(&format!("{name}.p50"), millis(turns, 0.50), "ms");
        report.figure(&format!("{name}.p99"), millis(turns, 0.99), "ms");
    }
    for (name, turns) in [("kept", &kept), ("asked", &asked)] {
        let micros = turns.cpu.as_secs_f64() * 1e6 / turns.round.requests();
        report.figure(&format!("{name}.cpu"), micros, "CPU-us each");
    }
    let in_bare = |turns: &Turns| millis(turns, 0.50) / millis(&bare, 0.50);
    report.at_most("kept.in_bare_calls", in_bare(&kept), MOST_KEPT, "bare calls at p50");
    report.at_most("asked.in_bare_calls", in_bare(&asked), MOST_ASKED, "bare calls at p50");
    Ok(report)
}

#[derive(Clone, Copy)]
enum Kind {
    /// One product, which the service remembers.
    Kept,
    /// A new product each time.
    Asked,
    /// A new product each time, straight from the merchant.
    Bare,
}

impl Shop {
    async fn open() -> anyhow::Result<Self> {
        let (sandbox_port, port) = (free_port()?.to_string(), free_port()?);
        let sandbox = Program::start(
            "sandbox",
            &[],
            &[("SANDBOX__HTTP__PORT", &sandbox_port), ("SANDBOX__JOURNAL__ENABLED", "false")],
            sandbox_port.parse()?,
            "/readyz",
        )
        .await?;
        let database = Database::create(App::migrations()).await;
        let (namespace, issuer) = (Namespace::create(), Issuer::start());
        let (port_text, url) = (port.to_string(), database.url());
        let [(issuer_name, issuer_url), (keys_name, keys_url)] = issuer.settings();
        let (issuer_name, keys_name) =
            (format!("EXCHANGE__{issuer_name}"), format!("EXCHANGE__{keys_name}"));
        let environment = [
            ("EXCHANGE__HTTP__PORT", port_text.as_str()),
            ("EXCHANGE__LIMITS__REQUESTS_PER_MINUTE", "100000000"),
            ("EXCHANGE__DATABASE__URL", &url),
            ("EXCHANGE__BROKER__URL", namespace.amqp_url()),
            ("EXCHANGE__BROKER__NAMESPACE", &namespace.name),
            ("EXCHANGE__SEALING__KEYS", sealing_keys()),
            ("EXCHANGE__DELIVERY__HTTPS_ONLY", "false"),
            ("EXCHANGE__DELIVERY__ALLOWED_NETWORKS", "127.0.0.1/32"),
            // One answer lasts for a turn, however slow the machine.
            ("EXCHANGE__VARIANTS__KEEP", "10min"),
            (&issuer_name, issuer_url),
            (&keys_name, keys_url),
        ];
        let service = Program::start("exchange", &["serve"], &environment, port, "/readyz").await?;
        let mut acme = merchant(MERCHANT);
        acme.settings.base_url = Some(sandbox.url.clone());
        introduce(&namespace, "exchange", acme).await;
        let token = issuer.token(Some(MERCHANT), "returns");
        let client = platform::http_client(Duration::from_secs(5))?;
        let url = format!("{}/v1/variants/TEE", service.url);
        eventually("the merchant is known", Duration::from_secs(20), async || {
            let answer = client.get(&url).bearer_auth(&token).send().await.ok()?;
            answer.text().await.ok()?.contains("\"available\":true").then_some(())
        })
        .await;
        let (_database, _namespace, _issuer) = (database, namespace, issuer);
        Ok(Self { service, sandbox, token, asked: 0, _database, _namespace, _issuer })
    }

    async fn turn(&mut self, turns: &mut Turns, kind: Kind, count: usize) -> anyhow::Result<()> {
        let url = match kind {
            Kind::Kept | Kind::Asked => &self.service.url,
            Kind::Bare => &self.sandbox.url,
        };
        let address = url.trim_start_matches("http://").to_owned();
        let requests = (0..count)
            .map(|_| {
                self.asked += 1;
                let path = match kind {
                    Kind::Kept => "/v1/variants/TEE".to_owned(),
                    Kind::Asked => format!("/v1/variants/P{}", self.asked),
                    Kind::Bare => format!("/sku/P{}/variants", self.asked),
                };
                get(&address, &path, &self.token)
            })
            .collect();
        let before = self.service.cpu()?;
        turns.round.join(drive(&address, CONNECTIONS, requests).await?);
        turns.cpu += self.service.cpu()?.saturating_sub(before);
        Ok(())
    }
}

fn millis(turns: &Turns, share: f64) -> f64 {
    turns.round.quantile(share).as_secs_f64() * 1e3
}
