//! The last sample that each endpoint accepted.

use diesel::sql_query;
use diesel::sql_types::{Array, Integer, Text, Timestamptz};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use platform::{Timestamp, database::DatabaseError};

use super::column;

/// Records the kinds of sample that a merchant accepted, each with the status of the response.
pub(crate) async fn record_samples(
    conn: &mut AsyncPgConnection,
    merchant: &str,
    accepted: &[(String, i32)],
    now: Timestamp,
) -> Result<(), DatabaseError> {
    sql_query(
        "INSERT INTO delivery_samples (merchant, kind, accepted_at, status) \
         SELECT $1, kind, $4, status FROM unnest($2, $3) AS accepted (kind, status) \
         ON CONFLICT (merchant, kind) DO UPDATE \
         SET accepted_at = excluded.accepted_at, status = excluded.status",
    )
    .bind::<Text, _>(merchant)
    .bind::<Array<Text>, _>(column(accepted, |(kind, _)| kind))
    .bind::<Array<Integer>, _>(column(accepted, |(_, status)| *status))
    .bind::<Timestamptz, _>(now)
    .execute(conn)
    .await?;
    Ok(())
}
