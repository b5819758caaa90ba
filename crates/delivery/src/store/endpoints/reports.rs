//! Failures and recoveries of endpoints that are not reported yet.

use diesel_async::{AsyncPgConnection, RunQueryDsl};
use platform::{
    Timestamp,
    database::{DatabaseError, column, sql},
};

use super::states::{EndpointKey, KeyRow, keys};

platform::rows! {
    /// The failure of an endpoint, or its end.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub(crate) struct HealthChange {
        pub(crate) merchant: String,
        pub(crate) kind: String,
        pub(crate) failing_since: Timestamp,
        /// None while the failure goes on.
        pub(crate) recovered_at: Option<Timestamp>,
        pub(crate) last_failure_status: Option<i32>,
    }
}

/// Returns up to `limit` endpoints whose failures began until `began_by` and are not reported, the longest first.
pub(crate) async fn unreported_failures(
    conn: &mut AsyncPgConnection,
    began_by: Timestamp,
    limit: i64,
) -> Result<Vec<EndpointKey>, DatabaseError> {
    let query = sql(
        "SELECT merchant, kind FROM delivery_endpoints \
         WHERE failing_since IS NOT NULL AND reported_failing_since IS NULL AND failing_since <= $1 \
         ORDER BY failing_since LIMIT $2",
        (began_by, limit),
    );
    let rows: Vec<KeyRow> = query.load(conn).await?;
    Ok(keys(rows))
}

/// Notes that failures are reported, and returns those that still go on.
pub(crate) async fn report_failures(
    conn: &mut AsyncPgConnection,
    endpoints: &[EndpointKey],
    began_by: Timestamp,
) -> Result<Vec<HealthChange>, DatabaseError> {
    let statement = sql(
        include_str!("report_failures.sql"),
        (
            column(endpoints, |(merchant, _)| merchant.as_str()),
            column(endpoints, |(_, kind)| kind.as_str()),
            began_by,
        ),
    );
    Ok(statement.load(conn).await?)
}

/// Returns up to `limit` endpoints whose recoveries are not reported, by merchant and kind.
pub(crate) async fn unreported_recoveries(
    conn: &mut AsyncPgConnection,
    limit: i64,
) -> Result<Vec<EndpointKey>, DatabaseError> {
    let query = sql(
        "SELECT merchant, kind FROM delivery_endpoints \
         WHERE failing_since IS NULL AND reported_failing_since IS NOT NULL \
         ORDER BY merchant, kind LIMIT $1",
        limit,
    );
    let rows: Vec<KeyRow> = query.load(conn).await?;
    Ok(keys(rows))
}

/// Notes that recoveries are reported, and returns those of endpoints that do not fail again.
pub(crate) async fn report_recoveries(
    conn: &mut AsyncPgConnection,
    endpoints: &[EndpointKey],
    now: Timestamp,
) -> Result<Vec<HealthChange>, DatabaseError> {
    let statement = sql(
        include_str!("report_recoveries.sql"),
        (
            column(endpoints, |(merchant, _)| merchant.as_str()),
            column(endpoints, |(_, kind)| kind.as_str()),
            now,
        ),
    );
    Ok(statement.load(conn).await?)
}
