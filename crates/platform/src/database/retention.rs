//! Deletes old rows in batches, by the clock of the database.
//!
//! A replica whose clock is a month ahead would otherwise delete what all others need. If the two clocks differ by
//! more than an hour, one of them is wrong, and nothing is deleted.

use crate::database::sql;
use chrono::TimeDelta;
use diesel_async::{AsyncPgConnection, RunQueryDsl as _};

use super::{DatabaseError, Pool};
use crate::Timestamp;

/// Rows that one statement deletes, so that it stays far below the statement timeout.
const BATCH_SIZE: usize = 10_000;
const MAX_CLOCK_DIFFERENCE: TimeDelta = TimeDelta::hours(1);

crate::rows! { struct Time { now: Timestamp } }

/// The time of the database, by which data expires. An error if the clock of this process differs by more than
/// an hour.
pub async fn retention_time(
    conn: &mut AsyncPgConnection,
    process: Timestamp,
) -> Result<Timestamp, DatabaseError> {
    let time: Time =
        diesel::sql_query("SELECT statement_timestamp() AS now").get_result(conn).await?;
    let database = time.now;
    if (database - process).abs() > MAX_CLOCK_DIFFERENCE {
        return Err(DatabaseError::ClocksDiffer { process, database });
    }
    Ok(database)
}

/// Like [`retention_time`], and `None` if the clocks differ: for callers that have other work than to delete.
pub async fn agreed_time(
    conn: &mut AsyncPgConnection,
    process: Timestamp,
) -> Result<Option<Timestamp>, DatabaseError> {
    match retention_time(conn, process).await {
        Ok(now) => Ok(Some(now)),
        Err(DatabaseError::ClocksDiffer { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Deletes the rows of `table` whose column `time` is older than `age`. The connection returns to the pool after
/// each batch. `now` is the time of this process, see [`retention_time`].
pub async fn delete_older_than(
    pool: &Pool,
    table: &'static str,
    time: &'static str,
    now: Timestamp,
    age: TimeDelta,
) -> Result<(), DatabaseError> {
    let now = retention_time(&mut *pool.get().await?, now).await?;
    let Some(before) = now.checked_sub_signed(age) else { return Ok(()) };
    let statement = format!(
        "DELETE FROM {table} WHERE ctid = ANY (ARRAY \
         (SELECT ctid FROM {table} WHERE {time} < $1 LIMIT {BATCH_SIZE}))"
    );
    loop {
        let batch = sql(&statement, before);
        if batch.execute(&mut *pool.get().await?).await? < BATCH_SIZE {
            return Ok(());
        }
    }
}
