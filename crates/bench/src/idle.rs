//! CPU time and memory while nothing happens.

use std::time::Duration;

use crate::processes::Cost;
use crate::report::{Goal, Report, Table, number};
use crate::size::Size;
use crate::stack::Stack;

/// Time for caches to fill after the start, and for the servers to finish their own start.
const WARM_UP: Duration = Duration::from_secs(60);
const PERIOD: Duration = Duration::from_secs(30);
const SERVERS: [&str; 2] = ["PostgreSQL", "RabbitMQ"];
/// The services of the goal for memory are those with a database, without the web pages.
const PAGES: [&str; 2] = ["console", "portal"];

pub(crate) async fn measure(stack: &Stack, report: &mut Report, size: Size) -> anyhow::Result<()> {
    tokio::time::sleep(size.time(WARM_UP)).await;
    let period = size.time(PERIOD);
    let before = stack.processes.cpu()?;
    tokio::time::sleep(period).await;
    let Cost(cost) = stack.processes.cpu()?.since(&before, 1);
    // Microseconds of CPU time in the period, as a percentage of a core.
    let percent = |micros: f64| micros / (period.as_secs_f64() * 1e6) * 100.0;
    let memory = stack.processes.memory()?;
    let mut table = Table::new("idle", &["process", "% of a core", "memory MiB (Pss)"]);
    for (name, micros) in &cost {
        let own = memory.iter().find(|(service, _)| service == name);
        let own = own.map(|(_, mebibytes)| number(*mebibytes)).unwrap_or_default();
        table.row(name, [number(percent(*micros)), own]);
    }
    report.table(table);
    let sum = |parts: &[(String, f64)], is_counted: &dyn Fn(&str) -> bool| -> f64 {
        parts.iter().filter(|(name, _)| is_counted(name)).map(|(_, part)| part).sum()
    };
    let is_server = |name: &str| SERVERS.contains(&name);
    let mut goal = |figure: &str, value: f64, at_most: f64| {
        report.goal(Goal { figure: format!("idle: {figure}"), value, at_most });
    };
    let services = percent(sum(&cost, &|name| !is_server(name)));
    goal("services and pages, % of a core", services, 1.0);
    goal("PostgreSQL and RabbitMQ, % of a core", percent(sum(&cost, &is_server)), 1.0);
    let memory = sum(&memory, &|name| !PAGES.contains(&name));
    goal("memory of the five services, MiB", memory, 150.0);
    Ok(())
}
