//! CPU time, by who used it.

use std::{fs, time::Duration};

use anyhow::Context as _;
use diesel::{QueryableByName, sql_types::Integer};
use diesel_async::RunQueryDsl as _;
use serde_json::Value;
use testkit::Database;

use crate::{process::Program, report::Report};

/// The kernel counts CPU time in hundredths of a second.
const TICKS_PER_SECOND: f64 = 100.0;

/// Where the servers' processes are.
pub(crate) struct Meter {
    postgres: u32,
    rabbitmq: u32,
}

/// CPU time used so far.
#[derive(Clone, Copy)]
pub(crate) struct Used {
    engine: Duration,
    postgres: Duration,
    rabbitmq: Duration,
}

/// CPU milliseconds a delivery.
#[derive(Clone, Copy)]
pub(crate) struct Cost {
    engine: f64,
    postgres: f64,
    rabbitmq: f64,
}

#[derive(QueryableByName)]
struct Pid {
    #[diesel(sql_type = Integer)]
    pid: i32,
}

impl Meter {
    /// Finds PostgreSQL's first process and RabbitMQ's only one.
    pub(crate) async fn find(database: &Database) -> anyhow::Result<Self> {
        let query = "SELECT pid FROM pg_stat_activity WHERE backend_type = 'checkpointer'";
        let mut conn = database.pool().get().await?;
        let child: Pid = diesel::sql_query(query).get_result(&mut conn).await?;
        let numbers = stat(u32::try_from(child.pid)?)?;
        let postgres = numbers.get(1).context("a parent in /proc/PID/stat")?.parse()?;
        Ok(Self { postgres, rabbitmq: rabbitmq_pid().await? })
    }

    pub(crate) fn read(&self, engine: &Program) -> anyhow::Result<Used> {
        Ok(Used { engine: engine.cpu()?, postgres: family(self.postgres)?, ..self.broker()? })
    }

    /// The same for something that has no database.
    pub(crate) fn read_bare(&self, program: &Program) -> anyhow::Result<Used> {
        Ok(Used { engine: program.cpu()?, ..self.broker()? })
    }

    fn broker(&self) -> anyhow::Result<Used> {
        let rabbitmq = family(self.rabbitmq)?;
        Ok(Used { engine: Duration::ZERO, postgres: Duration::ZERO, rabbitmq })
    }
}

impl Used {
    pub(crate) fn since(&self, before: &Self, deliveries: usize) -> Cost {
        let each = |now: Duration, then: Duration| {
            now.saturating_sub(then).as_secs_f64() * 1e3 / super::count(deliveries)
        };
        Cost {
            engine: each(self.engine, before.engine),
            postgres: each(self.postgres, before.postgres),
            rabbitmq: each(self.rabbitmq, before.rabbitmq),
        }
    }
}

impl Cost {
    pub(crate) fn all_ms(&self) -> f64 {
        self.engine + self.postgres + self.rabbitmq
    }

    pub(crate) fn report(&self, report: &mut Report, name: &str) {
        for (who, cost) in
            [("engine", self.engine), ("postgres", self.postgres), ("rabbitmq", self.rabbitmq)]
        {
            report.figure(&format!("{name}.cpu.{who}"), cost, "CPU-ms each");
        }
    }
}

async fn rabbitmq_pid() -> anyhow::Result<u32> {
    #[expect(clippy::disallowed_methods, reason = "how scripts/bench says where the servers are")]
    let (amqp, api) = (
        std::env::var("BACKHAUL_TEST_AMQP_URL")?,
        std::env::var("BACKHAUL_TEST_RABBITMQ_API_URL")?,
    );
    let amqp: reqwest::Url = amqp.parse()?;
    let client = platform::http_client(Duration::from_secs(10))?;
    let mut nodes: reqwest::Url = format!("{api}/nodes").parse()?;
    // In the URL, so that what is escaped there is read as it was meant.
    let named =
        nodes.set_username(amqp.username()).and_then(|()| nodes.set_password(amqp.password()));
    anyhow::ensure!(named.is_ok(), "{api} is no address for a user and a password");
    // A broker that has just started counts for some seconds before it says anything of itself.
    let pid =
        testkit::eventually("RabbitMQ says its process", Duration::from_secs(30), async || {
            said_pid(&client, &nodes).await.transpose()
        });
    Ok(pid.await?.parse()?)
}

/// `None` where nothing was said yet.
async fn said_pid(
    client: &reqwest::Client,
    nodes: &reqwest::Url,
) -> anyhow::Result<Option<String>> {
    let answer = client.get(nodes.clone()).send().await?.error_for_status()?;
    let answer: Value = answer.json().await?;
    Ok(answer.pointer("/0/os_pid").and_then(Value::as_str).map(str::to_owned))
}

/// What follows the name in `/proc/PID/stat`: state, parent, ….
fn stat(pid: u32) -> anyhow::Result<Vec<String>> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
    let (_, numbers) = stat.rsplit_once(')').context("/proc/PID/stat")?;
    Ok(numbers.split_whitespace().map(str::to_owned).collect())
}

/// CPU time of a process, of its children, and of those that have ended.
fn family(pid: u32) -> anyhow::Result<Duration> {
    let mut ticks = sum(&stat(pid)?, 11, 4);
    for entry in fs::read_dir("/proc")? {
        let Some(child) = entry?.file_name().to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        // It may have ended meanwhile.
        if let Ok(numbers) = stat(child)
            && numbers.get(1).is_some_and(|parent| *parent == pid.to_string())
        {
            ticks += sum(&numbers, 11, 2);
        }
    }
    Ok(Duration::from_secs_f64(ticks / TICKS_PER_SECOND))
}

fn sum(numbers: &[String], from: usize, many: usize) -> f64 {
    numbers.iter().skip(from).take(many).filter_map(|number| number.parse::<f64>().ok()).sum()
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;

    use super::*;

    #[tokio::test]
    async fn a_refusal_is_not_taken_for_a_broker_that_has_just_started() {
        let console = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let nodes = format!("http://{}/nodes", console.local_addr().unwrap()).parse().unwrap();
        let client = platform::http_client(Duration::from_secs(10)).unwrap();
        let answering = async |answer: &[u8]| {
            let (mut stream, _) = console.accept().await.unwrap();
            assert!(stream.read(&mut [0; 4096]).await.unwrap() > 0);
            stream.write_all(answer).await.unwrap();
        };
        let refused = b"HTTP/1.1 401 No\r\nconnection: close\r\ncontent-length: 2\r\n\r\n{}";
        let (said, ()) = tokio::join!(said_pid(&client, &nodes), answering(refused));
        assert!(said.unwrap_err().to_string().contains("401"));
        let young = b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 4\r\n\r\n[{}]";
        let (said, ()) = tokio::join!(said_pid(&client, &nodes), answering(young));
        assert_eq!(said.unwrap(), None);
    }
}
