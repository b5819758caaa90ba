//! The conditions of a run: the machine, the versions, the load and the free disk space.

use std::{fs, process::Command};

use anyhow::Context as _;

use crate::{
    postgres::Postgres,
    process::test_setting,
    rabbitmq,
    size::{Size, count},
};

pub(crate) struct Machine {
    /// Names and values, in the order in which they are printed.
    facts: Vec<(&'static str, String)>,
    cores: usize,
    /// Average number of running processes in the minute before the run.
    load: f64,
    data_directory: String,
}

impl Machine {
    /// `load` is that of before the build, which would raise it.
    pub(crate) async fn read(load: Option<f64>) -> anyhow::Result<Self> {
        let cores = std::thread::available_parallelism()?.get();
        let server = test_setting("BACKHAUL_TEST_POSTGRES_URL")?;
        let mut postgres = Postgres::connect(&format!("{server}/postgres")).await?;
        let setting = |name: &str| format!("SELECT current_setting('{name}') AS text");
        let load = load.map_or_else(current_load, Ok)?;
        let facts = vec![
            ("date", platform::Clock::system().now().format("%Y-%m-%d %H:%M UTC").to_string()),
            ("cores", cores.to_string()),
            ("CPU", field("/proc/cpuinfo", "model name")),
            ("memory", field("/proc/meminfo", "MemTotal")),
            ("Linux", fs::read_to_string("/proc/sys/kernel/osrelease")?.trim().to_owned()),
            ("PostgreSQL", postgres.text(&setting("server_version")).await?),
            ("fsync", postgres.text(&setting("fsync")).await?),
            ("RabbitMQ", rabbitmq::version().await?),
            ("Rust", output("rustc", &["--version"])),
            ("commit", output("git", &["describe", "--always", "--dirty"])),
            ("load before the run", format!("{load:.2}")),
        ];
        let data_directory = postgres.text(&setting("data_directory")).await?;
        Ok(Self { facts, cores, load, data_directory })
    }

    /// Whether other processes use the cores, so that figures cannot be judged.
    pub(crate) fn is_busy(&self) -> bool {
        self.load > count(self.cores)
    }

    /// The facts as a Markdown list.
    pub(crate) fn describe(&self) -> String {
        self.facts.iter().map(|(name, value)| format!("- {name}: {value}\n")).collect()
    }

    /// Fails unless the disk of PostgreSQL has this much free space.
    pub(crate) fn check_disk_space(&self, size: Size, gigabytes: u64) -> anyhow::Result<()> {
        let required = if size == Size::Full { gigabytes } else { 1 };
        let printed = output("df", &["--output=avail", "--block-size=GB", &self.data_directory]);
        let free = printed.lines().nth(1).and_then(|line| line.trim().strip_suffix("GB"));
        let free: u64 = free
            .and_then(|free| free.parse().ok())
            .with_context(|| format!("df printed nothing for {}", self.data_directory))?;
        let folder = &self.data_directory;
        anyhow::ensure!(
            free >= required,
            "{required} GB of free disk space are required in {folder}, where {free} GB are free"
        );
        Ok(())
    }
}

fn current_load() -> anyhow::Result<f64> {
    let load = fs::read_to_string("/proc/loadavg")?;
    Ok(load.split_whitespace().next().context("/proc/loadavg is empty")?.parse()?)
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
