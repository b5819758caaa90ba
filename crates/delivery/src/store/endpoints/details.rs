//! Backlog and health of endpoints.

use diesel::QueryableByName;
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use platform::{
    Timestamp,
    database::{DatabaseError, sql},
};

use super::health::EndpointHealth;

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
const DETAILS: &str = include_str!("endpoint_details.sql");

/// Returns the details of each endpoint, with its waiting deliveries counted up to `limit`.
pub(crate) async fn endpoint_details(
    conn: &mut AsyncPgConnection,
    (merchants, kinds): (&[&str], &[&str]),
    limit: i64,
    now: Timestamp,
) -> Result<Vec<EndpointDetails>, DatabaseError> {
    Ok(sql(DETAILS, (merchants, kinds, limit, now)).load(conn).await?)
}
