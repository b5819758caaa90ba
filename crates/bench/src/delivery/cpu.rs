//! CPU time of the engine, PostgreSQL and RabbitMQ.

use std::{fs, time::Duration};

use anyhow::Context as _;
use diesel::{QueryableByName, sql_types::Integer};
use diesel_async::RunQueryDsl as _;
use serde_json::Value;
use testkit::Database;

use crate::{process::Program, report::Report};

/// The unit of CPU time in `/proc`.
const TICKS_PER_SECOND: f64 = 100.0;

/// The processes of the servers.
pub(crate) struct CpuMeter {
    postgres_pid: u32,
    rabbitmq_pid: u32,
}

/// CPU time used so far.
#[derive(Clone, Copy)]
pub(crate) struct CpuTime {
    engine: Duration,
    postgres: Duration,
    rabbitmq: Duration,
}

/// CPU milliseconds per delivery.
#[derive(Clone, Copy)]
pub(crate) struct CpuCost {
    engine: f64,
    postgres: f64,
    rabbitmq: f64,
}

#[derive(QueryableByName)]
struct Pid {
    #[diesel(sql_type = Integer)]
    pid: i32,
}

impl CpuMeter {
    pub(crate) async fn find(database: &Database) -> anyhow::Result<Self> {
        let query = "SELECT pid FROM pg_stat_activity WHERE backend_type = 'checkpointer'";
        let mut conn = database.pool().get().await?;
        let child: Pid = diesel::sql_query(query).get_result(&mut conn).await?;
        let numbers = stat(u32::try_from(child.pid)?)?;
        let postgres_pid = numbers.get(1).context("/proc/PID/stat has no parent")?.parse()?;
        Ok(Self { postgres_pid, rabbitmq_pid: rabbitmq_pid().await? })
    }

    pub(crate) fn read(&self, engine: &Program) -> anyhow::Result<CpuTime> {
        Ok(CpuTime {
            engine: engine.cpu()?,
            postgres: cpu_with_children(self.postgres_pid)?,
            ..self.broker()?
        })
    }

    /// Without PostgreSQL, which the bare loop does not use.
    pub(crate) fn read_bare(&self, program: &Program) -> anyhow::Result<CpuTime> {
        Ok(CpuTime { engine: program.cpu()?, ..self.broker()? })
    }

    fn broker(&self) -> anyhow::Result<CpuTime> {
        let rabbitmq = cpu_with_children(self.rabbitmq_pid)?;
        Ok(CpuTime { engine: Duration::ZERO, postgres: Duration::ZERO, rabbitmq })
    }
}

impl CpuTime {
    pub(crate) fn since(&self, before: &Self, deliveries: usize) -> CpuCost {
        let each = |now: Duration, then: Duration| {
            now.saturating_sub(then).as_secs_f64() * 1e3 / super::count(deliveries)
        };
        CpuCost {
            engine: each(self.engine, before.engine),
            postgres: each(self.postgres, before.postgres),
            rabbitmq: each(self.rabbitmq, before.rabbitmq),
        }
    }
}

impl CpuCost {
    pub(crate) fn all_ms(&self) -> f64 {
        self.engine + self.postgres + self.rabbitmq
    }

    pub(crate) fn report(&self, report: &mut Report, name: &str) {
        for (process, cost) in
            [("engine", self.engine), ("postgres", self.postgres), ("rabbitmq", self.rabbitmq)]
        {
            report.figure(&format!("{name}.cpu.{process}"), cost, "CPU-ms each");
        }
    }
}

async fn rabbitmq_pid() -> anyhow::Result<u32> {
    #[expect(clippy::disallowed_methods, reason = "scripts/bench sets these")]
    let (amqp, api) = (
        std::env::var("BACKHAUL_TEST_AMQP_URL")?,
        std::env::var("BACKHAUL_TEST_RABBITMQ_API_URL")?,
    );
    let amqp: reqwest::Url = amqp.parse()?;
    let client = platform::http_client(Duration::from_secs(10))?;
    let mut nodes: reqwest::Url = format!("{api}/nodes").parse()?;
    // Both URLs have the same percent-encoding.
    let set =
        nodes.set_username(amqp.username()).and_then(|()| nodes.set_password(amqp.password()));
    anyhow::ensure!(set.is_ok(), "{api} cannot have a user and a password");
    // The API has no data for some seconds after the broker starts.
    let pid =
        testkit::eventually("RabbitMQ reports its pid", Duration::from_secs(30), async || {
            fetch_pid(&client, &nodes).await.transpose()
        });
    Ok(pid.await?.parse()?)
}

/// `None` if the API has no data yet.
async fn fetch_pid(
    client: &reqwest::Client,
    nodes: &reqwest::Url,
) -> anyhow::Result<Option<String>> {
    let response = client.get(nodes.clone()).send().await?.error_for_status()?;
    let response: Value = response.json().await?;
    Ok(response.pointer("/0/os_pid").and_then(Value::as_str).map(str::to_owned))
}

/// The fields of `/proc/PID/stat` after the name: state, parent, ….
fn stat(pid: u32) -> anyhow::Result<Vec<String>> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
    let (_, numbers) = stat.rsplit_once(')').context("/proc/PID/stat")?;
    Ok(numbers.split_whitespace().map(str::to_owned).collect())
}

/// CPU time of a process and its children, including those that have exited.
fn cpu_with_children(pid: u32) -> anyhow::Result<Duration> {
    let mut ticks = sum(&stat(pid)?, 11, 4);
    for entry in fs::read_dir("/proc")? {
        let Some(child) = entry?.file_name().to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        // The process may have exited meanwhile.
        if let Ok(numbers) = stat(child)
            && numbers.get(1).is_some_and(|parent| *parent == pid.to_string())
        {
            ticks += sum(&numbers, 11, 2);
        }
    }
    Ok(Duration::from_secs_f64(ticks / TICKS_PER_SECOND))
}

fn sum(numbers: &[String], first: usize, count: usize) -> f64 {
    numbers.iter().skip(first).take(count).filter_map(|number| number.parse::<f64>().ok()).sum()
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;

    use super::*;

    #[tokio::test]
    async fn a_rejected_request_is_an_error_and_missing_data_is_not() {
        let api = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let nodes = format!("http://{}/nodes", api.local_addr().unwrap()).parse().unwrap();
        let client = platform::http_client(Duration::from_secs(10)).unwrap();
        let respond = async |response: &[u8]| {
            let (mut stream, _) = api.accept().await.unwrap();
            assert!(stream.read(&mut [0; 4096]).await.unwrap() > 0);
            stream.write_all(response).await.unwrap();
        };
        let rejected = b"HTTP/1.1 401 No\r\nconnection: close\r\ncontent-length: 2\r\n\r\n{}";
        let (pid, ()) = tokio::join!(fetch_pid(&client, &nodes), respond(rejected));
        assert!(pid.unwrap_err().to_string().contains("401"));
        let no_data = b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 4\r\n\r\n[{}]";
        let (pid, ()) = tokio::join!(fetch_pid(&client, &nodes), respond(no_data));
        assert_eq!(pid.unwrap(), None);
    }
}
