//! Units received, one a request over 32 connections and a hundred a request over four, against
//! `pgbench` inserting the same rows, in transactions of the same size over as many connections, in
//! the same PostgreSQL. A unit counts when its receipt and its message are committed.

use std::time::Duration;

use anyhow::Context as _;
use domain::json::Document;
use domain::warehouse::sample::{inbound_asn, receipt};
use domain::warehouse::{ExpectedUnit, InboundAsn, ReceiptBatch};

use crate::report::Report;
use crate::turns::{Turns, micros};
use crate::units::{ASNS, MERCHANT, Notifier};
use crate::wire::drive;

const ROUNDS: usize = 3;
const PALLET: usize = 10_000;

/// One way of receiving units.
#[derive(Clone, Copy)]
struct Way {
    name: &'static str,
    connections: u16,
    units_a_request: u16,
    /// Requests in one turn of either side.
    requests: u16,
}

const WAYS: [Way; 2] = [
    Way { name: "singly", connections: 32, units_a_request: 1, requests: 6_400 },
    Way { name: "in_hundreds", connections: 4, units_a_request: 100, requests: 240 },
];

/// What both sides came to.
#[derive(Default)]
struct Measured {
    ours: Turns,
    pgbench: Turns,
    /// The service's own CPU time.
    service_cpu: Duration,
}

pub(crate) async fn run() -> anyhow::Result<Report> {
    let mut notifier = Notifier::start().await?;
    let mut report = Report::default();
    for way in WAYS {
        let Measured { ours, pgbench, service_cpu } = measure(&mut notifier, way).await?;
        let mut figure = |name: &str, value: f64, unit: &'static str| {
            report.figure(&format!("{}.{name}", way.name), value, unit);
        };
        figure("per_second", ours.rate(), "units/s");
        figure("pgbench.per_second", pgbench.rate(), "units/s");
        figure("rate_ratio", ours.rate() / pgbench.rate(), "ours/pgbench");
        figure("own_cpu", micros(service_cpu) / ours.items, "CPU-us each");
        figure("postgres_cpu", ours.cost(), "CPU-us each");
        figure("pgbench.postgres_cpu", pgbench.cost(), "CPU-us each");
        figure("postgres_cpu_ratio", ours.cost() / pgbench.cost(), "ours/pgbench");
    }
    let (before, _) = notifier.program.memory()?;
    let took = notifier.pallet(PALLET).await?;
    let (_, highest) = notifier.program.memory()?;
    report.figure("pallet_of_10000.seconds", took.as_secs_f64(), "s");
    report.figure("memory_before_pallet", before, "MiB");
    report.figure("memory_highest", highest, "MiB");
    Ok(report)
}

/// Lets the two take turns, once before it counts.
async fn measure(notifier: &mut Notifier, way: Way) -> anyhow::Result<Measured> {
    let mut measured = Measured::default();
    let (requests, units) = (usize::from(way.requests), usize::from(way.units_a_request));
    let items = f64::from(way.requests) * f64::from(way.units_a_request);
    for round in 0..=ROUNDS {
        let prepared = notifier.requests(requests, units);
        let (before, own_before) = (notifier.postgres.cpu()?, notifier.program.cpu()?);
        let driven = drive(&notifier.address, way.connections.into(), prepared).await?;
        let cpu = notifier.postgres.cpu()?.saturating_sub(before);
        let own = notifier.program.cpu()?.saturating_sub(own_before);

        let before = notifier.postgres.cpu()?;
        let took = pgbench(notifier, way)?;
        let pgbench_cpu = notifier.postgres.cpu()?.saturating_sub(before);
        if round > 0 {
            measured.ours.add(items, driven.took(), cpu);
            measured.service_cpu += own;
            measured.pgbench.add(items, took, pgbench_cpu);
        }
    }
    Ok(measured)
}

fn pgbench(notifier: &Notifier, way: Way) -> anyhow::Result<Duration> {
    let message = message()?;
    let variables = [("merchant", MERCHANT), ("message", &message)];
    let script = same_work(way.units_a_request);
    notifier.postgres.pgbench(&script, &variables, way.connections, way.requests)
}

/// A message as the service makes it of a report and an ASN.
fn message() -> anyhow::Result<String> {
    let asn = InboundAsn::read(&Document::from(inbound_asn("IN-1", 1)))?;
    let header = asn.header.clone();
    let line = asn.into_lines().next().context("an ASN without lines")?;
    let receipts = ReceiptBatch::read(&Document::from(receipt("IN-1", 1)))?.receipts;
    let mut message = receipts.into_iter().next().context("no receipt")?;
    message
        .complete(&ExpectedUnit { header: &header, line: &line }, str::to_owned)
        .map_err(|error| anyhow::anyhow!("{error}"))?;
    Ok(serde_json::to_string(&message)?)
}

/// What the service writes for so many units of one ASN, as one statement. A colon in a literal would
/// be a variable to pgbench.
fn same_work(units: u16) -> String {
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
    INSERT INTO delivery_ordering_keys AS known (merchant, ordering_key, last)
    VALUES (:merchant::text, 'asn' || chr(58) || 'IN-' || :asn::text, {units})
    ON CONFLICT (merchant, ordering_key) DO UPDATE SET last = known.last + {units} RETURNING last
), told AS (
    SELECT id, last - {units} + row_number() OVER () AS sequence FROM stored, ordering_key
), kept AS (
    INSERT INTO delivery_messages (id, merchant, kind, ordering_key, sequence, event, body, created_at)
    SELECT id, :merchant::text, 'inventory-receipt', 'asn' || chr(58) || 'IN-' || :asn::text, sequence,
        'inventory_receipt.received', convert_to(:message::text, 'UTF8'), now() FROM told
)
INSERT INTO deliveries (id, merchant, kind, ordering_key, sequence, state, due_at)
SELECT id, :merchant::text, 'inventory-receipt', 'asn' || chr(58) || 'IN-' || :asn::text, sequence, 'ready', now() FROM told;
"
    )
}
