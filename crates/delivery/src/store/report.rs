//! Counts of attempts over time, for reports.

use diesel::QueryableByName;
use diesel::sql_types::{BigInt, Integer, Nullable, Text, Timestamptz};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use platform::{Timestamp, database::DatabaseError};
use serde::Deserialize;
use utoipa::ToSchema;

/// Length of the periods of a report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Period {
    #[default]
    Hour,
    Day,
}

impl Period {
    fn as_str(self) -> &'static str {
        match self {
            Self::Hour => "hour",
            Self::Day => "day",
        }
    }
}

#[derive(Debug)]
pub(crate) struct ReportFilter {
    pub(crate) merchant: Option<String>,
    pub(crate) kind: Option<String>,
    pub(crate) from: Timestamp,
    pub(crate) to: Timestamp,
}

#[derive(QueryableByName)]
pub(crate) struct ReportRow {
    #[diesel(sql_type = Timestamptz)]
    pub(crate) period_start_at: Timestamp,
    #[diesel(sql_type = Text)]
    pub(crate) merchant: String,
    #[diesel(sql_type = Text)]
    pub(crate) kind: String,
    #[diesel(sql_type = Text)]
    pub(crate) outcome: String,
    #[diesel(sql_type = Nullable<Integer>)]
    pub(crate) status: Option<i32>,
    #[diesel(sql_type = BigInt)]
    pub(crate) attempts: i64,
}

const REPORT: &str = "SELECT date_trunc($1, hour, 'UTC') AS period_start_at, merchant, kind, outcome, \
     NULLIF(status, 0) AS status, sum(attempts)::bigint AS attempts FROM delivery_counts \
     WHERE hour >= date_trunc('hour', $2, 'UTC') AND hour < $3 \
     AND ($4::text IS NULL OR merchant = $4) AND ($5::text IS NULL OR kind = $5) \
     GROUP BY 1, 2, 3, 4, 5 ORDER BY 1 DESC, 2 DESC, 3 DESC, 4 DESC, 5 DESC LIMIT $6";

/// Counts attempts, newest period first.
pub(crate) async fn report(
    conn: &mut AsyncPgConnection,
    filter: &ReportFilter,
    period: Period,
    limit: i64,
) -> Result<Vec<ReportRow>, DatabaseError> {
    Ok(diesel::sql_query(REPORT)
        .bind::<Text, _>(period.as_str())
        .bind::<Timestamptz, _>(filter.from)
        .bind::<Timestamptz, _>(filter.to)
        .bind::<Nullable<Text>, _>(filter.merchant.as_deref())
        .bind::<Nullable<Text>, _>(filter.kind.as_deref())
        .bind::<BigInt, _>(limit)
        .load(conn)
        .await?)
}
