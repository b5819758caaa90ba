//! Reports the success rate and the durations of attempts for each endpoint.

#![expect(unused_qualifications, reason = "the route macros repeat the types of queries")]

use std::collections::BTreeMap;

use actix_web::{HttpResponse, get, web};
use chrono::{DateTime, TimeDelta, Utc};
use domain::access::MerchantId;
use platform::Problem;
use platform::http::Query;
use platform::identity::Caller;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::access::readable_merchant;
use super::report::period;
use super::{check_times, parse_merchant};
use crate::Deliveries;
use crate::histogram::Histogram;
use crate::store;

const DEFAULT_PERIOD: TimeDelta = TimeDelta::days(1);
const MAX_ENDPOINTS: usize = 1000;

/// Filter of a report of endpoints.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
pub(crate) struct EndpointReportQuery {
    merchant: Option<String>,
    /// First hour of the report; 24 hours before `to` by default, and at most 31 days before it. Hours are
    /// kept for 30 days.
    from: Option<DateTime<Utc>>,
    /// End of the report; now by default.
    to: Option<DateTime<Utc>>,
}

/// Attempts at one endpoint.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct EndpointAttempts {
    merchant: String,
    kind: String,
    attempts: i64,
    /// Attempts that delivered their message.
    delivered: i64,
    /// All other attempts.
    failed: i64,
    /// Part of the attempts that delivered their message, from 0 to 1.
    success_rate: f64,
    /// Median duration of an attempt in milliseconds, failed ones included.
    p50_ms: i64,
    /// Duration that 95 % of the attempts did not exceed.
    p95_ms: i64,
}

/// Attempts at each endpoint, the lowest success rate first.
#[derive(Serialize, ToSchema)]
pub(crate) struct EndpointReport {
    endpoints: Vec<EndpointAttempts>,
    /// True if there are more than 1,000 endpoints, of which the best are left out, or more than 50,000
    /// hourly counts to add up. Use a merchant or a shorter time.
    truncated: bool,
}

/// Report endpoints
///
/// Success rate and durations of the attempts at each endpoint, worst first: by success rate, then by
/// the number of failed attempts. Endpoints without attempts are left out.
#[utoipa::path(
    tag = "deliveries", security(("bearer" = ["read"]), ("bearer" = ["orders"]), ("bearer" = ["returns"])),
    params(EndpointReportQuery),
    responses((status = 200, body = EndpointReport))
)]
#[get("/v1/reports/endpoints")]
pub(crate) async fn report_endpoints(
    deliveries: web::Data<Deliveries>,
    caller: Caller,
    query: Query<EndpointReportQuery>,
) -> Result<HttpResponse, Problem> {
    let merchant = readable_merchant(&caller, parse_merchant(query.merchant.as_deref())?)?;
    check_times(&[query.from, query.to])?;
    let period = period((query.from, query.to), deliveries.0.clock.now(), DEFAULT_PERIOD)?;
    let merchant = merchant.as_ref().map(MerchantId::as_str);
    let kinds: Vec<_> = deliveries.0.kinds.iter().map(|kind| kind.name()).collect();
    let mut conn = deliveries.0.pool.reader(merchant).await?;
    let (counts, is_truncated) =
        store::endpoint_latencies(&mut conn, period, merchant, &kinds).await?;
    let mut histograms = BTreeMap::<_, Histogram>::new();
    for count in counts {
        let histogram = histograms.entry((count.merchant, count.kind)).or_default();
        histogram.add(count.bucket, count.attempts, count.delivered);
    }
    let rows = histograms.into_iter();
    let mut endpoints: Vec<_> =
        rows.filter_map(|(key, it)| EndpointAttempts::new(key, &it)).collect();
    endpoints.sort_by(worst_first);
    let truncated = is_truncated || endpoints.len() > MAX_ENDPOINTS;
    endpoints.truncate(MAX_ENDPOINTS);
    Ok(HttpResponse::Ok().json(EndpointReport { endpoints, truncated }))
}

impl EndpointAttempts {
    fn new((merchant, kind): (String, String), histogram: &Histogram) -> Option<Self> {
        Some(Self {
            merchant,
            kind,
            attempts: histogram.attempts,
            delivered: histogram.delivered,
            failed: histogram.attempts - histogram.delivered,
            success_rate: histogram.success_rate()?,
            p50_ms: histogram.percentile_ms(50)?,
            p95_ms: histogram.percentile_ms(95)?,
        })
    }
}

fn worst_first(one: &EndpointAttempts, other: &EndpointAttempts) -> std::cmp::Ordering {
    let by_rate = one.success_rate.total_cmp(&other.success_rate);
    by_rate.then(other.failed.cmp(&one.failed)).then(other.p95_ms.cmp(&one.p95_ms))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_endpoint_is_first() {
        let endpoint = |kind: &str, attempts, delivered, bucket| {
            let mut histogram = Histogram::default();
            histogram.add(bucket, attempts, delivered);
            EndpointAttempts::new(("acme".to_owned(), kind.to_owned()), &histogram).unwrap()
        };
        let mut endpoints = [
            endpoint("fast", 9, 9, 1),
            endpoint("slow", 9, 9, 20),
            endpoint("dead", 1, 0, 1),
            endpoint("busy and dead", 9, 0, 1),
            endpoint("half", 4, 2, 1),
        ];
        endpoints.sort_by(worst_first);
        let order: Vec<_> = endpoints.iter().map(|it| it.kind.as_str()).collect();
        assert_eq!(order, ["busy and dead", "dead", "half", "slow", "fast"]);
        let empty = Histogram::default();
        assert!(EndpointAttempts::new((String::new(), String::new()), &empty).is_none());
    }
}
