//! CPU time of PostgreSQL, and `pgbench` as a baseline.

use std::fs;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use anyhow::Context as _;
use diesel::QueryableByName;
use diesel::sql_types::{BigInt, Integer};
use diesel_async::{
    AsyncConnection as _, AsyncPgConnection, RunQueryDsl as _, SimpleAsyncConnection as _,
};

/// Clock ticks per second, which Linux fixes for user space.
const TICKS: f64 = 100.0;

/// A connection for queries between measurements.
pub(crate) struct Postgres {
    conn: AsyncPgConnection,
    postmaster: u32,
    url: String,
}

#[derive(QueryableByName)]
struct Backend {
    #[diesel(sql_type = Integer)]
    pid: i32,
}

#[derive(QueryableByName)]
struct Count {
    #[diesel(sql_type = BigInt)]
    count: i64,
}

impl Postgres {
    pub(crate) async fn connect(url: &str) -> anyhow::Result<Self> {
        let mut conn = AsyncPgConnection::establish(url).await?;
        let query = diesel::sql_query("SELECT pg_backend_pid() AS pid");
        let Backend { pid } = query.get_result(&mut conn).await?;
        let stat = fs::read_to_string(format!("/proc/{pid}/stat"));
        let stat = stat.context("PostgreSQL must run on this machine")?;
        Ok(Self { conn, postmaster: parent(&stat)?, url: url.to_owned() })
    }

    pub(crate) async fn execute(&mut self, statements: &str) -> anyhow::Result<()> {
        Ok(self.conn.batch_execute(statements).await?)
    }

    pub(crate) async fn count(&mut self, query: &str) -> anyhow::Result<i64> {
        Ok(diesel::sql_query(query).get_result::<Count>(&mut self.conn).await?.count)
    }

    /// CPU time of all server processes so far, including those that have exited.
    pub(crate) fn cpu(&self) -> anyhow::Result<Duration> {
        let mut ticks = 0.0;
        for entry in fs::read_dir("/proc")? {
            let path = entry?.path().join("stat");
            let Ok(stat) = fs::read_to_string(path) else { continue };
            let fields = after_name(&stat);
            if parent(&stat).is_ok_and(|parent| parent == self.postmaster) {
                ticks += number(&fields, 11) + number(&fields, 12);
            } else if stat.starts_with(&format!("{} ", self.postmaster)) {
                ticks += (11..=14).map(|index| number(&fields, index)).sum::<f64>();
            }
        }
        Ok(Duration::from_secs_f64(ticks / TICKS))
    }

    /// Runs a script with `pgbench` and returns the time without connecting.
    pub(crate) fn pgbench(
        &self,
        script: &str,
        variables: &[(&str, &str)],
        connections: u16,
        transactions: u16,
    ) -> anyhow::Result<Duration> {
        let mut file = tempfile::NamedTempFile::new()?;
        file.write_all(script.as_bytes())?;
        let mut command = Command::new(pgbench_program());
        command.args(["--no-vacuum", "--protocol=prepared", "--jobs=2"]);
        command.arg(format!("--client={connections}"));
        command.arg(format!("--transactions={}", transactions / connections));
        command.arg("--file").arg(file.path());
        for (name, value) in variables {
            command.arg("--define").arg(format!("{name}={value}"));
        }
        let output = command.arg(&self.url).output().context("pgbench")?;
        anyhow::ensure!(
            output.status.success(),
            "pgbench: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        let report = String::from_utf8_lossy(&output.stdout);
        let rate = report.lines().find_map(|line| line.strip_prefix("tps = ")?.split(' ').next());
        let rate: f64 = rate.context("pgbench printed no rate")?.parse()?;
        Ok(Duration::from_secs_f64(f64::from(transactions / connections * connections) / rate))
    }
}

/// The program of the newest installed server, or else of the PATH.
fn pgbench_program() -> PathBuf {
    let installed = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let mut found: Vec<_> = installed.map(|entry| entry.path().join("bin/pgbench")).collect();
    found.retain(|path| path.exists());
    found.sort();
    found.pop().unwrap_or_else(|| "pgbench".into())
}

/// The fields of `/proc/PID/stat` after the name, which can contain spaces.
fn after_name(stat: &str) -> Vec<&str> {
    stat.rsplit_once(')').map_or(Vec::new(), |(_, rest)| rest.split_whitespace().collect())
}

fn number(fields: &[&str], index: usize) -> f64 {
    fields.get(index).and_then(|field| field.parse().ok()).unwrap_or(0.0)
}

fn parent(stat: &str) -> anyhow::Result<u32> {
    Ok(after_name(stat).get(1).context("no parent process")?.parse()?)
}
