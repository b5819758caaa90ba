//! Deletes old rows in batches.

use diesel::sql_types::Timestamptz;
use diesel_async::RunQueryDsl as _;

use super::{DatabaseError, Pool};
use crate::Timestamp;

/// Rows that one statement deletes, so that it stays far below the statement timeout.
const BATCH_SIZE: usize = 10_000;

/// Deletes the rows of `table` whose column `time` is before a time. The connection returns to the pool
/// after each batch.
pub async fn delete_older_than(
    pool: &Pool,
    table: &'static str,
    time: &'static str,
    before: Timestamp,
) -> Result<(), DatabaseError> {
    let statement = format!(
        "DELETE FROM {table} WHERE ctid = ANY (ARRAY \
         (SELECT ctid FROM {table} WHERE {time} < $1 LIMIT {BATCH_SIZE}))"
    );
    loop {
        let batch = diesel::sql_query(&statement).bind::<Timestamptz, _>(before);
        if batch.execute(&mut *pool.get().await?).await? < BATCH_SIZE {
            return Ok(());
        }
    }
}
