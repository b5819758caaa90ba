//! A republish of all merchants, while receipts arrive at a fixed rate.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::front_doors::{Door, SLOW};
use crate::poll::poll;
use crate::report::{Goal, Report, Table, number};
use crate::size::Size;
use crate::stack::Stack;
use crate::stack::merchants::REPLICAS;

const MERCHANTS: usize = 100_000;
const TIMEOUT: Duration = Duration::from_secs(600);

pub(crate) async fn measure(stack: &Stack, report: &mut Report, size: Size) -> anyhow::Result<()> {
    let merchants = size.items(MERCHANTS);
    create_merchants(stack, merchants).await?;
    let before = Door::Receipts.run_at(stack, "before the republish", SLOW, size).await?;
    let (during, republished) = tokio::join!(
        Door::Receipts.run_at(stack, "during the republish", SLOW, size),
        republish(stack, merchants)
    );
    let during = during?;
    let elapsed = republished?;
    let mut table = Table::new("republish", &["receipts at 50 a second", "p50 ms", "p99 ms"]);
    for (name, run) in [("before", &before), ("during the republish", &during)] {
        table.row(name, [0.50, 0.99].map(|at| number(run.arrived.millis(at))));
    }
    table.note(&format!(
        "republish of {merchants} merchants to {} services: {} s",
        REPLICAS.len(),
        number(elapsed.as_secs_f64())
    ));
    report.table(table);
    let value = during.arrived.millis(0.99) / before.arrived.millis(0.99);
    report.goal(Goal { figure: "republish: growth of the p99".to_owned(), value, at_most: 2.0 });
    before.arrived.check()?;
    during.arrived.check()
}

/// Copies a merchant in the database of auth.
async fn create_merchants(stack: &Stack, merchants: usize) -> anyhow::Result<()> {
    let copied = json!({"identifier": "copied", "name": "copied"});
    stack.operator.post(&["v1", "merchants"], &copied).await?;
    let copies = format!(
        "INSERT INTO merchants \
         SELECT (jsonb_populate_record(template, jsonb_build_object('identifier', 'copy-' || n, \
             'document', jsonb_set(template.document, '{{identifier}}', to_jsonb('copy-' || n))))).* \
         FROM merchants AS template, generate_series(1, {merchants}) AS n \
         WHERE template.identifier = 'copied'; \
         ANALYZE merchants"
    );
    stack.database("auth").await?.execute(&copies).await
}

/// The time until all services have all merchants.
async fn republish(stack: &Stack, merchants: usize) -> anyhow::Result<Duration> {
    let started = Instant::now();
    stack.operator.post(&["v1", "merchants", "republish"], &json!({})).await?;
    let merchants = i64::try_from(merchants)?;
    for service in REPLICAS {
        let postgres = stack.database(service).await?;
        poll("the services have the merchants", TIMEOUT, async || {
            let known = "SELECT count(*) FROM replica_merchants WHERE identifier LIKE 'copy-%'";
            let known: i64 = postgres.value(known).await?;
            Ok((known >= merchants).then_some(()))
        })
        .await?;
    }
    Ok(started.elapsed())
}
