//! Reports attempts by time, merchant, kind and outcome.

#![expect(unused_qualifications, reason = "the route macros repeat the types of queries")]

use actix_web::{HttpResponse, get, web};
use chrono::{DateTime, TimeDelta, Utc};
use platform::http::Query;
use platform::identity::Caller;
use platform::{Problem, Timestamp};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::access::readable_merchant;
use super::{Error, check_kind, check_times, parse_merchant};
use crate::Deliveries;
use crate::store::{self, MAX_READ, Period, ReportFilter, ReportRow};

const DEFAULT_PERIOD: TimeDelta = TimeDelta::days(1);
pub(super) const MAX_SPAN: TimeDelta = TimeDelta::days(31);
const MAX_ROWS: usize = 10_000;

/// Filter and period of a report.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
pub(crate) struct ReportQuery {
    merchant: Option<String>,
    kind: Option<String>,
    /// First hour of the report; 24 hours before `to` by default, and at most 31 days before it.
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
    /// True if there are more than 10,000 counts, or more than 50,000 hourly ones to add up; the oldest are
    /// left out. Use a merchant, a shorter time or `by=day`.
    truncated: bool,
}

/// Report deliveries
///
/// Counts every attempt, including attempts that failed before the request.
#[utoipa::path(
    tag = "deliveries", security(("bearer" = ["read"]), ("bearer" = ["orders"]), ("bearer" = ["returns"])), params(ReportQuery),
    responses((status = 200, body = DeliveryReport))
)]
#[get("/v1/reports/deliveries")]
pub(crate) async fn report_deliveries(
    deliveries: web::Data<Deliveries>,
    caller: Caller,
    query: Query<ReportQuery>,
) -> Result<HttpResponse, Problem> {
    let query = query.into_inner();
    let merchant = readable_merchant(&caller, parse_merchant(query.merchant.as_deref())?)?;
    check_kind(query.kind.as_deref())?;
    check_times(&[query.from, query.to])?;
    let (from, to) = period((query.from, query.to), deliveries.0.clock.now(), DEFAULT_PERIOD)?;
    let merchant = merchant.map(String::from);
    let filter = ReportFilter { merchant, kind: query.kind, from, to };
    let mut conn = deliveries.0.pool.reader(filter.merchant.as_deref()).await?;
    let mut rows = store::report(&mut conn, &filter, query.by).await?;
    let truncated = truncate(&mut rows);
    let counts = rows.into_iter().rev().map(AttemptCount::from).collect();
    Ok(HttpResponse::Ok().json(DeliveryReport { counts, truncated }))
}

/// Leaves out the oldest rows of a report that is too long, and the last period if it was not read
/// completely. Returns whether any were left out.
fn truncate(rows: &mut Vec<ReportRow>) -> bool {
    let is_incomplete = rows.iter().map(|row| row.read).sum::<i64>() >= MAX_READ;
    let oldest = rows.last().map(|row| row.period_start_at);
    if is_incomplete && rows.first().map(|row| row.period_start_at) != oldest {
        rows.retain(|row| Some(row.period_start_at) != oldest);
    }
    let truncated = is_incomplete || rows.len() > MAX_ROWS;
    rows.truncate(MAX_ROWS);
    truncated
}

/// The start and the end of a report.
pub(super) fn period(
    (from, to): (Option<DateTime<Utc>>, Option<DateTime<Utc>>),
    now: Timestamp,
    default: TimeDelta,
) -> Result<(Timestamp, Timestamp), Error> {
    let to = to.unwrap_or(now);
    let from = from.unwrap_or(to - default);
    if to - from > MAX_SPAN {
        return Err(Error::Malformed("a report must not be longer than 31 days".to_owned()));
    }
    Ok((from, to))
}
