//! Counts of attempts over time, for reports.

use diesel_async::{AsyncPgConnection, RunQueryDsl};
use platform::{
    Timestamp,
    database::{DatabaseError, Each, IndexRange, sql},
};
use serde::Deserialize;
use utoipa::ToSchema;

/// Limit on the hourly counts that one report reads.
pub(crate) const MAX_READ: i64 = 50_000;

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

platform::rows! {
    pub(crate) struct ReportRow {
        pub(crate) period_start_at: Timestamp,
        pub(crate) merchant: String,
        pub(crate) kind: String,
        pub(crate) outcome: String,
        pub(crate) status: Option<i32>,
        pub(crate) attempts: i64,
        /// Number of hourly counts that were added up.
        pub(crate) read: i64,
    }
}

/// Hourly counts, newest first. An index has those of one merchant, and another one those of all, in this
/// order.
fn hourly(filter: &ReportFilter) -> String {
    let fixed = filter.merchant.as_ref().map(|_| ("merchant", "$4".to_owned()));
    let range = IndexRange { fixed: fixed.as_slice(), sorted: &["hour"] };
    let merchant = if fixed.is_none() { " merchant DESC," } else { "" };
    format!(
        "SELECT * FROM delivery_counts WHERE {} AND ($3::text IS NULL OR kind = $3) \
         ORDER BY {},{merchant} kind DESC, outcome DESC, status DESC LIMIT {MAX_READ}",
        range.condition(Some((">=", "date_trunc('hour', $1, 'UTC')")), Some(("<", "$2"))),
        range.order("DESC")
    )
}

/// Counts attempts, newest period first. Reads at most [`MAX_READ`] hourly counts; then the counts of the
/// last period are not complete.
pub(crate) async fn report(
    conn: &mut AsyncPgConnection,
    filter: &ReportFilter,
    period: Period,
) -> Result<Vec<ReportRow>, DatabaseError> {
    let text = format!(
        "SELECT date_trunc('{}', hour, 'UTC') AS period_start_at, merchant, kind, outcome, \
         NULLIF(status, 0) AS status, sum(attempts)::bigint AS attempts, count(*) AS read \
         FROM ({}) AS counts GROUP BY 1, 2, 3, 4, 5 \
         ORDER BY 1 DESC, 2 DESC, 3 DESC, 4 DESC, 5 DESC",
        period.as_str(),
        hourly(filter)
    );
    let merchant = Each(filter.merchant.as_deref());
    let query = sql(text, (filter.from, filter.to, filter.kind.as_deref(), merchant));
    Ok(query.load(conn).await?)
}
