//! Receipts of one unit per request over 32 connections and of a hundred units per request over four,
//! compared with `pgbench` inserting the same rows in transactions of the same size over as many connections.
//! A unit counts when its receipt and its message are committed.

use std::time::Duration;

use anyhow::Context as _;
use domain::json::Document;
use domain::warehouse::sample::{inbound_asn, receipt};
use domain::warehouse::{ExpectedUnit, InboundAsn, ReceiptBatch};

use crate::notifier_process::{ASNS, MERCHANT, Notifier};
use crate::raw_http::drive;
use crate::report::Report;
use crate::size::{Size, count};
use crate::totals::{Totals, micros};

const ROUNDS: usize = 3;
const PALLET: usize = 10_000;

#[derive(Clone, Copy)]
struct Workload {
    name: &'static str,
    connections: usize,
    units_per_request: usize,
    /// Requests per round.
    requests: usize,
}

const WORKLOADS: [Workload; 2] = [
    Workload { name: "singly", connections: 32, units_per_request: 1, requests: 6_400 },
    Workload { name: "in_hundreds", connections: 4, units_per_request: 100, requests: 240 },
];

#[derive(Default)]
struct Measurement {
    service: Totals,
    pgbench: Totals,
    service_cpu: Duration,
}

pub(crate) async fn run(size: Size) -> anyhow::Result<Report> {
    let mut notifier = Notifier::start().await?;
    let mut report = Report::default();
    for mut workload in WORKLOADS {
        workload.requests = size.items(workload.requests);
        let Measurement { service, pgbench, service_cpu } =
            measure(&mut notifier, workload, size.rounds(ROUNDS)).await?;
        let mut figure = |name: &str, value: f64, unit: &'static str| {
            report.figure(&format!("{}.{name}", workload.name), value, unit);
        };
        figure("per_second", service.rate(), "units/s");
        figure("pgbench.per_second", pgbench.rate(), "units/s");
        figure("rate_ratio", service.rate() / pgbench.rate(), "ours/pgbench");
        let own = micros(service_cpu) / service.items;
        figure("cpu", own + service.postgres_cpu_micros(), "CPU-us each");
        figure("own_cpu", own, "CPU-us each");
        figure("postgres_cpu", service.postgres_cpu_micros(), "CPU-us each");
        figure("pgbench.postgres_cpu", pgbench.postgres_cpu_micros(), "CPU-us each");
        figure(
            "postgres_cpu_ratio",
            service.postgres_cpu_micros() / pgbench.postgres_cpu_micros(),
            "ours/pgbench",
        );
    }
    let (before, _) = notifier.program.memory()?;
    let elapsed = notifier.send_pallet(size.items(PALLET)).await?;
    let (_, highest) = notifier.program.memory()?;
    report.figure("pallet_of_10000.seconds", elapsed.as_secs_f64(), "s");
    report.figure("memory_before_pallet", before, "MiB");
    report.figure("memory_highest", highest, "MiB");
    Ok(report)
}

/// Alternates between the service and `pgbench`. The first round is a warm-up.
async fn measure(
    notifier: &mut Notifier,
    workload: Workload,
    rounds: usize,
) -> anyhow::Result<Measurement> {
    let mut measurement = Measurement::default();
    let items = count(workload.requests * workload.units_per_request);
    for round in 0..=rounds {
        let prepared = notifier.requests(workload.requests, workload.units_per_request);
        let (before, own_before) = (notifier.postgres.cpu()?, notifier.program.cpu()?);
        let driven = drive(&notifier.address, workload.connections, prepared).await?;
        let cpu = notifier.postgres.cpu()?.saturating_sub(before);
        let own = notifier.program.cpu()?.saturating_sub(own_before);

        let before = notifier.postgres.cpu()?;
        let elapsed = pgbench(notifier, workload)?;
        let pgbench_cpu = notifier.postgres.cpu()?.saturating_sub(before);
        if round > 0 {
            measurement.service.add(items, driven.elapsed(), cpu);
            measurement.service_cpu += own;
            measurement.pgbench.add(items, elapsed, pgbench_cpu);
        }
    }
    Ok(measurement)
}

fn pgbench(notifier: &Notifier, workload: Workload) -> anyhow::Result<Duration> {
    let message = message()?;
    let variables = [("merchant", MERCHANT), ("message", &message)];
    let script = same_rows(workload.units_per_request);
    notifier.postgres.pgbench(&script, &variables, workload.connections, workload.requests)
}

/// A message as the service creates it from a receipt and an ASN.
fn message() -> anyhow::Result<String> {
    let asn = InboundAsn::read(&Document::from(inbound_asn("IN-1", 1)))?;
    let header = asn.header.clone();
    let line = asn.into_lines().next().context("the ASN has no lines")?;
    let receipts = ReceiptBatch::read(&Document::from(receipt("IN-1", 1)))?.receipts;
    let mut message = receipts.into_iter().next().context("no receipt")?;
    message
        .complete(&ExpectedUnit { header: &header, line: &line }, str::to_owned)
        .map_err(|error| anyhow::anyhow!("{error}"))?;
    Ok(serde_json::to_string(&message)?)
}

/// The rows that the service inserts for the units of one ASN, in one statement. `chr(58)` is a colon, which
/// would be a variable in a literal.
fn same_rows(units: usize) -> String {
    let last_asn = ASNS - 1;
    format!(
        "\\set asn random(0, {last_asn})
\\set unit random(1, 1000000000000)
WITH stored AS (
    INSERT INTO receipts (merchant, asn_number, unit_identifier, id, line_identifier, message,
        received_at)
    SELECT :merchant::text, 'IN-' || :asn::text, 'p' || :unit::text || '-' || n,
        (lpad(to_hex((extract(epoch FROM clock_timestamp()) * 1000)::bigint), 12, '0') || '7'
            || substr(md5(random()::text), 1, 3) || '8' || substr(md5(random()::text), 1, 15))::uuid,
        'L-1', :message::text, now()
    FROM generate_series(1, {units}) AS n
    ON CONFLICT ON CONSTRAINT receipts_pkey DO NOTHING RETURNING id
), ordering_key AS (
    INSERT INTO delivery_ordering_keys AS stored (merchant, ordering_key, last_sequence)
    VALUES (:merchant::text, 'asn' || chr(58) || 'IN-' || :asn::text, {units})
    ON CONFLICT (merchant, ordering_key) DO UPDATE SET last_sequence = stored.last_sequence + {units} RETURNING last_sequence
), messages AS (
    SELECT id, last_sequence - {units} + row_number() OVER () AS sequence FROM stored, ordering_key
), inserted AS (
    INSERT INTO delivery_messages (id, merchant, kind, version, ordering_key, sequence, event, body, created_at)
    SELECT id, :merchant::text, 'inventory-receipt', 1, 'asn' || chr(58) || 'IN-' || :asn::text, sequence,
        'inventory_receipt.received', convert_to(:message::text, 'UTF8'), now() FROM messages
)
INSERT INTO deliveries (id, merchant, kind, ordering_key, sequence, state, next_attempt_at)
SELECT id, :merchant::text, 'inventory-receipt', 'asn' || chr(58) || 'IN-' || :asn::text, sequence, 'ready', now() FROM messages;
"
    )
}
