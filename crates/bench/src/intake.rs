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
use crate::proc_stat::cpu_of;
use crate::raw_http::drive;
use crate::report::Report;
use crate::size::{Size, count};
use crate::totals::{Totals, micros};

const CONNECTIONS: usize = 32;
const ROUNDS: usize = 8;
/// Orders per round.
const ROUND_ORDERS: usize = 16_000;
/// Orders stored before the first round.
const HISTORY: usize = 50_000;

/// The rows that the service inserts for an order, in one statement: the order, its lines and its event.
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
), lines AS (
    INSERT INTO order_lines (line_identifier, merchant, order_identifier)
    SELECT :id::text || '-' || n, :merchant::text, :id::text FROM generate_series(1, 3) AS n
    ON CONFLICT DO NOTHING
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

pub(crate) async fn run(size: Size) -> anyhow::Result<Report> {
    let (mut intake, mut full) = (Intake::start().await?, Intake::start().await?);
    let (orders, history) = (size.items(ROUND_ORDERS), size.items(HISTORY));
    fill(&mut intake, history).await?;
    fill(&mut full, history * 10).await?;
    let (mut service, mut pgbench_totals) = (ServiceTotals::default(), Totals::default());
    let mut at_10x = ServiceTotals::default();
    for _ in 0..size.rounds(ROUNDS) {
        service.run_round(&mut intake, orders).await?;
        let before = intake.postgres.cpu()?;
        let elapsed = pgbench(&intake, orders)?;
        let cpu = intake.postgres.cpu()?.saturating_sub(before);
        pgbench_totals.add(count(orders), elapsed, cpu);
        intake.delete_events().await?;
        at_10x.run_round(&mut full, orders).await?;
    }
    intake.start_relay().await?;
    let requests = intake.requests(orders, 1);
    let relaying = drive(&intake.address, CONNECTIONS, requests).await?;

    let mut report = Report::default();
    service.report(&mut report, &pgbench_totals);
    report.figure("per_second_at_10x", at_10x.totals.rate(), "orders/s");
    let (before, at_10x) =
        (service.totals.postgres_cpu_micros(), at_10x.totals.postgres_cpu_micros());
    report.figure("postgres_cpu_at_10x", at_10x, "CPU-us each");
    report.figure("postgres_cpu_growth", (at_10x / before - 1.0) * 100.0, "%");
    report.figure("per_second_while_relaying", relaying.rate(), "orders/s");
    let (now, highest) = intake.program.memory()?;
    report.figure("memory", now, "MiB");
    report.figure("memory_highest", highest, "MiB");
    Ok(report)
}

impl ServiceTotals {
    fn report(&self, report: &mut Report, pgbench: &Totals) {
        let Self { totals, round, service_cpu, load_cpu } = self;
        report.figure("per_second", totals.rate(), "orders/s");
        report.figure("pgbench.per_second", pgbench.rate(), "orders/s");
        report.figure("rate_ratio", totals.rate() / pgbench.rate(), "intake/pgbench");
        let (own, postgres) = (micros(*service_cpu) / totals.items, totals.postgres_cpu_micros());
        report.figure("cpu", own + postgres, "CPU-us each");
        report.figure("own_cpu", own, "CPU-us each");
        report.figure("postgres_cpu", postgres, "CPU-us each");
        report.figure("pgbench.postgres_cpu", pgbench.postgres_cpu_micros(), "CPU-us each");
        let ratio = postgres / pgbench.postgres_cpu_micros();
        report.figure("postgres_cpu_ratio", ratio, "intake/pgbench");
        report.figure("load_cpu", micros(*load_cpu) / totals.items, "CPU-us each");
        report.latencies("response", round);
    }

    async fn run_round(&mut self, intake: &mut Intake, orders: usize) -> anyhow::Result<()> {
        let requests = intake.requests(orders, 1);
        let (before, own_before) = (intake.postgres.cpu()?, intake.program.cpu()?);
        let load_before = cpu_of("self")?;
        let round = drive(&intake.address, CONNECTIONS, requests).await?;
        let cpu = intake.postgres.cpu()?.saturating_sub(before);
        self.service_cpu += intake.program.cpu()?.saturating_sub(own_before);
        self.load_cpu += cpu_of("self")?.saturating_sub(load_before);
        self.totals.add(round.requests(), round.elapsed(), cpu);
        self.round.extend(round);
        intake.delete_events().await
    }
}

fn pgbench(intake: &Intake, orders: usize) -> anyhow::Result<Duration> {
    let order = typical_order()?;
    let document = document(&order).to_string();
    let event = json!({ "specversion": "1.0", "data": { "merchant": MERCHANT, "order": order } });
    let variables =
        [("merchant", MERCHANT), ("document", &document), ("event", &event.to_string())];
    intake.postgres.pgbench(SAME_ROWS, &variables, CONNECTIONS, orders)
}

/// An order with three lines, as in [`SAME_ROWS`].
fn typical_order() -> anyhow::Result<Order> {
    orders(2)?.find(|order| order.items.len() == 3).context("no order with three lines")
}

/// Inserts orders until there are `history`, then vacuums.
async fn fill(intake: &mut Intake, history: usize) -> anyhow::Result<()> {
    let order = document(&typical_order()?).to_string().replace('\'', "''");
    for from in (0..history).step_by(50_000) {
        let to = (from + 50_000).min(history);
        let statement = format!(
            "INSERT INTO orders (merchant, identifier, status, customer_email, line_identifiers, \
                 created_at, updated_at, digest, document, received_at) \
             SELECT '{MERCHANT}', 'h' || n, 'Shipped', n || '@mail.example', \
                 ARRAY['h' || n || '-1', 'h' || n || '-2', 'h' || n || '-3'], now(), now(), sha256(n::text::bytea), \
                 '{order}', now() \
             FROM generate_series({from}, {to} - 1) AS n"
        );
        intake.postgres.execute(&statement).await?;
        let lines = format!(
            "INSERT INTO order_lines (line_identifier, merchant, order_identifier) \
             SELECT 'h' || n || '-' || line, '{MERCHANT}', 'h' || n \
             FROM generate_series({from}, {to} - 1) AS n, generate_series(1, 3) AS line"
        );
        intake.postgres.execute(&lines).await?;
    }
    intake.postgres.execute("VACUUM ANALYZE orders, order_lines").await?;
    intake.postgres.execute("CHECKPOINT").await
}
