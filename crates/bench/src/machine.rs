//! The conditions of a run: the machine, the versions and the load.

use std::{fs, process::Command};

use crate::postgres::Postgres;
use crate::rabbitmq;
use crate::settings::database_url;
use crate::stack::Stack;

/// The conditions as a Markdown list.
pub(crate) async fn describe(stack: &Stack, load_before: f64) -> anyhow::Result<String> {
    let postgres = Postgres::connect(&database_url(&stack.settings, "postgres")?).await?;
    let cores = std::thread::available_parallelism()?;
    let facts = [
        ("date", platform::Clock::system().now().format("%Y-%m-%d %H:%M UTC").to_string()),
        ("cores", cores.to_string()),
        ("CPU", field("/proc/cpuinfo", "model name")),
        ("memory", field("/proc/meminfo", "MemTotal")),
        ("Linux", fs::read_to_string("/proc/sys/kernel/osrelease")?.trim().to_owned()),
        ("PostgreSQL", postgres.value("SELECT current_setting('server_version')").await?),
        ("fsync", postgres.value("SELECT current_setting('fsync')").await?),
        ("RabbitMQ", rabbitmq::version(&stack.settings).await?),
        ("Rust", output("rustc", &["--version"])),
        ("commit", output("git", &["describe", "--always", "--dirty"])),
        ("load before the run", format!("{load_before:.2}")),
    ];
    Ok(facts.iter().map(|(name, value)| format!("- {name}: {value}\n")).collect())
}

/// The value after the colon of the first line that starts with this name.
fn field(file: &str, name: &str) -> String {
    let text = fs::read_to_string(file).unwrap_or_default();
    let line = text.lines().find(|line| line.starts_with(name));
    let value = line.and_then(|line| line.split_once(':')).map(|(_, value)| value.trim());
    value.unwrap_or("unknown").to_owned()
}

/// The output of a program, or "unknown".
fn output(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output();
    let printed = output.ok().and_then(|output| String::from_utf8(output.stdout).ok());
    let printed = printed.map(|printed| printed.trim_end().to_owned());
    printed.filter(|printed| !printed.is_empty()).unwrap_or_else(|| "unknown".to_owned())
}
