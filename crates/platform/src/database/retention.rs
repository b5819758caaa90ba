//! Forgetting old rows, however many there are.

use diesel::sql_types::Timestamptz;
use diesel_async::RunQueryDsl as _;

use super::{DatabaseError, Pool};
use crate::Timestamp;

/// Rows deleted by one statement, so that none comes near the statement timeout.
const PIECE: usize = 10_000;

/// Deletes the rows of `table` whose `time` is before a moment, piece by piece. Between two pieces
/// others get their turn with the connection.
pub async fn delete_older_than(
    pool: &Pool,
    table: &'static str,
    time: &'static str,
    before: Timestamp,
) -> Result<(), DatabaseError> {
    let statement = format!(
        "DELETE FROM {table} WHERE ctid = ANY (ARRAY \
         (SELECT ctid FROM {table} WHERE {time} < $1 LIMIT {PIECE}))"
    );
    loop {
        let piece = diesel::sql_query(&statement).bind::<Timestamptz, _>(before);
        if piece.execute(&mut *pool.get().await?).await? < PIECE {
            return Ok(());
        }
    }
}
