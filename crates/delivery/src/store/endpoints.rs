//! Backlog and health of endpoints.

use diesel::QueryableByName;
use diesel::sql_query;
use diesel::sql_types::{Array, BigInt, Text, Timestamptz};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use platform::{Timestamp, database::DatabaseError};

use super::endpoint_health::EndpointHealth;

platform::rows! {
    /// Backlog, window and health of an endpoint.
    #[derive(Debug)]
    pub(crate) struct EndpointDetails {
        pub(crate) merchant: String,
        pub(crate) kind: String,
        pub(crate) waiting: i64,
        pub(crate) in_flight: i64,
        pub(crate) oldest_due_at: Option<Timestamp>,
        /// None before the first attempt.
        pub(crate) window_size: Option<i32>,
        #[diesel(embed)]
        pub(crate) health: EndpointHealth,
        /// Time and status of the last sample that the endpoint accepted.
        pub(crate) sample_at: Option<Timestamp>,
        pub(crate) sample_status: Option<i32>,
    }
}

/// The window bounds the queued deliveries of an endpoint; the others are counted up to the limit.
const DETAILS: &str = "SELECT given.merchant, given.kind, ( \
     SELECT count(*) FROM ( \
         (SELECT 1 FROM deliveries AS row WHERE row.merchant = given.merchant \
         AND row.kind = given.kind AND row.state = 'ready' \
         ORDER BY row.next_attempt_at LIMIT $3) \
         UNION ALL \
         SELECT 1 FROM deliveries AS row WHERE row.merchant = given.merchant \
         AND row.kind = given.kind AND row.state = 'blocked' \
         LIMIT $3 \
     ) AS waiting \
 ) AS waiting, ( \
     SELECT count(*) FROM deliveries AS row \
     WHERE row.merchant = given.merchant AND row.kind = given.kind AND row.state = 'queued' \
 ) AS in_flight, ( \
     SELECT next_attempt_at FROM deliveries AS row \
     WHERE row.merchant = given.merchant AND row.kind = given.kind AND row.state = 'ready' \
     AND row.next_attempt_at <= $4 ORDER BY next_attempt_at LIMIT 1 \
 ) AS oldest_due_at, endpoint.window_size, endpoint.last_success_at, \
 endpoint.last_success_status, endpoint.last_failure_at, endpoint.last_failure_status, \
 endpoint.last_failure_outcome, endpoint.failing_since, \
 sample.accepted_at AS sample_at, sample.status AS sample_status \
 FROM unnest($1, $2) AS given (merchant, kind) \
 LEFT JOIN delivery_endpoints AS endpoint USING (merchant, kind) \
 LEFT JOIN delivery_samples AS sample USING (merchant, kind)";

/// Returns the details of each endpoint, with its waiting deliveries counted up to `limit`.
pub(crate) async fn endpoint_details(
    conn: &mut AsyncPgConnection,
    (merchants, kinds): (&[&str], &[&str]),
    limit: i64,
    now: Timestamp,
) -> Result<Vec<EndpointDetails>, DatabaseError> {
    Ok(sql_query(DETAILS)
        .bind::<Array<Text>, _>(merchants)
        .bind::<Array<Text>, _>(kinds)
        .bind::<BigInt, _>(limit)
        .bind::<Timestamptz, _>(now)
        .load(conn)
        .await?)
}
