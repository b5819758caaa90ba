//! Attempts hour by hour.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Attempts hour by hour, oldest first. Hours without attempts are included.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct HourlyReport {
    pub hours: Vec<HourReport>,
}

/// Attempts of one hour.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct HourReport {
    pub period_start_at: DateTime<Utc>,
    pub attempts: i64,
    /// Attempts that delivered their message.
    pub delivered: i64,
    /// All other attempts.
    pub failed: i64,
    /// Median duration of an attempt in milliseconds, failed ones included. Null without attempts.
    pub p50_ms: Option<i64>,
    /// Duration that 95 % of the attempts did not exceed.
    pub p95_ms: Option<i64>,
    /// Histogram of the durations, without empty buckets. Histograms can be added up, percentiles
    /// cannot.
    pub durations: Vec<DurationBucket>,
}

/// Attempts that took longer than `from_ms` and at most `to_ms`.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct DurationBucket {
    pub from_ms: i64,
    /// Null for the longest durations.
    pub to_ms: Option<i64>,
    pub attempts: i64,
}
