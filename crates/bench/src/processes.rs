//! CPU time and memory of the services, PostgreSQL and RabbitMQ, as the kernel counts them.

use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::Context as _;
use ctl::settings::Settings;

use crate::postgres::Postgres;
use crate::rabbitmq;
use crate::settings::{database_url, setting};

/// The kernel counts CPU time in hundredths of a second.
const TICKS_PER_SECOND: f64 = 100.0;

/// The processes of the stack.
pub(crate) struct Processes {
    /// Names and pids, in the order of the table of services.
    services: Vec<(String, u32)>,
    postgres: u32,
    rabbitmq: u32,
}

/// CPU time so far, by process: the services, then PostgreSQL and RabbitMQ.
#[derive(Clone)]
pub(crate) struct CpuTimes(Vec<(String, Duration)>);

/// CPU time in microseconds, by process.
#[derive(Clone, Default)]
pub(crate) struct Cost(pub(crate) Vec<(String, f64)>);

impl Processes {
    /// Finds the processes by the pid files of scripts/bench, by a connection to PostgreSQL, and by RabbitMQ's API.
    pub(crate) async fn find(settings: &Settings) -> anyhow::Result<Self> {
        let mut services = Vec::new();
        for name in setting(settings, "BENCH_SERVICES")?.split(' ') {
            let file = Path::new(setting(settings, "BENCH_PIDS")?).join(name);
            let line = fs::read_to_string(&file).with_context(|| file.display().to_string())?;
            let pid = line.split(' ').next().unwrap_or_default().parse()?;
            services.push((name.to_owned(), pid));
        }
        let postgres = Postgres::connect(&database_url(settings, "postgres")?).await?;
        let backend: i32 = postgres.value("SELECT pg_backend_pid()").await?;
        let parent =
            stat(u32::try_from(backend)?).context("PostgreSQL must run on this machine")?;
        let postgres = parent.get(1).context("/proc/PID/stat has no parent")?.parse()?;
        Ok(Self { services, postgres, rabbitmq: rabbitmq::pid(settings).await? })
    }

    pub(crate) fn cpu(&self) -> anyhow::Result<CpuTimes> {
        let mut times = Vec::new();
        for (name, pid) in &self.services {
            times.push((name.clone(), ticks(&stat(*pid)?, 2)));
        }
        times.extend(self.server_cpu()?);
        Ok(CpuTimes(times))
    }

    /// Without the services, for a loop that does not use them.
    pub(crate) fn cpu_of_servers(&self) -> anyhow::Result<CpuTimes> {
        Ok(CpuTimes(self.server_cpu()?.into()))
    }

    fn server_cpu(&self) -> anyhow::Result<[(String, Duration); 2]> {
        let postgres = cpu_with_children(self.postgres)?;
        let rabbitmq = ticks(&stat(self.rabbitmq)?, 2);
        Ok([("PostgreSQL".to_owned(), postgres), ("RabbitMQ".to_owned(), rabbitmq)])
    }

    /// Memory of each service in MiB. Pages that processes share count in parts.
    pub(crate) fn memory(&self) -> anyhow::Result<Vec<(String, f64)>> {
        let memory = |(name, pid): &(String, u32)| {
            let file = fs::read_to_string(format!("/proc/{pid}/smaps_rollup"))?;
            let line = file.lines().find_map(|line| line.strip_prefix("Pss:"));
            let kibibytes = line.and_then(|line| line.split_whitespace().next());
            let kibibytes: f64 = kibibytes.context("smaps_rollup has no Pss")?.parse()?;
            Ok((name.clone(), kibibytes / 1024.0))
        };
        self.services.iter().map(memory).collect()
    }
}

impl CpuTimes {
    /// The cost of each item since an earlier time.
    pub(crate) fn since(&self, before: &Self, items: usize) -> Cost {
        let parts = self.0.iter().zip(&before.0).map(|((name, now), (_, then))| {
            (name.clone(), micros(now.saturating_sub(*then)) / count(items))
        });
        Cost(parts.collect())
    }
}

impl Cost {
    pub(crate) fn all(&self) -> f64 {
        self.0.iter().map(|(_, micros)| micros).sum()
    }
}

/// CPU time of this process so far.
pub(crate) fn own_cpu() -> anyhow::Result<Duration> {
    Ok(ticks(&stat(std::process::id())?, 2))
}

pub(crate) fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

/// A number of items, to compute with.
pub(crate) fn count(items: usize) -> f64 {
    f64::from(u32::try_from(items).unwrap_or(u32::MAX))
}

/// CPU time of a process and its children, including those that have exited.
fn cpu_with_children(pid: u32) -> anyhow::Result<Duration> {
    let mut total = ticks(&stat(pid)?, 4);
    let parent = pid.to_string();
    for entry in fs::read_dir("/proc")? {
        let Some(child) = entry?.file_name().to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        // The process may have exited meanwhile.
        if let Ok(fields) = stat(child)
            && fields.get(1) == Some(&parent)
        {
            total += ticks(&fields, 2);
        }
    }
    Ok(total)
}

/// The fields of `/proc/PID/stat` after the name: state, parent, …. The name can contain spaces and parentheses.
fn stat(pid: u32) -> anyhow::Result<Vec<String>> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
    let (_, fields) = stat.rsplit_once(')').context("/proc/PID/stat has no name")?;
    Ok(fields.split_whitespace().map(str::to_owned).collect())
}

/// The sum of the first times: user and system time of the process, then those of its children that have exited.
fn ticks(fields: &[String], times: usize) -> Duration {
    let times = fields.iter().skip(11).take(times).filter_map(|time| time.parse::<f64>().ok());
    Duration::from_secs_f64(times.sum::<f64>() / TICKS_PER_SECOND)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cost_is_the_difference_for_each_item() {
        let times = |millis| CpuTimes(vec![("auth".to_owned(), Duration::from_millis(millis))]);
        let cost = times(30).since(&times(10), 10);
        assert!((cost.all() - 2_000.0).abs() < 1e-6);
    }

    #[test]
    fn this_process_has_a_parent_and_cpu_time() {
        let own = stat(std::process::id()).unwrap();
        let parent: u32 = own[1].parse().unwrap();
        assert!(cpu_with_children(parent).unwrap() >= ticks(&own, 2));
    }
}
