//! Ten million messages that were settled earlier today, in the partition that the engine writes to.

use std::{process::Command, time::Duration};

use anyhow::Context as _;
use diesel::{
    QueryableByName,
    sql_types::{BigInt, Text},
};
use diesel_async::{AsyncPgConnection, RunQueryDsl as _, SimpleAsyncConnection as _};
use platform::database::Pool;
use testkit::eventually;

const SETTLED: u32 = 10_000_000;
const BATCH_SIZE: u32 = 500_000;
/// Disk space for the messages and their WAL.
const REQUIRED_GIB: u64 = 20;
/// Time for autovacuum to finish.
const TIMEOUT: Duration = Duration::from_secs(900);

#[derive(QueryableByName)]
struct Folder {
    #[diesel(sql_type = Text)]
    data_directory: String,
}

#[derive(QueryableByName)]
struct Workers {
    #[diesel(sql_type = BigInt)]
    n: i64,
}

/// Inserts the messages and waits until autovacuum has finished, so that it does not affect the benchmark.
/// The bodies are short, because nothing reads them.
pub(crate) async fn fill(pool: &Pool) -> anyhow::Result<()> {
    let mut conn = pool.get().await?;
    ensure_disk_space(&mut conn).await?;
    conn.batch_execute("SET statement_timeout = 0; SET synchronous_commit = off").await?;
    for from in (0..SETTLED).step_by(usize::try_from(BATCH_SIZE)?) {
        let to = from + BATCH_SIZE;
        // An id begins with its time in milliseconds. The times are spread evenly over today.
        conn.batch_execute(&format!(
            "WITH today AS ( \
                 SELECT extract(epoch FROM date_trunc('day', now(), 'UTC')) * 1000 AS first, \
                 extract(epoch FROM now() - date_trunc('day', now(), 'UTC')) * 1000 AS millis \
             ), settled AS ( \
                 SELECT n, (lpad(to_hex((first + millis * n / {SETTLED})::bigint), 12, '0') \
                     || substr(md5(n::text), 1, 20))::uuid AS id \
                 FROM today, generate_series({from}, {to} - 1) AS n \
             ), messages AS ( \
                 INSERT INTO delivery_messages \
                 SELECT id, 'm' || n % 10, 'rma', 'rma:h' || n, 1, 'rma.created', '\\x7b7d', NULL, \
                     now() FROM settled \
             ) \
             INSERT INTO delivery_attempts \
             SELECT id, 0, 1, now(), 3, 'delivered', 200, '', '', 'delivered' FROM settled"
        ))
        .await?;
    }
    conn.batch_execute("VACUUM (FREEZE, ANALYZE) delivery_messages, delivery_attempts").await?;
    conn.batch_execute("CHECKPOINT").await?;
    eventually("autovacuum is done", TIMEOUT, async || {
        let workers = diesel::sql_query(
            "SELECT count(*) AS n FROM pg_stat_activity WHERE backend_type = 'autovacuum worker'",
        );
        let mut conn = pool.get().await.ok()?;
        (workers.get_result::<Workers>(&mut conn).await.ok()?.n == 0).then_some(())
    })
    .await;
    Ok(())
}

async fn ensure_disk_space(conn: &mut AsyncPgConnection) -> anyhow::Result<()> {
    let query = diesel::sql_query("SELECT current_setting('data_directory') AS data_directory");
    let Folder { data_directory } = query.get_result(conn).await?;
    let mut df = Command::new("df");
    df.args(["--output=avail", "--block-size=1G", &data_directory]);
    let printed = String::from_utf8(df.output().context("df")?.stdout)?;
    let free = printed.lines().nth(1).and_then(|line| line.trim().parse::<u64>().ok());
    let free = free.with_context(|| format!("df printed nothing for {data_directory}"))?;
    anyhow::ensure!(
        free >= REQUIRED_GIB,
        "{SETTLED} messages need {REQUIRED_GIB} GiB in {data_directory}, where {free} GiB are free"
    );
    Ok(())
}

/// Deletes all messages. No delivery may be in flight.
pub(crate) async fn delete(pool: &Pool) -> anyhow::Result<()> {
    let mut conn = pool.get().await?;
    Ok(conn.batch_execute("TRUNCATE delivery_messages, delivery_attempts").await?)
}
