//! Locks on names, for transactions that must wait for each other although no row may exist yet.

use diesel_async::{AsyncPgConnection, RunQueryDsl as _};

use super::{DatabaseError, prepared, sql};

crate::rows! { struct Granted { granted: bool } }

/// Names of one class, locked with advisory locks until the end of the transaction.
///
/// The names of a call are locked in the order of their hashes, so two calls cannot deadlock. A transaction calls
/// once, before it locks rows. Two names with the same hash only wait for each other.
#[derive(Debug, Clone, Copy)]
pub struct NameLock {
    /// Unique within a database.
    class: i32,
}

impl NameLock {
    pub const fn new(class: i32) -> Self {
        Self { class }
    }

    /// Waits for transactions that hold one of the names exclusively.
    pub async fn share(
        self,
        conn: &mut AsyncPgConnection,
        names: &[String],
    ) -> Result<(), DatabaseError> {
        self.lock(conn, "pg_advisory_xact_lock_shared", names).await
    }

    /// Returns false, without waiting, if another transaction holds one of the names exclusively or waits for it.
    pub async fn try_share(
        self,
        conn: &mut AsyncPgConnection,
        names: &[String],
    ) -> Result<bool, DatabaseError> {
        if names.is_empty() {
            return Ok(true);
        }
        let lock = sql(
            "SELECT bool_and(pg_try_advisory_xact_lock_shared($1, hashtext(name))) AS granted \
             FROM unnest($2) AS name",
            (self.class, names),
        );
        let Granted { granted } = prepared(lock).get_result(conn).await?;
        Ok(granted)
    }

    /// Waits for all transactions that hold one of the names.
    pub async fn exclude(
        self,
        conn: &mut AsyncPgConnection,
        names: &[String],
    ) -> Result<(), DatabaseError> {
        self.lock(conn, "pg_advisory_xact_lock", names).await
    }

    async fn lock(
        self,
        conn: &mut AsyncPgConnection,
        function: &str,
        names: &[String],
    ) -> Result<(), DatabaseError> {
        if names.is_empty() {
            return Ok(());
        }
        let lock = sql(
            format!(
                "SELECT {function}($1, hash) FROM ( \
                 SELECT DISTINCT hashtext(name) AS hash FROM unnest($2) AS name ORDER BY hash \
             ) AS hashes"
            ),
            (self.class, names),
        );
        prepared(lock).execute(conn).await?;
        Ok(())
    }
}
