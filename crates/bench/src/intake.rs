//! Requests of one order over 32 connections, compared with `pgbench` inserting the same rows in the same
//! PostgreSQL, one order per transaction, and with an intake that stores ten times as many orders. The three
//! alternate, so that a slow period of the machine affects all of them.

use std::time::Duration;

use anyhow::Context as _;
use domain::order::Order;
use domain::order::sample::document;
use serde_json::json;

use crate::intake_process::{Intake, MERCHANT, orders};
use crate::load::Round;
use crate::process::cpu_of;
use crate::raw_http::drive;
use crate::report::Report;
use crate::totals::{Totals, micros};

const CONNECTIONS: u16 = 32;
const ROUNDS: usize = 8;
/// Orders per round.
const ROUND_ORDERS: u16 = 16_000;
/// Orders stored before the first round.
const HISTORY: i64 = 50_000;

/// The rows that the service inserts for an order, in one statement: the order and its event.
const SAME_ROWS: &str = "\
\\set id random(1, 1000000000000)
WITH stored AS (
    INSERT INTO orders (merchant, identifier, status, customer_email, line_identifiers, created_at,
        updated_at, digest, document, received_at)
    VALUES (:merchant, :id::text, 'Shipped', :id || '@mail.example', ARRAY[:id || '-1', :id || '-2', :id || '-3'],
        now(), now(), sha256(:id::text::bytea), :document, now())
    ON CONFLICT ON CONSTRAINT orders_pkey DO UPDATE SET status = excluded.status,
        customer_email = excluded.customer_email, line_identifiers = excluded.line_identifiers,
        created_at = excluded.created_at, updated_at = excluded.updated_at, digest = excluded.digest,
        document = excluded.document, received_at = excluded.received_at
    WHERE orders.updated_at <= excluded.updated_at AND orders.digest <> excluded.digest
    RETURNING 1
)
INSERT INTO outbox (event_id, routing_key, event, created_at)
SELECT gen_random_uuid(), 'order.stored.v1', :event, now() FROM stored;
";

/// Totals of the service.
#[derive(Default)]
struct ServiceTotals {
    totals: Totals,
    round: Round,
    service_cpu: Duration,
    /// CPU time of the load generator.
    load_cpu: Duration,
}

pub(crate) async fn run() -> anyhow::Result<Report> {
    let (mut intake, mut full) = (Intake::start().await?, Intake::start().await?);
    fill(&mut intake, HISTORY).await?;
    fill(&mut full, HISTORY * 10).await?;
    let (mut service, mut pgbench_totals) = (ServiceTotals::default(), Totals::default());
    let mut at_10x = ServiceTotals::default();
    for _ in 0..ROUNDS {
        service.run_round(&mut intake).await?;
        let before = intake.postgres.cpu()?;
        let elapsed = pgbench(&intake)?;
        pgbench_totals.add(
            ROUND_ORDERS.into(),
            elapsed,
            intake.postgres.cpu()?.saturating_sub(before),
        );
        intake.delete_events().await?;
        at_10x.run_round(&mut full).await?;
    }
    intake.start_relay().await?;
    let requests = intake.requests(ROUND_ORDERS.into(), 1);
    let relaying = drive(&intake.address, CONNECTIONS.into(), requests).await?;

    let ServiceTotals { totals: service, round, service_cpu, load_cpu } = &service;
    let mut report = Report::default();
    report.figure("intake.per_second", service.rate(), "orders/s");
    report.figure("pgbench.per_second", pgbench_totals.rate(), "orders/s");
    report.at_least("rate_ratio", service.rate() / pgbench_totals.rate(), 1.2, "intake/pgbench");
    report.figure("intake.postgres_cpu", service.postgres_cpu_micros(), "CPU-us each");
    report.figure("pgbench.postgres_cpu", pgbench_totals.postgres_cpu_micros(), "CPU-us each");
    report.at_most(
        "postgres_cpu_ratio",
        service.postgres_cpu_micros() / pgbench_totals.postgres_cpu_micros(),
        0.6,
        "intake/pgbench",
    );
    report.figure("intake.own_cpu", micros(*service_cpu) / service.items, "CPU-us each");
    report.figure("intake.load_cpu", micros(*load_cpu) / service.items, "CPU-us each");
    report.figure("intake.p50", round.quantile(0.50).as_secs_f64() * 1e3, "ms");
    report.figure("intake.p99", round.quantile(0.99).as_secs_f64() * 1e3, "ms");
    report.figure("intake.per_second_at_10x", at_10x.totals.rate(), "orders/s");
    report.figure("intake.postgres_cpu_at_10x", at_10x.totals.postgres_cpu_micros(), "CPU-us each");
    let growth =
        (at_10x.totals.postgres_cpu_micros() / service.postgres_cpu_micros() - 1.0) * 100.0;
    report.at_most("postgres_cpu_growth", growth, 10.0, "%");
    report.figure("intake.per_second_while_relaying", relaying.rate(), "orders/s");
    let (now, highest) = intake.program.memory()?;
    report.figure("intake.memory", now, "MiB");
    report.figure("intake.memory_highest", highest, "MiB");
    Ok(report)
}

impl ServiceTotals {
    async fn run_round(&mut self, intake: &mut Intake) -> anyhow::Result<()> {
        let requests = intake.requests(ROUND_ORDERS.into(), 1);
        let (before, own_before) = (intake.postgres.cpu()?, intake.program.cpu()?);
        let load_before = cpu_of("self")?;
        let round = drive(&intake.address, CONNECTIONS.into(), requests).await?;
        let cpu = intake.postgres.cpu()?.saturating_sub(before);
        self.service_cpu += intake.program.cpu()?.saturating_sub(own_before);
        self.load_cpu += cpu_of("self")?.saturating_sub(load_before);
        self.totals.add(round.requests(), round.elapsed(), cpu);
        self.round.extend(round);
        intake.delete_events().await
    }
}

fn pgbench(intake: &Intake) -> anyhow::Result<Duration> {
    let order = typical_order()?;
    let document = document(&order).to_string();
    let event = json!({ "specversion": "1.0", "data": { "merchant": MERCHANT, "order": order } });
    let variables =
        [("merchant", MERCHANT), ("document", &document), ("event", &event.to_string())];
    intake.postgres.pgbench(SAME_ROWS, &variables, CONNECTIONS, ROUND_ORDERS)
}

/// An order with three lines, as in [`SAME_ROWS`].
fn typical_order() -> anyhow::Result<Order> {
    orders(2)?.find(|order| order.items.len() == 3).context("no order with three lines")
}

/// Inserts orders until there are `history`, then vacuums.
async fn fill(intake: &mut Intake, history: i64) -> anyhow::Result<()> {
    let stored = intake.postgres.count("SELECT count(*) FROM orders").await?;
    let order = document(&typical_order()?).to_string().replace('\'', "''");
    for from in (stored..history).step_by(50_000) {
        let to = (from + 50_000).min(history);
        let statement = format!(
            "INSERT INTO orders SELECT '{MERCHANT}', 'h' || n, 'Shipped', n || '@mail.example', \
                 ARRAY['h' || n || '-1', 'h' || n || '-2', 'h' || n || '-3'], now(), now(), sha256(n::text::bytea), \
                 '{order}', now() \
             FROM generate_series({from}, {to} - 1) AS n"
        );
        intake.postgres.execute(&statement).await?;
    }
    intake.postgres.execute("VACUUM ANALYZE orders").await?;
    intake.postgres.execute("CHECKPOINT").await
}
