//! The warehouse-notifier process under test, and the requests to it.

use std::time::{Duration, Instant};

use domain::warehouse::sample::{inbound_asn, outbound_shipment, receipt};
use platform::Service as _;
use serde_json::{Value, json};
use testkit::{Database, Issuer, Namespace, publish_merchant, sealing_keys};
use warehouse_notifier::App;

use crate::merchant::paused_merchant;
use crate::postgres::Postgres;
use crate::process::Program;
use crate::raw_http::post;

pub(crate) const MERCHANT: &str = "bench";
/// Number of ASNs. The service stores one request per ASN at a time.
pub(crate) const ASNS: usize = 200;

pub(crate) struct Notifier {
    pub(crate) postgres: Postgres,
    pub(crate) program: Program,
    pub(crate) address: String,
    token: String,
    client: reqwest::Client,
    namespace: Namespace,
    requests: usize,
    units: usize,
    /// Deleted when dropped.
    _fixtures: (Database, Issuer),
}

impl Notifier {
    pub(crate) async fn start() -> anyhow::Result<Self> {
        let (database, namespace) =
            (Database::create(App::migrations()).await, Namespace::create());
        let issuer = Issuer::start();
        let postgres = Postgres::connect(&database.url()).await?;
        let settings = [
            ("SEALING__KEYS", sealing_keys()),
            // Requests must not fail when they wait for a connection.
            ("DATABASE__ACQUIRE_TIMEOUT", "10s"),
        ];
        let identity = issuer.settings();
        let program =
            Program::start_service::<App>(&database, &namespace, &identity, &settings).await?;
        let notifier = Self {
            postgres,
            address: program.address().to_owned(),
            program,
            token: issuer.token(Some(MERCHANT), "warehouse"),
            client: platform::http_client(Duration::from_secs(60))?,
            namespace,
            requests: 0,
            units: 0,
            _fixtures: (database, issuer),
        };
        notifier.create_merchant_and_asns().await?;
        Ok(notifier)
    }

    async fn create_merchant_and_asns(&self) -> anyhow::Result<()> {
        publish_merchant(&self.namespace, App::NAME, paused_merchant(MERCHANT)).await;
        let unknown_asn = format!("{}/v1/inbound_asns/none", self.program.url);
        testkit::eventually("the merchant is replicated", Duration::from_secs(30), async || {
            let response =
                self.client.get(&unknown_asn).bearer_auth(&self.token).send().await.ok()?;
            (response.status() == 404).then_some(())
        })
        .await;
        for number in 0..ASNS {
            let asn = changed(inbound_asn(&format!("IN-{number}"), 1), |asn| {
                *asn.pointer_mut("/cartons/0/reference/type")? = json!("ForwardOrder");
                *asn.pointer_mut("/cartons/0/details/0/quantity")? = json!(100_000);
                Some(())
            });
            self.send("/v1/inbound_asns", &asn).await?;
        }
        Ok(())
    }

    /// Requests with `units` new units each.
    pub(crate) fn requests(&mut self, requests: usize, units: usize) -> Vec<Vec<u8>> {
        (0..requests)
            .map(|_| {
                self.requests += 1;
                let asn = format!("IN-{}", self.requests % ASNS);
                let units: Vec<_> = (0..units).map(|_| self.unit(&asn)).collect();
                let body = json!({ "receipts": units }).to_string();
                post(&self.address, "/v1/receipts", &self.token, body.as_bytes())
            })
            .collect()
    }

    fn unit(&mut self, asn: &str) -> Value {
        self.units += 1;
        changed(receipt(asn, 1), |unit| {
            let name = json!(format!("u{}", self.units));
            unit.as_object_mut()?.insert("unit_identifier".to_owned(), name);
            Some(())
        })
    }

    /// Reports a shipment of one pallet and returns the response time.
    pub(crate) async fn send_pallet(&self, units: usize) -> anyhow::Result<Duration> {
        let started = Instant::now();
        self.send("/v1/outbound_shipments", &outbound_shipment("PALLET", units)).await?;
        Ok(started.elapsed())
    }

    async fn send(&self, path: &str, body: &Value) -> anyhow::Result<()> {
        let url = format!("{}{path}", self.program.url);
        let response = self.client.post(url).bearer_auth(&self.token).json(body).send().await?;
        anyhow::ensure!(response.status().is_success(), "{path}: {}", response.text().await?);
        Ok(())
    }
}

fn changed(mut sample: Value, change: impl FnOnce(&mut Value) -> Option<()>) -> Value {
    change(&mut sample).unwrap_or_default();
    sample
}
