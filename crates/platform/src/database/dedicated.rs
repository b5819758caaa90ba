//! Connections that do not return to the pool: a worker's own, and the leader's.
//!
//! A session lock lasts as long as its connection. A connection that holds one, or may hold one, never
//! returns to the pool.

use crate::database::sql;
use diesel_async::{AsyncPgConnection, RunQueryDsl as _, SimpleAsyncConnection as _};

use super::{Connection, DatabaseError, Pool};

crate::rows! { struct LockRow { granted: bool } }

/// A pooled connection that requests a lock. If the caller stops waiting, the connection is closed,
/// because the lock may have been granted.
struct LockRequest(Option<Connection>);

impl Drop for LockRequest {
    fn drop(&mut self) {
        drop(self.0.take().map(Connection::take));
    }
}

impl Pool {
    /// A connection for a worker that keeps it.
    pub async fn dedicated(&self) -> Result<AsyncPgConnection, DatabaseError> {
        let mut conn = Connection::take(self.get().await?);
        prefer_indexes(&mut conn).await?;
        Ok(conn)
    }

    /// Tries to become the leader among the processes that use this lock. Dropping the connection gives
    /// up leadership. A failed try costs one query and returns the connection to the pool.
    pub async fn try_lead(&self, lock: i64) -> Result<Option<AsyncPgConnection>, DatabaseError> {
        let mut request = LockRequest(Some(self.get().await?));
        let Some(conn) = &mut request.0 else { return Ok(None) };
        let query = sql("SELECT pg_try_advisory_lock($1) AS granted", lock);
        let LockRow { granted } = query.get_result(conn).await?;
        let Some(conn) = request.0.take() else { return Ok(None) };
        if !granted {
            return Ok(None);
        }
        let mut conn = Connection::take(conn);
        prefer_indexes(&mut conn).await?;
        Ok(Some(conn))
    }
}

/// Makes the planner use indexes regardless of its size estimates, because a plan that was cached while
/// a table was empty stays in use when the table is full. Rows are read in index order instead of
/// being sorted, and each statement is planned once.
async fn prefer_indexes(conn: &mut AsyncPgConnection) -> Result<(), DatabaseError> {
    conn.batch_execute(
        "SET enable_seqscan = off; SET enable_hashjoin = off; SET enable_mergejoin = off; \
         SET enable_sort = off; SET enable_incremental_sort = off; \
         SET plan_cache_mode = force_generic_plan",
    )
    .await?;
    Ok(())
}
