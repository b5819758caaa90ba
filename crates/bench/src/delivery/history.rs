//! A log that has seen a lot: ten million messages that were settled earlier today, so that they
//! lie in the very partition that is written to.

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
const TOGETHER: u32 = 500_000;
/// What they take on the disk, with the WAL that is written meanwhile.
const GIBIBYTES: u64 = 20;
/// How long PostgreSQL may need to tidy up after them.
const PATIENCE: Duration = Duration::from_secs(900);

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

/// Fills the log, and waits until PostgreSQL has nothing left to do for it: what is measured then
/// is what history costs, not what making it does. Bodies are short: nobody reads them again, and
/// the disk is not what is measured.
pub(crate) async fn fill(pool: &Pool) -> anyhow::Result<()> {
    let mut conn = pool.get().await?;
    ensure_room(&mut conn).await?;
    conn.batch_execute("SET statement_timeout = 0; SET synchronous_commit = off").await?;
    for from in (0..SETTLED).step_by(usize::try_from(TOGETHER)?) {
        let to = from + TOGETHER;
        // An id begins with its millisecond; these are spread evenly over today so far.
        conn.batch_execute(&format!(
            "WITH today AS ( \
                 SELECT extract(epoch FROM date_trunc('day', now(), 'UTC')) * 1000 AS first, \
                 extract(epoch FROM now() - date_trunc('day', now(), 'UTC')) * 1000 AS millis \
             ), settled AS ( \
                 SELECT n, (lpad(to_hex((first + millis * n / {SETTLED})::bigint), 12, '0') \
                     || substr(md5(n::text), 1, 20))::uuid AS id \
                 FROM today, generate_series({from}, {to} - 1) AS n \
             ), said AS ( \
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
    eventually("autovacuum is done", PATIENCE, async || {
        let workers = diesel::sql_query(
            "SELECT count(*) AS n FROM pg_stat_activity WHERE backend_type = 'autovacuum worker'",
        );
        let mut conn = pool.get().await.ok()?;
        (workers.get_result::<Workers>(&mut conn).await.ok()?.n == 0).then_some(())
    })
    .await;
    Ok(())
}

async fn ensure_room(conn: &mut AsyncPgConnection) -> anyhow::Result<()> {
    let asked = diesel::sql_query("SELECT current_setting('data_directory') AS data_directory");
    let Folder { data_directory } = asked.get_result(conn).await?;
    let mut df = Command::new("df");
    df.args(["--output=avail", "--block-size=1G", &data_directory]);
    let printed = String::from_utf8(df.output().context("df")?.stdout)?;
    let free = printed.lines().nth(1).and_then(|line| line.trim().parse::<u64>().ok());
    let free = free.with_context(|| format!("df says nothing of {data_directory}"))?;
    anyhow::ensure!(
        free >= GIBIBYTES,
        "{SETTLED} messages need {GIBIBYTES} GiB below {data_directory}, where {free} are free"
    );
    Ok(())
}

/// Empties the log again. Nothing may be under way.
pub(crate) async fn forget(pool: &Pool) -> anyhow::Result<()> {
    let mut conn = pool.get().await?;
    Ok(conn.batch_execute("TRUNCATE delivery_messages, delivery_attempts").await?)
}
