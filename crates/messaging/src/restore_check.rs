//! Check whether the database was restored from a backup: at startup, and when the relay opens a connection. A
//! fail-over to a standby that lacks commits is a restore too, and processes survive it.
//!
//! Services and merchants may have seen higher sequence numbers than the backup has, and would treat new
//! events and messages with lower numbers as old. After a restore, all sequence numbers therefore
//! continue after the time of the check in milliseconds, which is higher than any number in use, also if
//! the same backup is restored twice.
//!
//! A restore is recognised by the row of `database_identity`: recovery starts a new timeline, a copy has
//! another oid, and `pg_restore` writes the row in another transaction.
//!
//! See docs/decisions/publishing-events-again.md.

use std::time::Duration;

use diesel::OptionalExtension as _;
use diesel_async::{AsyncPgConnection, RunQueryDsl as _, SimpleAsyncConnection as _};
use platform::{
    Process, Timestamp, chain,
    database::{DatabaseError, Pool, sql, transaction},
    retry::Backoff,
};
use tokio::sync::watch;

/// SQL expression: the last sequence number that may have been used before a restore.
pub const SEQUENCE_FLOOR: &str = "COALESCE((SELECT sequence_floor FROM database_identity), 0)";

/// The first two parts of the identity of a database: the timeline, which a recovery increments, and the oid of
/// the database, which differs in a copy. The third part is the number of the transaction that wrote the row of
/// `database_identity`, which `pg_restore` does not preserve. The row stores all three as text.
const DATABASE: &str = "left(pg_walfile_name(pg_current_wal_lsn()), 8) || '/' || \
     (SELECT oid FROM pg_database WHERE datname = current_database())::text || '/'";

/// A handle on the check that [`start_check`] runs.
#[derive(Clone)]
pub(crate) struct RestoreCheck(watch::Receiver<bool>);

impl RestoreCheck {
    /// Waits for the end of the check.
    pub(crate) async fn ended(&self) {
        // The sender is dropped when the process stops.
        drop(self.0.clone().wait_for(|ended| *ended).await);
    }
}

/// Checks in the background, as soon as the database is available. The service is ready afterwards.
pub(crate) fn start_check(process: &Process) -> RestoreCheck {
    let (sender, receiver) = watch::channel(false);
    let ended = receiver.clone();
    process.health.add("restore check", move || {
        let ended = *ended.borrow();
        async move { ended.then_some(()).ok_or_else(|| "not done yet".to_owned()) }
    });
    let pool = process.pool.clone();
    let clock = process.clock.clone();
    process.tasks.spawn("restore check", |stop| async move {
        let mut backoff = Backoff::new(Duration::from_millis(50), Duration::from_secs(2));
        loop {
            match check(&pool, clock.now()).await {
                Ok(()) => break,
                Err(error) => tracing::warn!(error = chain(&error), "restore check failed"),
            }
            tokio::select! {
                () = stop.cancelled() => return,
                () = tokio::time::sleep(backoff.pause()) => {}
            }
        }
        sender.send_replace(true);
        // A task that ends early ends the process.
        stop.cancelled().await;
    });
    RestoreCheck(receiver)
}

async fn check(pool: &Pool, now: Timestamp) -> Result<(), DatabaseError> {
    check_connection(&mut *pool.get().await?, now).await
}

/// Checks the database of a connection.
pub(crate) async fn check_connection(
    conn: &mut AsyncPgConnection,
    now: Timestamp,
) -> Result<(), DatabaseError> {
    let restored = transaction(conn, async |conn| record_identity(conn, now).await).await?;
    if let Some(floor) = restored {
        tracing::warn!(
            sequence_floor = floor,
            "the database was restored: sequence numbers of events and messages continue after {floor}; \
             run `backhaul events republish` with the time of the backup to get newer events again"
        );
    }
    Ok(())
}

platform::rows! {
    struct Identity {
        is_same: bool,
        sequence_floor: i64,
    }
}

/// Stores the identity of a new or a restored database. After a restore, moves the sequence of the outbox to a
/// number that was never used, and returns that number.
async fn record_identity(
    conn: &mut AsyncPgConnection,
    now: Timestamp,
) -> Result<Option<i64>, DatabaseError> {
    // Replicas check one after the other. Readers do not wait.
    conn.batch_execute("LOCK TABLE database_identity IN SHARE ROW EXCLUSIVE MODE").await?;
    // `xmin` is the transaction that wrote the row.
    let stored: Option<Identity> = diesel::sql_query(format!(
        "SELECT identity = {DATABASE} || xmin::text AS is_same, sequence_floor \
         FROM database_identity"
    ))
    .get_result(conn)
    .await
    .optional()?;
    let first_free = match &stored {
        Some(stored) if stored.is_same => return Ok(None),
        Some(stored) => now.timestamp_millis().max(stored.sequence_floor + 1),
        // The database is new.
        None => 0,
    };
    // The row will have the number of this transaction as its `xmin`, which has 32 bits.
    let insert = sql(
        format!(
            "INSERT INTO database_identity (identity, sequence_floor, noted_at) \
         VALUES ({DATABASE} || (pg_current_xact_id()::text::numeric % 4294967296)::text, $1, $2) \
         ON CONFLICT (is_only) DO UPDATE SET identity = excluded.identity, \
             sequence_floor = excluded.sequence_floor, noted_at = excluded.noted_at"
        ),
        (first_free, now),
    );
    insert.execute(conn).await?;
    if stored.is_none() {
        return Ok(None);
    }
    sql("SELECT advance_outbox_sequence($1)", first_free).execute(conn).await?;
    Ok(Some(first_free))
}
