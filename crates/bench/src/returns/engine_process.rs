//! The rma-engine process, which consumes the events of order-intake.

use std::time::{Duration, Instant};

use domain::merchant::Merchant;
use domain::order::sample::{Orders, message};
use domain::order::{Order, OrderStatus};
use platform::Service as _;
use platform::{Clock, Timestamp};
use rma_engine::App;
use serde_json::{Value, json};
use testkit::{Database, merchant, publish_merchant, sealing_keys};

use crate::intake_process::{Intake, MERCHANT};
use crate::merchant::paused_merchant;
use crate::postgres::Postgres;
use crate::process::Program;
use crate::raw_http::{drive, post};
use crate::size::count;
use crate::totals::Totals;

/// Connections of a load.
pub(super) const CONNECTIONS: usize = 32;
const ORDERS_PER_MESSAGE: usize = 100;
const TIMEOUT: Duration = Duration::from_secs(300);

pub(super) struct Engine {
    pub(super) postgres: Postgres,
    pub(super) program: Program,
    token: String,
    /// The seed of the next orders, so that no order is returned twice.
    seed: u64,
    _database: Database,
}

impl Engine {
    pub(super) async fn start(intake: &Intake) -> anyhow::Result<Self> {
        let database = Database::create(App::migrations()).await;
        let postgres = Postgres::connect(&database.url()).await?;
        let settings = [
            ("SEALING__KEYS", sealing_keys()),
            ("SHOPPER__PROOF_KEYS", sealing_keys()),
            ("DELIVERY__HTTPS_ONLY", "false"),
            ("DELIVERY__ALLOWED_NETWORKS", "127.0.0.1/32"),
            // Requests must not fail when they wait for a connection.
            ("DATABASE__ACQUIRE_TIMEOUT", "10s"),
        ];
        let identity = intake.issuer.settings();
        let program =
            Program::start_service::<App>(&database, &intake.namespace, &identity, &settings)
                .await?;
        publish_merchant(&intake.namespace, App::NAME, paused_merchant(MERCHANT)).await;
        let token = intake.issuer.token(Some(MERCHANT), "returns carrier");
        Ok(Self { postgres, program, token, seed: 9, _database: database })
    }

    /// Sends the merchant's messages to this URL from now on.
    pub(super) async fn resume(&self, intake: &Intake, base_url: &str) {
        let mut resumed: Merchant = merchant(MERCHANT);
        resumed.version += 1;
        resumed.settings.base_url = Some(base_url.to_owned());
        publish_merchant(&intake.namespace, App::NAME, resumed).await;
    }

    /// Publishes the events of the intake and waits until the engine has processed them.
    pub(super) async fn project(
        &mut self,
        intake: &mut Intake,
        orders: usize,
    ) -> anyhow::Result<(Totals, Duration)> {
        let expected = self.projected_orders().await? + i64::try_from(orders)?;
        let (before, own_before) = (self.postgres.cpu()?, self.program.cpu()?);
        let started = Instant::now();
        intake.start_relay().await?;
        self.await_orders(expected).await?;
        let elapsed = started.elapsed();
        let cpu = self.postgres.cpu()?.saturating_sub(before);
        let own = self.program.cpu()?.saturating_sub(own_before);
        let mut totals = Totals::default();
        totals.add(count(orders), elapsed, cpu);
        Ok((totals, own))
    }

    pub(super) async fn projected_orders(&mut self) -> anyhow::Result<i64> {
        self.postgres.count("SELECT count(*) FROM orders").await
    }

    pub(super) async fn await_orders(&mut self, expected: i64) -> anyhow::Result<()> {
        let mut ticks = tokio::time::interval(Duration::from_millis(50));
        let waiting = async {
            while self.projected_orders().await? < expected {
                ticks.tick().await;
            }
            anyhow::Ok(())
        };
        tokio::time::timeout(TIMEOUT, waiting).await?
    }

    /// Publishes new orders, and returns requests for a return of the first unit of each.
    pub(super) async fn return_requests(
        &mut self,
        intake: &mut Intake,
        returns: usize,
    ) -> anyhow::Result<Vec<Vec<u8>>> {
        let now = Clock::system().now();
        let orders: Vec<_> =
            Orders::new(self.seed, now).take(returns).map(|order| shipped(order, now)).collect();
        self.seed += 1;
        let before = self.projected_orders().await?;
        let messages = orders.chunks(ORDERS_PER_MESSAGE).map(|orders| message(orders).to_string());
        let messages = messages.map(|body| intake.post(body.as_bytes())).collect();
        drive(&intake.address, 4, messages).await?;
        self.await_orders(before + i64::try_from(returns)?).await?;
        Ok(orders.iter().map(|order| self.return_request(order)).collect())
    }

    fn return_request(&self, order: &Order) -> Vec<u8> {
        let line = order.items.first().map(|line| line.identifier.as_str());
        let body = json!({
            "return_method": "mail-back",
            "units": [{
                "order_identifier": order.identifier, "order_line_item_identifier": line, "unit": 1,
                "return_reason": "CHANGED_MIND", "resolution": "refund",
            }],
        });
        self.post("/v1/returns", &body)
    }

    /// A report that the carrier scanned the parcel of a return.
    pub(super) fn carrier_event(&self, rma_identifier: &str) -> Vec<u8> {
        let body = json!({
            "event_identifier": format!("scan-{rma_identifier}"), "event": "in_transit",
            "rma_identifier": rma_identifier, "tracking_number": format!("1Z-{rma_identifier}"),
        });
        self.post("/v1/carrier_events", &body)
    }

    fn post(&self, path: &str, body: &Value) -> Vec<u8> {
        post(self.program.address(), path, &self.token, body.to_string().as_bytes())
    }
}

/// The order with all units shipped now.
fn shipped(mut order: Order, now: Timestamp) -> Order {
    order.status = OrderStatus::Shipped;
    order.refunds.clear();
    for line in &mut order.items {
        line.quantity_canceled = 0;
        line.quantity_shipped = line.quantity;
        line.shipped_date = Some(now);
        line.tags.clear();
    }
    order
}
