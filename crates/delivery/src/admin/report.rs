//! Reports attempts by time, merchant, kind and outcome.

#![expect(unused_qualifications, reason = "the route macros repeat the types of queries")]

use actix_web::{HttpResponse, get, web};
use chrono::{DateTime, TimeDelta, Utc};
use platform::Problem;
use platform::http::ErrorBody;
use platform::identity::Caller;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::access::readable_merchant;
use super::{check_kind, check_times, parse_merchant};
use crate::Deliveries;
use crate::store::{self, Period, ReportFilter, ReportRow};

const DEFAULT_SPAN: TimeDelta = TimeDelta::days(1);
const MAX_ROWS: usize = 10_000;

/// Filter and period of a report.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
pub(crate) struct ReportQuery {
    merchant: Option<String>,
    kind: Option<String>,
    /// First hour of the report; 24 hours before `to` by default.
    from: Option<DateTime<Utc>>,
    /// End of the report; now by default.
    to: Option<DateTime<Utc>>,
    /// `hour` or `day`.
    #[serde(default)]
    #[param(inline)]
    by: Period,
}

/// Attempts of one hour or day with the same merchant, kind, outcome and status.
#[derive(Serialize, ToSchema)]
pub(crate) struct AttemptCount {
    period_start_at: DateTime<Utc>,
    merchant: String,
    kind: String,
    outcome: String,
    /// HTTP status code; null without a response.
    status: Option<i32>,
    attempts: i64,
}

impl From<ReportRow> for AttemptCount {
    fn from(row: ReportRow) -> Self {
        Self {
            period_start_at: row.period_start_at,
            merchant: row.merchant,
            kind: row.kind,
            outcome: row.outcome,
            status: row.status,
            attempts: row.attempts,
        }
    }
}

/// Counts of attempts, oldest first.
#[derive(Serialize, ToSchema)]
pub(crate) struct DeliveryReport {
    counts: Vec<AttemptCount>,
    /// True if there are more than 10,000 counts; the oldest are left out. Use a shorter time or `by=day`.
    truncated: bool,
}

/// Report deliveries
///
/// Counts every attempt, including attempts that failed before the request.
#[utoipa::path(
    tag = "deliveries", security(("bearer" = ["read"]), ("bearer" = ["orders"]), ("bearer" = ["returns"])), params(ReportQuery),
    responses(
        (status = 200, body = DeliveryReport), (status = 400, body = ErrorBody),
        (status = 401, body = ErrorBody), (status = 403, body = ErrorBody),
    )
)]
#[get("/v1/reports/deliveries")]
pub(crate) async fn report_deliveries(
    deliveries: web::Data<Deliveries>,
    caller: Caller,
    query: web::Query<ReportQuery>,
) -> Result<HttpResponse, Problem> {
    let query = query.into_inner();
    let merchant = readable_merchant(&caller, parse_merchant(query.merchant.as_deref())?)?;
    check_kind(query.kind.as_deref())?;
    check_times(&[query.from, query.to])?;
    let to = query.to.unwrap_or_else(|| deliveries.0.clock.now());
    let filter = ReportFilter {
        merchant: merchant.map(String::from),
        kind: query.kind,
        from: query.from.unwrap_or(to - DEFAULT_SPAN),
        to,
    };
    let mut conn = deliveries.0.pool.get().await?;
    let limit = i64::try_from(MAX_ROWS + 1).unwrap_or(i64::MAX);
    let mut rows = store::report(&mut conn, &filter, query.by, limit).await?;
    let truncated = rows.len() > MAX_ROWS;
    rows.truncate(MAX_ROWS);
    let counts = rows.into_iter().rev().map(AttemptCount::from).collect();
    Ok(HttpResponse::Ok().json(DeliveryReport { counts, truncated }))
}
