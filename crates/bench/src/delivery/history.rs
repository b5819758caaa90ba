//! Messages that were settled earlier today, in the partition that the engine writes to.

use std::time::Duration;

use diesel::{QueryableByName, sql_types::BigInt};
use diesel_async::{RunQueryDsl as _, SimpleAsyncConnection as _};
use platform::database::Pool;
use testkit::eventually;

/// Messages that one statement inserts.
const BATCH_SIZE: usize = 500_000;
/// Time for autovacuum to finish.
const TIMEOUT: Duration = Duration::from_secs(900);

#[derive(QueryableByName)]
struct Workers {
    #[diesel(sql_type = BigInt)]
    n: i64,
}

/// Inserts the messages. The bodies are short, because nothing reads them.
pub(super) async fn fill(pool: &Pool, settled: usize) -> anyhow::Result<()> {
    let mut conn = pool.get().await?;
    conn.batch_execute("SET statement_timeout = 0; SET synchronous_commit = off").await?;
    for from in (0..settled).step_by(BATCH_SIZE) {
        let to = (from + BATCH_SIZE).min(settled);
        // An id begins with its time in milliseconds. The times are spread evenly over today.
        conn.batch_execute(&format!(
            "WITH today AS ( \
                 SELECT extract(epoch FROM date_trunc('day', now(), 'UTC')) * 1000 AS first, \
                 extract(epoch FROM now() - date_trunc('day', now(), 'UTC')) * 1000 AS millis \
             ), settled AS ( \
                 SELECT n, (lpad(to_hex((first + millis * n / {settled})::bigint), 12, '0') \
                     || substr(md5(n::text), 1, 20))::uuid AS id \
                 FROM today, generate_series({from}, {to} - 1) AS n \
             ), messages AS ( \
                 INSERT INTO delivery_messages (id, merchant, kind, version, ordering_key, sequence, event, \
                     body, traceparent, created_at) \
                 SELECT id, 'm' || n % 10, 'rma', 3, 'rma:h' || n, 1, 'rma.created', '\\x7b7d', NULL, \
                     now() FROM settled \
             ) \
             INSERT INTO delivery_attempts (delivery, replay_number, number, started_at, latency_ms, \
                 outcome, status, detail, response_body, settled, merchant) \
             SELECT id, 0, 1, now(), 3, 'delivered', 200, '', '', 'delivered', 'm' || n % 10 FROM settled"
        ))
        .await?;
    }
    drop(conn);
    vacuum(pool).await
}

/// Vacuums all tables and waits until autovacuum has finished, so that it does not affect the benchmark.
pub(super) async fn vacuum(pool: &Pool) -> anyhow::Result<()> {
    let mut conn = pool.get().await?;
    conn.batch_execute("SET statement_timeout = 0").await?;
    conn.batch_execute("VACUUM (FREEZE, ANALYZE)").await?;
    conn.batch_execute("CHECKPOINT").await?;
    drop(conn);
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
