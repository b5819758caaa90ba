//! Connections that do not go back to the pool: a worker's own, and the leader's.
//!
//! A lock on a session lasts as long as its connection. So no connection that holds one, or may
//! hold one, is ever handed back.

use diesel::{
    QueryableByName,
    sql_types::{BigInt, Bool},
};
use diesel_async::{AsyncPgConnection, RunQueryDsl as _, SimpleAsyncConnection as _};

use super::{Connection, DatabaseError, Pool};

#[derive(QueryableByName)]
struct Asked {
    #[diesel(sql_type = Bool)]
    granted: bool,
}

/// A pooled connection that is asking for a lock; let go of for good when nobody waits for the
/// answer any more, because it may have been granted.
struct Asking(Option<Connection>);

impl Drop for Asking {
    fn drop(&mut self) {
        drop(self.0.take().map(Connection::take));
    }
}

impl Pool {
    /// A connection for a worker that keeps it.
    pub async fn dedicated(&self) -> Result<AsyncPgConnection, DatabaseError> {
        let mut conn = Connection::take(self.get().await?);
        look_up_by_index(&mut conn).await?;
        Ok(conn)
    }

    /// Tries to become the leader among the processes that use this lock. Dropping the connection gives
    /// up leadership. A failed try costs one query and returns the connection to the pool.
    pub async fn try_lead(&self, lock: i64) -> Result<Option<AsyncPgConnection>, DatabaseError> {
        let mut asking = Asking(Some(self.get().await?));
        let Some(conn) = &mut asking.0 else { return Ok(None) };
        let asked = diesel::sql_query("SELECT pg_try_advisory_lock($1) AS granted");
        let Asked { granted } = asked.bind::<BigInt, _>(lock).get_result(conn).await?;
        let Some(conn) = asking.0.take() else { return Ok(None) };
        if !granted {
            return Ok(None);
        }
        let mut conn = Connection::take(conn);
        look_up_by_index(&mut conn).await?;
        Ok(Some(conn))
    }
}

/// Makes the planner use indexes regardless of its size estimates, because a plan that was cached while
/// a table was empty stays in use when the table is full. Rows are read in index order instead of
/// being sorted, and each statement is planned once.
async fn look_up_by_index(conn: &mut AsyncPgConnection) -> Result<(), DatabaseError> {
    conn.batch_execute(
        "SET enable_seqscan = off; SET enable_hashjoin = off; SET enable_mergejoin = off; \
         SET enable_sort = off; SET enable_incremental_sort = off; \
         SET plan_cache_mode = force_generic_plan",
    )
    .await?;
    Ok(())
}
