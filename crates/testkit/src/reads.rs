//! Counts the rows and pages that PostgreSQL reads, to show that a query costs what its page has.

use diesel::QueryableByName;
use diesel::sql_types::BigInt;
use diesel_async::{AsyncPgConnection, RunQueryDsl as _, SimpleAsyncConnection as _};

use crate::optional_variable;

/// Rows of a merchant, and as many of the others, in a test that fills tables.
const DEFAULT_ROWS: i64 = 2_000;

/// Rows and pages that a query read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, QueryableByName)]
pub struct Reads {
    /// Entries of indexes, and rows of tables that were scanned.
    #[diesel(sql_type = BigInt)]
    pub rows: i64,
    /// Pages of tables and indexes, in memory or on disk.
    #[diesel(sql_type = BigInt)]
    pub pages: i64,
}

/// The number of rows to fill a table with, for one merchant: `BACKHAUL_TEST_ROWS`, or 2,000.
pub fn fill_rows() -> i64 {
    optional_variable("BACKHAUL_TEST_ROWS").unwrap_or(DEFAULT_ROWS)
}

/// The statistics of the open transaction. Those of an index count its entries, also when the rows of the
/// table are not visible or not needed; `EXPLAIN (ANALYZE, BUFFERS)` shows the same numbers.
const READS: &str = "SELECT coalesce(sum(pg_stat_get_xact_tuples_returned(oid)), 0)::bigint AS rows, \
     coalesce(sum(pg_stat_get_xact_blocks_fetched(oid)), 0)::bigint AS pages \
     FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'i')";

/// Returns what the statements of `work` read, in a transaction that is rolled back. The value of `work`
/// comes with it.
pub async fn reads<T>(
    conn: &mut AsyncPgConnection,
    work: impl AsyncFnOnce(&mut AsyncPgConnection) -> T,
) -> (T, Reads) {
    conn.batch_execute("BEGIN").await.unwrap();
    // The statistics may include earlier transactions.
    let before = read_statistics(conn).await;
    let value = work(conn).await;
    let after = read_statistics(conn).await;
    conn.batch_execute("ROLLBACK").await.unwrap();
    (value, Reads { rows: after.rows - before.rows, pages: after.pages - before.pages })
}

async fn read_statistics(conn: &mut AsyncPgConnection) -> Reads {
    diesel::sql_query(READS).get_result(conn).await.unwrap()
}
