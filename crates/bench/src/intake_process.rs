//! The order-intake process under test.

use std::ops::RangeInclusive;
use std::time::Duration;

use domain::order::Order;
use domain::order::sample::{Orders, document, message};
use messaging::RELAY_LOCK;
use order_intake::App;
use platform::Service as _;
use testkit::{Database, Issuer, Namespace, merchant, publish_merchant};

use crate::postgres::Postgres;
use crate::process::Program;
use crate::raw_http::post;

pub(crate) const MERCHANT: &str = "bench";
/// Length of an order in bytes.
const ORDER_BYTES: RangeInclusive<usize> = 2_300..=2_700;

/// Sample orders of about 2.5 KB.
pub(crate) fn orders(seed: u64) -> anyhow::Result<impl Iterator<Item = Order>> {
    let orders = Orders::new(seed, "2026-06-01T00:00:00Z".parse()?);
    Ok(orders.filter(|order| ORDER_BYTES.contains(&document(order).to_string().len())))
}

pub(crate) struct Intake {
    pub(crate) postgres: Postgres,
    pub(crate) program: Program,
    pub(crate) address: String,
    token: String,
    orders: Box<dyn Iterator<Item = Order>>,
    pub(crate) namespace: Namespace,
    pub(crate) issuer: Issuer,
    /// Deleted when dropped.
    _database: Database,
}

impl Intake {
    pub(crate) async fn start() -> anyhow::Result<Self> {
        let (database, namespace) =
            (Database::create(App::migrations()).await, Namespace::create());
        let issuer = Issuer::start();
        // The lock keeps the relay from publishing, because the baseline publishes nothing.
        let mut postgres = Postgres::connect(&database.url()).await?;
        postgres.execute(&format!("SELECT pg_advisory_lock({RELAY_LOCK})")).await?;
        let identity = issuer.settings();
        let program = Program::start_service::<App>(&database, &namespace, &identity, &[]).await?;
        let intake = Self {
            postgres,
            address: program.address().to_owned(),
            program,
            token: issuer.token(Some(MERCHANT), "orders"),
            orders: Box::new(orders(1)?),
            namespace,
            issuer,
            _database: database,
        };
        intake.create_merchant().await?;
        Ok(intake)
    }

    async fn create_merchant(&self) -> anyhow::Result<()> {
        publish_merchant(&self.namespace, App::NAME, merchant(MERCHANT)).await;
        let client = platform::http_client(Duration::from_secs(5))?;
        let unknown_order = format!("{}/v1/orders/none", self.program.url);
        testkit::eventually("the merchant is replicated", Duration::from_secs(30), async || {
            let response = client.get(&unknown_order).bearer_auth(&self.token).send().await.ok()?;
            (response.status() == 404).then_some(())
        })
        .await;
        Ok(())
    }

    /// Requests with `orders` new orders each.
    pub(crate) fn requests(&mut self, requests: usize, orders: usize) -> Vec<Vec<u8>> {
        (0..requests)
            .map(|_| {
                let orders: Vec<Order> = self.orders.by_ref().take(orders).collect();
                self.post(message(&orders).to_string().as_bytes())
            })
            .collect()
    }

    /// A request with this message.
    pub(crate) fn post(&self, body: &[u8]) -> Vec<u8> {
        post(&self.address, "/returns_portal_orders", &self.token, body)
    }

    /// Deletes the events, which are not published.
    pub(crate) async fn delete_events(&mut self) -> anyhow::Result<()> {
        self.postgres.execute("TRUNCATE outbox").await
    }

    /// Starts publishing events.
    pub(crate) async fn start_relay(&mut self) -> anyhow::Result<()> {
        self.postgres.execute(&format!("SELECT pg_advisory_unlock({RELAY_LOCK})")).await
    }
}
