//! The front doors: a request with a token comes in over HTTP, and its message arrives at the merchant. Each door is
//! measured in a closed loop and at fixed rates, beside the bare loop.

mod arrived;
pub(crate) mod requests;

use std::time::Duration;

use anyhow::Context as _;
use ctl::service_urls::{RETURNS, WAREHOUSE};
use ctl::settings::Setting;

use self::arrived::{Arrived, Sent};
use self::requests::Request;
use crate::bare_loop::{self, BareLoop};
use crate::load::{Response, send_all};
use crate::processes::{Cost, count};
use crate::report::{Goal, Report, Table, number};
use crate::size::Size;
use crate::stack::{Group, Stack};

/// Time of a run at a fixed rate.
const PERIOD: Duration = Duration::from_secs(20);
/// The rate at which a service does one thing at a time, in messages per second.
pub(crate) const SLOW: f64 = 50.0;
/// Parts of the rate of the closed loop.
const PARTS: [f64; 3] = [0.2, 0.5, 0.8];

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Door {
    Receipts,
    Returns,
    CarrierEvents,
}

/// The result of a run.
pub(crate) struct Run {
    name: String,
    offered: Option<f64>,
    accepted_per_second: f64,
    pub(crate) cost: Cost,
    pub(crate) arrived: Arrived,
}

impl Door {
    fn name(self) -> &'static str {
        match self {
            Self::Receipts => "receipts",
            Self::Returns => "started returns",
            Self::CarrierEvents => "carrier events",
        }
    }

    /// The service with the door, by name and URL.
    fn service(self) -> (&'static str, Setting) {
        match self {
            Self::Receipts => ("warehouse-notifier", WAREHOUSE),
            Self::Returns | Self::CarrierEvents => ("rma-engine", RETURNS),
        }
    }

    async fn requests(
        self,
        stack: &Stack,
        group: Group,
        number: usize,
    ) -> anyhow::Result<Vec<Request>> {
        let merchants = stack.merchants(group);
        match self {
            Self::Receipts => requests::receipts(stack, &merchants, number),
            Self::Returns => requests::returns(stack, &merchants, number).await,
            Self::CarrierEvents => requests::carrier_events(stack, &merchants, number).await,
        }
    }

    /// Sends requests and waits until their messages are settled.
    pub(crate) async fn run(
        self,
        stack: &Stack,
        name: &str,
        group: Group,
        offered: Option<f64>,
        number: usize,
    ) -> anyhow::Result<Run> {
        eprintln!("    {}: {name}, {number} messages", self.name());
        let requests = self.requests(stack, group, number).await?;
        let (service, address) = self.service();
        let address = stack.address(address)?;
        let (bytes, expected): (Vec<_>, Vec<_>) =
            requests.into_iter().map(|request| (request.bytes, request.expected)).unzip();
        let messages = expected.iter().flatten().count();
        stack.receiver.take();
        let before = stack.processes.cpu()?;
        let responses = send_all(&address, bytes, offered).await?;
        stack.await_arrivals(messages).await?;
        stack.await_settled(service).await?;
        let cost = stack.processes.cpu()?.since(&before, messages);
        let sent = responses.iter().zip(expected).filter_map(|(response, expected)| {
            let expected = expected?;
            let subject = expected.subject.map_or_else(|| requests::named_return(response), Ok);
            Some(subject.map(|subject| Sent::new(subject, expected.sequence, response)))
        });
        let sent = sent.collect::<anyhow::Result<Vec<_>>>()?;
        let arrived = Arrived::new(sent, stack.receiver.take())?;
        let accepted_per_second = accepted_per_second(&responses)?;
        Ok(Run { name: name.to_owned(), offered, accepted_per_second, cost, arrived })
    }

    /// Measures the door with all loads.
    pub(crate) async fn measure(
        self,
        stack: &Stack,
        report: &mut Report,
        size: Size,
    ) -> anyhow::Result<()> {
        let messages = size.messages;
        self.run(stack, "warm-up", Group::Ten, None, messages / 10).await?;
        let closed = self.run(stack, "ten merchants", Group::Ten, None, messages).await?;
        let bare = bare_loop::measure(stack, messages).await?;
        let rate = closed.arrived.per_second;
        let mut runs = vec![closed];
        runs.push(self.run(stack, "one merchant", Group::One, None, messages).await?);
        for part in PARTS {
            let name = format!("{:.0} % of the rate", part * 100.0);
            runs.push(self.run_at(stack, &name, part * rate, size).await?);
        }
        runs.push(self.run_at(stack, "50 a second", SLOW, size).await?);
        runs.push(self.run(stack, "one of ten hangs", Group::OneHangs, None, messages / 2).await?);
        self.report(report, &bare, &runs);
        for run in &runs {
            run.arrived.check().with_context(|| format!("{}: {}", self.name(), run.name))?;
        }
        Ok(())
    }

    /// Sends requests at a fixed rate for some time.
    pub(crate) async fn run_at(
        self,
        stack: &Stack,
        name: &str,
        rate: f64,
        size: Size,
    ) -> anyhow::Result<Run> {
        let number = size.at_rate(rate, PERIOD);
        self.run(stack, name, Group::Ten, Some(rate), number).await
    }

    fn report(self, report: &mut Report, bare: &BareLoop, runs: &[Run]) {
        let name = self.name();
        let mut table = Table::new(
            name,
            &[
                "load",
                "offered/s",
                "accepted/s",
                "delivered/s",
                "CPU µs",
                "bare loops",
                "posts",
                "p50 ms",
                "p99 ms",
                "accepted p50 ms",
                "longest backlog",
                "twice",
                "out of order",
            ],
        );
        for run in runs {
            let Run { offered, accepted_per_second: accepted, arrived, cost, .. } = run;
            table.row(
                &run.name,
                [
                    offered.map(number).unwrap_or_default(),
                    number(*accepted),
                    number(arrived.per_second),
                    number(cost.all()),
                    number(cost.all() / bare.all()),
                    number(cost.all() / bare.post),
                    number(arrived.millis(0.50)),
                    number(arrived.millis(0.99)),
                    number(arrived.accepted_millis),
                    arrived.longest_backlog.to_string(),
                    arrived.duplicates.to_string(),
                    arrived.out_of_order.to_string(),
                ],
            );
        }
        report.table(table);
        report.table(costs(name, bare, runs));
        self.compare_with_goals(report, bare, runs);
    }

    /// The goals are in posts: the part of the bare loop that consumes, posts and acknowledges.
    fn compare_with_goals(self, report: &mut Report, bare: &BareLoop, runs: &[Run]) {
        let mut goal = |run: &Run, figure: &str, value: f64, goal: f64| {
            let figure = format!("{}, {}: {figure}", self.name(), run.name);
            report.goal(Goal { figure, value, at_most: goal });
        };
        for run in runs {
            let posts = run.cost.all() / bare.post;
            match run.name.as_str() {
                "ten merchants" | "one merchant" => {
                    goal(run, "CPU in posts", posts, 7.0);
                    goal(run, "p50 ms", run.arrived.millis(0.50), 100.0);
                    goal(run, "p99 ms", run.arrived.millis(0.99), 500.0);
                }
                "50 a second" => goal(run, "CPU in posts", posts, 50.0),
                _ => {}
            }
        }
    }
}

/// The CPU time of a message by process.
fn costs(name: &str, bare: &BareLoop, runs: &[Run]) -> Table {
    let processes: Vec<_> = runs.iter().flat_map(|run| &run.cost.0).map(|(name, _)| name).collect();
    let processes = processes.get(..processes.len() / runs.len().max(1)).unwrap_or_default();
    let headings: Vec<_> =
        ["load"].into_iter().chain(processes.iter().map(|it| it.as_str())).collect();
    let mut table = Table::new(&format!("{name}: CPU µs a message, by process"), &headings);
    for run in runs {
        table.row(&run.name, run.cost.0.iter().map(|(_, micros)| number(*micros)));
    }
    table.note(&format!(
        "bare loop: {} µs (insert {}, publish {}, consume, post and acknowledge {})",
        number(bare.all()),
        number(bare.insert),
        number(bare.publish),
        number(bare.post)
    ));
    table
}

fn accepted_per_second(responses: &[Response]) -> anyhow::Result<f64> {
    let first = responses.iter().map(|it| it.sent_at).min().context("no request")?;
    let last = responses.iter().map(|it| it.responded_at).max().context("no request")?;
    Ok(count(responses.len()) / (last - first).as_secs_f64())
}
