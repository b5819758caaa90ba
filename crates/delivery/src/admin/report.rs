//! Counts by merchant, kind and status code over time.

#![expect(unused_qualifications, reason = "the route macros repeat the types of queries")]

use actix_web::{HttpResponse, get, web};
use chrono::{DateTime, TimeDelta, Utc};
use diesel::QueryableByName;
use diesel::sql_types::{BigInt, Integer, Nullable, Text, Timestamptz};
use diesel_async::RunQueryDsl;
use platform::http::ErrorBody;
use platform::identity::Caller;
use platform::{Problem, database::DatabaseError};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::list::merchant_id;
use super::{check_kind, check_moments, readable};
use crate::Deliveries;

/// The usual span of a report.
const A_DAY: TimeDelta = TimeDelta::days(1);
const MOST_ROWS: usize = 10_000;

/// How a report is cut up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Unit {
    #[default]
    Hour,
    Day,
}

/// Which requests are counted.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
pub(crate) struct ReportQuery {
    merchant: Option<String>,
    kind: Option<String>,
    /// From this hour on; unless said, the last 24 hours.
    from: Option<DateTime<Utc>>,
    to: Option<DateTime<Utc>>,
    /// `hour` or `day`.
    #[serde(default)]
    #[param(inline)]
    by: Unit,
}

/// The requests of one hour or day that came to the same.
#[derive(Serialize, ToSchema, QueryableByName)]
pub(crate) struct Count {
    #[diesel(sql_type = Timestamptz)]
    begins_at: DateTime<Utc>,
    #[diesel(sql_type = Text)]
    merchant: String,
    #[diesel(sql_type = Text)]
    kind: String,
    #[diesel(sql_type = Text)]
    outcome: String,
    /// Absent when the endpoint did not answer.
    #[diesel(sql_type = Nullable<Integer>)]
    status: Option<i32>,
    #[diesel(sql_type = BigInt)]
    requests: i64,
}

/// Requests by time, merchant, kind and what they came to.
#[derive(Serialize, ToSchema)]
pub(crate) struct Report {
    counts: Vec<Count>,
    /// There are more than 10 000 counts, and the oldest are left out: ask about a shorter time, or by day.
    truncated: bool,
}

/// Report deliveries
///
/// Every try is counted, also one that ended before the merchant was asked.
#[utoipa::path(
    tag = "deliveries", security(("bearer" = [])), params(ReportQuery),
    responses(
        (status = 200, body = Report), (status = 400, body = ErrorBody),
        (status = 401, body = ErrorBody), (status = 403, body = ErrorBody),
    )
)]
#[get("/v1/reports/deliveries")]
pub(crate) async fn report_deliveries(
    deliveries: web::Data<Deliveries>,
    caller: Caller,
    query: web::Query<ReportQuery>,
) -> Result<HttpResponse, Problem> {
    let merchant = readable(&caller, merchant_id(query.merchant.as_deref())?)?;
    check_kind(query.kind.as_deref())?;
    check_moments(&[query.from, query.to])?;
    let to = query.to.unwrap_or_else(|| deliveries.0.clock.now());
    let from = query.from.unwrap_or(to - A_DAY);
    let unit = match query.by {
        Unit::Hour => "hour",
        Unit::Day => "day",
    };
    let mut conn = deliveries.0.pool.get().await?;
    let mut counts: Vec<Count> = diesel::sql_query(
        "SELECT date_trunc($1, hour, 'UTC') AS begins_at, merchant, kind, outcome, \
         NULLIF(status, 0) AS status, sum(requests)::bigint AS requests FROM delivery_counts \
         WHERE hour >= date_trunc('hour', $2, 'UTC') AND hour < $3 \
         AND ($4::text IS NULL OR merchant = $4) AND ($5::text IS NULL OR kind = $5) \
         GROUP BY 1, 2, 3, 4, 5 ORDER BY 1 DESC, 2 DESC, 3 DESC, 4 DESC, 5 DESC LIMIT $6",
    )
    .bind::<Text, _>(unit)
    .bind::<Timestamptz, _>(from)
    .bind::<Timestamptz, _>(to)
    .bind::<Nullable<Text>, _>(merchant.map(String::from))
    .bind::<Nullable<Text>, _>(query.kind.as_deref())
    .bind::<BigInt, _>(i64::try_from(MOST_ROWS + 1).unwrap_or(i64::MAX))
    .load(&mut conn)
    .await
    .map_err(DatabaseError::from)?;
    let truncated = counts.len() > MOST_ROWS;
    counts.truncate(MOST_ROWS);
    // The newest were kept, and the oldest come first.
    counts.reverse();
    Ok(HttpResponse::Ok().json(Report { counts, truncated }))
}
