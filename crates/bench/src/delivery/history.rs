//! A log that has seen a lot: ten million messages that were settled earlier today, so that they
//! lie in the very partition that is written to.

use diesel_async::SimpleAsyncConnection as _;
use platform::database::Pool;

const SETTLED: u32 = 10_000_000;
const TOGETHER: u32 = 500_000;

/// Fills the log. Bodies are short: nobody reads them again, and the disk is not what is measured.
pub(crate) async fn fill(pool: &Pool) -> anyhow::Result<()> {
    let mut conn = pool.get().await?;
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
    conn.batch_execute("VACUUM ANALYZE delivery_messages, delivery_attempts").await?;
    conn.batch_execute("CHECKPOINT").await?;
    Ok(())
}

/// Empties the log again. Nothing may be under way.
pub(crate) async fn forget(pool: &Pool) -> anyhow::Result<()> {
    let mut conn = pool.get().await?;
    Ok(conn.batch_execute("TRUNCATE delivery_messages, delivery_attempts").await?)
}
