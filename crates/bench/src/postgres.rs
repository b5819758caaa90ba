//! CPU time of PostgreSQL, and its client programs as baselines.

use std::fs;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use anyhow::Context as _;
use diesel::QueryableByName;
use diesel::sql_types::{BigInt, Integer, Text as SqlText};
use diesel_async::{
    AsyncConnection as _, AsyncPgConnection, RunQueryDsl as _, SimpleAsyncConnection as _,
};

use crate::proc_stat::{cpu_of, cpu_with_children, parent};
use crate::size::count;

/// A connection for queries between measurements.
pub(crate) struct Postgres {
    conn: AsyncPgConnection,
    /// The server process of this connection.
    backend: String,
    postmaster: u32,
    url: String,
}

#[derive(QueryableByName)]
struct Backend {
    #[diesel(sql_type = Integer)]
    pid: i32,
}

#[derive(QueryableByName)]
struct Text {
    #[diesel(sql_type = SqlText)]
    text: String,
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
        let postmaster = parent(pid).context("PostgreSQL must run on this machine")?;
        Ok(Self { conn, backend: pid.to_string(), postmaster, url: url.to_owned() })
    }

    pub(crate) async fn execute(&mut self, statements: &str) -> anyhow::Result<()> {
        Ok(self.conn.batch_execute(statements).await?)
    }

    pub(crate) async fn count(&mut self, query: &str) -> anyhow::Result<i64> {
        Ok(diesel::sql_query(query).get_result::<Count>(&mut self.conn).await?.count)
    }

    /// The value of a query that returns one column `text`.
    pub(crate) async fn text(&mut self, query: &str) -> anyhow::Result<String> {
        Ok(diesel::sql_query(query).get_result::<Text>(&mut self.conn).await?.text)
    }

    /// The server's main process.
    pub(crate) fn pid(&self) -> u32 {
        self.postmaster
    }

    /// CPU time of all server processes so far, including those that have exited, but without the queries of
    /// this connection.
    pub(crate) fn cpu(&self) -> anyhow::Result<Duration> {
        Ok(cpu_with_children(self.postmaster)?.saturating_sub(cpu_of(&self.backend)?))
    }

    /// Runs commands with `psql`, for `\copy`, which diesel does not have.
    pub(crate) fn psql(&self, commands: &[String]) -> anyhow::Result<()> {
        let mut command = Command::new(server_program("psql"));
        command.args(["-XAtq", "-v", "ON_ERROR_STOP=1"]);
        for text in commands {
            command.arg("-c").arg(text);
        }
        let output = command.arg(&self.url).output().context("psql")?;
        let error = String::from_utf8_lossy(&output.stderr);
        anyhow::ensure!(output.status.success(), "psql: {error}");
        Ok(())
    }

    /// Runs a script with `pgbench` and returns the time without connecting.
    pub(crate) fn pgbench(
        &self,
        script: &str,
        variables: &[(&str, &str)],
        connections: usize,
        transactions: usize,
    ) -> anyhow::Result<Duration> {
        let mut file = tempfile::NamedTempFile::new()?;
        file.write_all(script.as_bytes())?;
        let mut command = Command::new(server_program("pgbench"));
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
        Ok(Duration::from_secs_f64(count(transactions / connections * connections) / rate))
    }
}

/// A program of the newest installed server, or else of the PATH.
fn server_program(name: &str) -> PathBuf {
    let installed = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let mut found: Vec<_> = installed.map(|entry| entry.path().join("bin").join(name)).collect();
    found.retain(|path| path.exists());
    found.sort();
    found.pop().unwrap_or_else(|| name.into())
}
