//! One order a request over 32 connections, against `pgbench` storing the same rows one order a
//! transaction over as many connections in the same PostgreSQL, and against itself with ten times as
//! much stored. The three take turns, so that a slow minute of the machine is everyone's.

use std::time::Duration;

use anyhow::Context as _;
use domain::order::Order;
use domain::order::sample::document;
use serde_json::json;

use crate::load::Round;
use crate::orders::{Intake, MERCHANT, shop};
use crate::process::cpu_of;
use crate::report::Report;
use crate::turns::{Turns, micros};
use crate::wire::drive;

const CONNECTIONS: u16 = 32;
const ROUNDS: usize = 8;
/// Orders in one turn of either.
const TURN: u16 = 16_000;
/// Orders stored before the first measurement.
const HISTORY: i64 = 50_000;

/// What the service does for an order, as one statement: the row, and the event beside it.
const SAME_WORK: &str = "\
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

/// What the service came to.
#[derive(Default)]
struct Measured {
    turns: Turns,
    round: Round,
    /// The service's own CPU time.
    service_cpu: Duration,
    /// That of whoever sends the requests.
    load_cpu: Duration,
}

pub(crate) async fn run() -> anyhow::Result<Report> {
    let (mut intake, mut full) = (Intake::start().await?, Intake::start().await?);
    fill(&mut intake, HISTORY).await?;
    fill(&mut full, HISTORY * 10).await?;
    let (mut ours, mut theirs) = (Measured::default(), Turns::default());
    let mut at_10x = Measured::default();
    for _ in 0..ROUNDS {
        ours.turn(&mut intake).await?;
        let before = intake.postgres.cpu()?;
        let took = pgbench(&intake)?;
        theirs.add(TURN.into(), took, intake.postgres.cpu()?.saturating_sub(before));
        intake.forget_events().await?;
        at_10x.turn(&mut full).await?;
    }
    intake.relay().await?;
    let requests = intake.requests(TURN.into(), 1);
    let relaying = drive(&intake.address, CONNECTIONS.into(), requests).await?;

    let Measured { turns: ours, round, service_cpu, load_cpu } = &ours;
    let mut report = Report::default();
    report.figure("intake.per_second", ours.rate(), "orders/s");
    report.figure("pgbench.per_second", theirs.rate(), "orders/s");
    report.at_least("rate_ratio", ours.rate() / theirs.rate(), 1.2, "intake/pgbench");
    report.figure("intake.postgres_cpu", ours.cost(), "CPU-us each");
    report.figure("pgbench.postgres_cpu", theirs.cost(), "CPU-us each");
    report.at_most("postgres_cpu_ratio", ours.cost() / theirs.cost(), 0.6, "intake/pgbench");
    report.figure("intake.own_cpu", micros(*service_cpu) / ours.items, "CPU-us each");
    report.figure("intake.load_cpu", micros(*load_cpu) / ours.items, "CPU-us each");
    report.figure("intake.p50", round.quantile(0.50).as_secs_f64() * 1e3, "ms");
    report.figure("intake.p99", round.quantile(0.99).as_secs_f64() * 1e3, "ms");
    report.figure("intake.per_second_at_10x", at_10x.turns.rate(), "orders/s");
    report.figure("intake.postgres_cpu_at_10x", at_10x.turns.cost(), "CPU-us each");
    let growth = (at_10x.turns.cost() / ours.cost() - 1.0) * 100.0;
    report.at_most("postgres_cpu_growth", growth, 10.0, "%");
    report.figure("intake.per_second_while_relaying", relaying.rate(), "orders/s");
    let (now, highest) = intake.program.memory()?;
    report.figure("intake.memory", now, "MiB");
    report.figure("intake.memory_highest", highest, "MiB");
    Ok(report)
}

impl Measured {
    /// One turn of the service.
    async fn turn(&mut self, intake: &mut Intake) -> anyhow::Result<()> {
        let requests = intake.requests(TURN.into(), 1);
        let (before, own_before) = (intake.postgres.cpu()?, intake.program.cpu()?);
        let load_before = cpu_of("self")?;
        let round = drive(&intake.address, CONNECTIONS.into(), requests).await?;
        let cpu = intake.postgres.cpu()?.saturating_sub(before);
        self.service_cpu += intake.program.cpu()?.saturating_sub(own_before);
        self.load_cpu += cpu_of("self")?.saturating_sub(load_before);
        self.turns.add(round.requests(), round.took(), cpu);
        self.round.join(round);
        intake.forget_events().await
    }
}

fn pgbench(intake: &Intake) -> anyhow::Result<Duration> {
    let order = typical()?;
    let document = document(&order).to_string();
    let event = json!({ "specversion": "1.0", "data": { "merchant": MERCHANT, "order": order } });
    let variables =
        [("merchant", MERCHANT), ("document", &document), ("event", &event.to_string())];
    intake.postgres.pgbench(SAME_WORK, &variables, CONNECTIONS, TURN)
}

/// An order like the others, of three lines as the statements say.
fn typical() -> anyhow::Result<Order> {
    shop(2)?.find(|order| order.items.len() == 3).context("an endless shop ended")
}

/// Stores orders until there are so many, then lets PostgreSQL tidy up.
async fn fill(intake: &mut Intake, history: i64) -> anyhow::Result<()> {
    let stored = intake.postgres.count("SELECT count(*) FROM orders").await?;
    let order = document(&typical()?).to_string().replace('\'', "''");
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
