//! Variant lookups with and without the cache, compared with direct requests to the merchant.

use std::time::Duration;

use exchange::App;
use platform::Service as _;
use testkit::{Database, Issuer, Namespace, eventually, merchant, publish_merchant, sealing_keys};

use crate::load::Round;
use crate::process::Program;
use crate::raw_http::{drive, get};
use crate::report::Report;
use crate::sandbox_process::Sandbox;
use crate::size::Size;

const CONNECTIONS: usize = 32;
const ROUNDS: usize = 4;
/// Requests per round.
const ROUND_REQUESTS: usize = 8_000;
const MERCHANT: &str = "acme";

/// The exchange process, a merchant and its token.
struct Fixture {
    service: Program,
    sandbox: Sandbox,
    token: String,
    /// Number of lookups so far, so that no product is looked up twice.
    lookups: usize,
    // Deleted when dropped.
    _database: Database,
    _namespace: Namespace,
    _issuer: Issuer,
}

/// Totals of several rounds, with the CPU time of the service.
#[derive(Default)]
struct LookupTotals {
    round: Round,
    cpu: Duration,
}

pub(crate) async fn run(size: Size) -> anyhow::Result<Report> {
    let requests = size.items(ROUND_REQUESTS);
    let mut fixture = Fixture::start().await?;
    let [mut cached, mut uncached, mut direct] = [(); 3].map(|()| LookupTotals::default());
    fixture.run_round(&mut LookupTotals::default(), Lookup::Uncached, requests / 4).await?;
    for _ in 0..size.rounds(ROUNDS) {
        fixture.run_round(&mut cached, Lookup::Cached, requests).await?;
        fixture.run_round(&mut uncached, Lookup::Uncached, requests).await?;
        fixture.run_round(&mut direct, Lookup::Direct, requests).await?;
    }
    let mut report = Report::default();
    for (name, totals) in [("cached", &cached), ("uncached", &uncached), ("direct", &direct)] {
        report.figure(&format!("{name}.per_second"), totals.round.rate(), "requests/s");
        report.latencies(&format!("{name}.response"), &totals.round);
    }
    for (name, totals) in [("cached", &cached), ("uncached", &uncached)] {
        let micros = totals.cpu.as_secs_f64() * 1e6 / totals.round.requests();
        report.figure(&format!("{name}.cpu"), micros, "CPU-us each");
    }
    for (name, totals) in [("cached", &cached), ("uncached", &uncached)] {
        let ratio = totals.round.millis(0.50) / direct.round.millis(0.50);
        report.figure(&format!("{name}.in_direct_requests"), ratio, "direct requests at p50");
    }
    Ok(report)
}

#[derive(Clone, Copy)]
enum Lookup {
    /// Always the same product.
    Cached,
    /// A new product each time.
    Uncached,
    /// A new product each time, in a request to the merchant.
    Direct,
}

impl Fixture {
    async fn start() -> anyhow::Result<Self> {
        let sandbox = Sandbox::start(0).await?;
        let database = Database::create(App::migrations()).await;
        let (namespace, issuer) = (Namespace::create(), Issuer::start());
        let settings = [
            ("SEALING__KEYS", sealing_keys()),
            ("SHOPPER__PROOF_KEYS", sealing_keys()),
            ("DELIVERY__HTTPS_ONLY", "false"),
            ("DELIVERY__ALLOWED_NETWORKS", "127.0.0.1/32"),
            // A cached response must last for a whole round.
            ("VARIANTS__CACHE_TTL", "10min"),
        ];
        let identity = issuer.settings();
        let service =
            Program::start_service::<App>(&database, &namespace, &identity, &settings).await?;
        let mut acme = merchant(MERCHANT);
        acme.settings.base_url = Some(sandbox.url().to_owned());
        publish_merchant(&namespace, "exchange", acme).await;
        let token = issuer.token(Some(MERCHANT), "returns");
        let client = platform::http_client(Duration::from_secs(5))?;
        let url = format!("{}/v1/variants/TEE", service.url);
        eventually("the merchant is replicated", Duration::from_secs(20), async || {
            let response = client.get(&url).bearer_auth(&token).send().await.ok()?;
            response.text().await.ok()?.contains("\"available\":true").then_some(())
        })
        .await;
        let (_database, _namespace, _issuer) = (database, namespace, issuer);
        Ok(Self { service, sandbox, token, lookups: 0, _database, _namespace, _issuer })
    }

    async fn run_round(
        &mut self,
        totals: &mut LookupTotals,
        lookup: Lookup,
        count: usize,
    ) -> anyhow::Result<()> {
        let url = match lookup {
            Lookup::Cached | Lookup::Uncached => &self.service.url,
            Lookup::Direct => self.sandbox.url(),
        };
        let address = url.trim_start_matches("http://").to_owned();
        let requests = (0..count)
            .map(|_| {
                self.lookups += 1;
                let path = match lookup {
                    Lookup::Cached => "/v1/variants/TEE".to_owned(),
                    Lookup::Uncached => format!("/v1/variants/P{}", self.lookups),
                    Lookup::Direct => format!("/sku/P{}/variants", self.lookups),
                };
                get(&address, &path, &self.token)
            })
            .collect();
        let before = self.service.cpu()?;
        totals.round.extend(drive(&address, CONNECTIONS, requests).await?);
        totals.cpu += self.service.cpu()?.saturating_sub(before);
        Ok(())
    }
}
