//! Reports attempts and their durations hour by hour.

#![expect(unused_qualifications, reason = "the route macros repeat the types of queries")]

use std::collections::HashMap;

use actix_web::{HttpResponse, get, web};
use api::delivery::{DurationBucket, HourReport, HourlyReport};
use chrono::{DurationRound as _, TimeDelta};
use domain::access::MerchantId;
use platform::http::Query;
use platform::identity::Caller;
use platform::{Problem, Timestamp};
use serde::Deserialize;
use utoipa::IntoParams;

use super::access::readable_merchant;
use super::{Error, check_kind, parse_merchant};
use crate::Deliveries;
use crate::histogram::Histogram;
use crate::store::{self, HourBucket};

const HOUR: TimeDelta = TimeDelta::hours(1);
const DEFAULT_HOURS: u16 = 24;
/// Hours are kept for 30 days.
const MAX_HOURS: u16 = 720;

/// Filter and length of an hourly report.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
pub(crate) struct HourlyQuery {
    merchant: Option<String>,
    /// For example `rma`.
    kind: Option<String>,
    /// Number of hours, including the current one.
    #[serde(default = "default_hours")]
    #[param(minimum = 1, maximum = 720, default = 24)]
    hours: u16,
}

fn default_hours() -> u16 {
    DEFAULT_HOURS
}

fn show_hour(hour: Timestamp, histogram: &Histogram) -> HourReport {
    HourReport {
        period_start_at: hour,
        attempts: histogram.attempts,
        delivered: histogram.delivered,
        failed: histogram.attempts - histogram.delivered,
        p50_ms: histogram.percentile_ms(50),
        p95_ms: histogram.percentile_ms(95),
        durations: histogram
            .buckets()
            .into_iter()
            .map(|(from_ms, to_ms, attempts)| DurationBucket { from_ms, to_ms, attempts })
            .collect(),
    }
}

/// Report deliveries by hour
///
/// Counts every attempt, and estimates percentiles of their durations from a histogram.
#[utoipa::path(
    tag = "deliveries", security(("bearer" = ["read"]), ("bearer" = ["orders"]), ("bearer" = ["returns"])),
    params(HourlyQuery),
    responses((status = 200, body = HourlyReport))
)]
#[get("/v1/reports/hourly")]
pub(crate) async fn report_hours(
    deliveries: web::Data<Deliveries>,
    caller: Caller,
    query: Query<HourlyQuery>,
) -> Result<HttpResponse, Problem> {
    let merchant = readable_merchant(&caller, parse_merchant(query.merchant.as_deref())?)?;
    check_kind(query.kind.as_deref())?;
    if !(1..=MAX_HOURS).contains(&query.hours) {
        return Err(Error::Malformed(format!("hours must be between 1 and {MAX_HOURS}")).into());
    }
    let now = deliveries.0.clock.now();
    let current = now.duration_trunc(HOUR).unwrap_or(now);
    let first = current - HOUR * (i32::from(query.hours) - 1);
    let mut conn = deliveries.0.pool.reader(merchant.as_ref().map(MerchantId::as_str)).await?;
    let kinds = deliveries.0.kinds.iter().map(|kind| kind.name());
    let kinds: Vec<_> =
        kinds.filter(|kind| query.kind.as_deref().is_none_or(|only| only == *kind)).collect();
    let merchant = merchant.as_ref().map(MerchantId::as_str);
    let buckets = store::hourly_latencies(&mut conn, first, merchant, &kinds).await?;
    let histograms = by_hour(&buckets);
    let hours = std::iter::successors(Some(first), |hour| Some(*hour + HOUR));
    let empty = Histogram::default();
    let report = |hour| show_hour(hour, histograms.get(&hour).unwrap_or(&empty));
    let hours = hours.take(query.hours.into()).map(report).collect();
    Ok(HttpResponse::Ok().json(HourlyReport { hours }))
}

fn by_hour(buckets: &[HourBucket]) -> HashMap<Timestamp, Histogram> {
    let mut hours = HashMap::<_, Histogram>::new();
    for HourBucket { hour, bucket, attempts, delivered } in buckets {
        hours.entry(*hour).or_default().add(*bucket, *attempts, *delivered);
    }
    hours
}
