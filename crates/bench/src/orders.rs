//! Orders, one in a request over 32 connections and as an import, until rma-engine has them.

use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use ctl::service_urls::ORDERS;
use domain::order::sample::{Orders, document, message};
use platform::Clock;
use tokio::process::Command;

use crate::front_doors::requests::{await_projection, post, projected_orders};
use crate::latencies::{millis, quantile};
use crate::load::send_all;
use crate::processes::{CpuTimes, count};
use crate::report::{Report, Table, number};
use crate::size::Size;
use crate::stack::{Group, Stack};

/// Orders of an import.
const IMPORTED: usize = 30_000;
const SEED: u64 = 2;

pub(crate) async fn measure(stack: &Stack, report: &mut Report, size: Size) -> anyhow::Result<()> {
    let rows =
        [one_by_one(stack, size.messages).await?, import(stack, size.items(IMPORTED)).await?];
    report.table(table("orders", "stored/s", "in rma-engine/s", &rows));
    Ok(())
}

/// A load and its figures.
pub(crate) struct Row {
    pub(crate) name: &'static str,
    pub(crate) accepted_per_second: f64,
    pub(crate) done_per_second: f64,
    /// Times from requests to responses, sorted.
    pub(crate) times: Vec<Duration>,
    pub(crate) cost: crate::processes::Cost,
}

pub(crate) fn table(title: &str, accepted: &str, done: &str, rows: &[Row]) -> Table {
    let mut headings = vec!["load", accepted, done, "CPU µs"];
    let processes = rows.first().map(|row| &row.cost.0[..]).unwrap_or_default();
    headings.extend(processes.iter().map(|(name, _)| name.as_str()));
    headings.extend(["response p50 ms", "p99 ms"]);
    let mut table = Table::new(title, &headings);
    for row in rows {
        let time = |at: f64| {
            if row.times.is_empty() {
                String::new()
            } else {
                number(millis(quantile(&row.times, at)))
            }
        };
        let figures = [row.accepted_per_second, row.done_per_second, row.cost.all()].map(number);
        let costs = row.cost.0.iter().map(|(_, micros)| number(*micros));
        table.row(row.name, figures.into_iter().chain(costs).chain([time(0.50), time(0.99)]));
    }
    table
}

async fn one_by_one(stack: &Stack, orders: usize) -> anyhow::Result<Row> {
    let address = stack.address(ORDERS)?;
    let merchants = stack.merchants(Group::Ten);
    let all = Orders::new(SEED, Clock::system().now());
    let first = u64::try_from(stack.unused(orders))?;
    let requests = merchants.iter().cycle().zip(first..).take(orders).map(|(merchant, index)| {
        post(&address, "/returns_portal_orders", merchant, &message([&all.at(index)]))
    });
    let requests: Vec<_> = requests.collect();
    let projecting = Projecting::start(stack, orders).await?;
    let responses = send_all(&address, requests, None).await?;
    let accepted = projecting.started.elapsed();
    let mut times: Vec<_> = responses.iter().map(|it| it.responded_at - it.sent_at).collect();
    times.sort_unstable();
    projecting.finish(stack, "one in a request", accepted, times).await
}

/// Imports orders with the command line. Its CPU time is not part of the cost.
async fn import(stack: &Stack, orders: usize) -> anyhow::Result<Row> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("orders.ndjson");
    let all = Orders::new(SEED, Clock::system().now());
    let first = u64::try_from(stack.unused(orders))?;
    let mut file = BufWriter::new(File::create(&path)?);
    for index in (first..).take(orders) {
        writeln!(file, "{}", document(&all.at(index)))?;
    }
    file.flush()?;
    let program = std::env::current_exe()?;
    let program = program.parent().context("the program has no folder")?.join("backhaul");
    let merchant = stack.merchants(Group::One);
    let merchant = merchant.first().context("there is no merchant")?;
    let projecting = Projecting::start(stack, orders).await?;
    let output = Command::new(program)
        .args(["orders", "import", "--json"])
        .arg(&path)
        .env("CLIENT_ID", &merchant.client_id)
        .env("CLIENT_SECRET", &merchant.client_secret)
        .output()
        .await?;
    let error = String::from_utf8_lossy(&output.stderr);
    anyhow::ensure!(output.status.success(), "the import failed: {error}");
    let accepted = projecting.started.elapsed();
    projecting.finish(stack, "import", accepted, Vec::new()).await
}

/// A load whose orders rma-engine does not have yet.
struct Projecting {
    orders: usize,
    /// Orders that rma-engine has in the end.
    expected: i64,
    before: CpuTimes,
    started: Instant,
}

impl Projecting {
    async fn start(stack: &Stack, orders: usize) -> anyhow::Result<Self> {
        let expected = projected_orders(stack).await? + i64::try_from(orders)?;
        let before = stack.processes.cpu()?;
        Ok(Self { orders, expected, before, started: Instant::now() })
    }

    async fn finish(
        self,
        stack: &Stack,
        name: &'static str,
        accepted: Duration,
        times: Vec<Duration>,
    ) -> anyhow::Result<Row> {
        await_projection(stack, self.expected).await?;
        let per_second = |time: Duration| count(self.orders) / time.as_secs_f64();
        Ok(Row {
            name,
            accepted_per_second: per_second(accepted),
            done_per_second: per_second(self.started.elapsed()),
            times,
            cost: stack.processes.cpu()?.since(&self.before, self.orders),
        })
    }
}
