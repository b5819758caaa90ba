//! Projection of orders from the event queue, alone and while order-intake receives them, and creation of
//! returns over 32 connections.

use std::time::{Duration, Instant};

use domain::order::sample::{Orders, message};
use domain::order::{Order, OrderStatus};
use platform::{Clock, Service as _};
use rma_engine::App;
use serde_json::json;
use testkit::{Database, introduce, sealing_keys};

use crate::intake_process::{Intake, MERCHANT};
use crate::merchant::paused_merchant;
use crate::postgres::Postgres;
use crate::process::{Program, free_port};
use crate::raw_http::{drive, post};
use crate::report::Report;
use crate::totals::{Totals, micros};

const CONNECTIONS: usize = 32;
/// Orders per round.
const ORDERS: usize = 16_000;
/// Returns per round, each of one unit of its own order.
const RETURNS: usize = 8_000;
const ORDERS_PER_MESSAGE: usize = 100;
const TIMEOUT: Duration = Duration::from_secs(300);

/// The rma-engine process, which consumes the events of order-intake.
struct Engine {
    postgres: Postgres,
    program: Program,
    address: String,
    token: String,
    _database: Database,
}

pub(crate) async fn run() -> anyhow::Result<Report> {
    let mut intake = Intake::start().await?;
    let mut engine = Engine::start(&intake).await?;
    let mut report = Report::default();

    // The queue is filled first, so that only the projection is measured.
    let requests = intake.requests(ORDERS, 1);
    let alone = drive(&intake.address, CONNECTIONS, requests).await?;
    let (mut projected, own) = engine.project(&mut intake, ORDERS).await?;
    report.figure("projection.per_second", projected.rate(), "orders/s");
    report.figure("projection.own_cpu", micros(own) / projected.items, "CPU-us each");
    report.figure("projection.postgres_cpu", projected.postgres_cpu_micros(), "CPU-us each");

    // The engine must keep up with the intake.
    let before = engine.projected_orders().await?;
    let requests = intake.requests(ORDERS, 1);
    let started = Instant::now();
    let together = drive(&intake.address, CONNECTIONS, requests).await?;
    engine.await_orders(before + i64::try_from(ORDERS)?).await?;
    projected = Totals::default();
    projected.add(together.requests(), started.elapsed(), Duration::ZERO);
    report.figure("intake.per_second_alone", alone.rate(), "orders/s");
    report.figure("intake.per_second", together.rate(), "orders/s");
    report.figure("projection.per_second_beside_intake", projected.rate(), "orders/s");
    report.at_least("keeps_up", projected.rate() / together.rate(), 0.9, "projection/intake");

    let returns = engine.return_requests(&mut intake).await?;
    let (before, own_before) = (engine.postgres.cpu()?, engine.program.cpu()?);
    let round = drive(&engine.address, CONNECTIONS, returns).await?;
    let postgres = engine.postgres.cpu()?.saturating_sub(before);
    let own = engine.program.cpu()?.saturating_sub(own_before);
    report.figure("returns.per_second", round.rate(), "returns/s");
    report.figure("returns.own_cpu", micros(own) / round.requests(), "CPU-us each");
    report.figure("returns.postgres_cpu", micros(postgres) / round.requests(), "CPU-us each");
    report.figure("returns.p50", round.quantile(0.50).as_secs_f64() * 1e3, "ms");
    report.figure("returns.p99", round.quantile(0.99).as_secs_f64() * 1e3, "ms");
    let (now, highest) = engine.program.memory()?;
    report.figure("memory", now, "MiB");
    report.figure("memory_highest", highest, "MiB");
    Ok(report)
}

impl Engine {
    async fn start(intake: &Intake) -> anyhow::Result<Self> {
        let (database, port) = (Database::create(App::migrations()).await, free_port()?);
        let (port_text, database_url) = (port.to_string(), database.url());
        let settings = [
            ("HTTP__PORT", port_text.as_str()),
            ("LIMITS__REQUESTS_PER_MINUTE", "100000000"),
            ("DATABASE__URL", &database_url),
            ("BROKER__URL", intake.namespace.amqp_url()),
            ("BROKER__NAMESPACE", &intake.namespace.name),
            ("SEALING__KEYS", sealing_keys()),
            ("SHOPPER__PROOF_KEYS", sealing_keys()),
        ];
        let settings: Vec<_> = settings
            .into_iter()
            .chain(intake.issuer.settings())
            .map(|(name, value)| (format!("RMA_ENGINE__{name}"), value))
            .collect();
        let settings: Vec<_> =
            settings.iter().map(|(name, value)| (name.as_str(), *value)).collect();
        let postgres = Postgres::connect(&database_url).await?;
        let program = Program::start(App::NAME, &["serve"], &settings, port, "/readyz").await?;
        introduce(&intake.namespace, App::NAME, paused_merchant(MERCHANT)).await;
        let token = intake.issuer.token(Some(MERCHANT), "returns");
        let address = format!("127.0.0.1:{port}");
        Ok(Self { postgres, program, address, token, _database: database })
    }

    /// Publishes the events of the intake and waits until the engine has processed them.
    async fn project(
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
        totals.add(f64::from(u32::try_from(orders)?), elapsed, cpu);
        Ok((totals, own))
    }

    async fn projected_orders(&mut self) -> anyhow::Result<i64> {
        self.postgres.count("SELECT count(*) FROM orders").await
    }

    async fn await_orders(&mut self, expected: i64) -> anyhow::Result<()> {
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
    async fn return_requests(&mut self, intake: &mut Intake) -> anyhow::Result<Vec<Vec<u8>>> {
        let now = Clock::system().now();
        let orders: Vec<_> =
            Orders::new(9, now).take(RETURNS).map(|order| shipped(order, now)).collect();
        let before = self.projected_orders().await?;
        let messages = orders.chunks(ORDERS_PER_MESSAGE).map(|orders| message(orders).to_string());
        let messages = messages.map(|body| intake.post(body.as_bytes())).collect();
        drive(&intake.address, 4, messages).await?;
        self.await_orders(before + i64::try_from(RETURNS)?).await?;
        Ok(orders.iter().map(|order| self.request(order)).collect())
    }

    fn request(&self, order: &Order) -> Vec<u8> {
        let line = order.items.first().map(|line| line.identifier.as_str());
        let body = json!({
            "return_method": "mail-back",
            "units": [{
                "order_identifier": order.identifier, "order_line_item_identifier": line, "unit": 1,
                "return_reason": "CHANGED_MIND", "resolution": "refund",
            }],
        });
        post(&self.address, "/v1/returns", &self.token, body.to_string().as_bytes())
    }
}

/// The order with all units shipped now.
fn shipped(mut order: Order, now: platform::Timestamp) -> Order {
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
