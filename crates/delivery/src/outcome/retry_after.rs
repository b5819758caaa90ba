//! The `Retry-After` header: seconds, or a date in any of the three forms HTTP knows.

use chrono::{DateTime, TimeDelta, Utc};

/// A merchant may push a retry back this far; a longer wish is cut to it.
pub const LONGEST: TimeDelta = TimeDelta::hours(1);

/// The moment a `Retry-After` value names; nothing when it cannot be read.
pub fn parse_retry_after(value: &str, now: DateTime<Utc>) -> Option<DateTime<Utc>> {
    let value = value.trim();
    if !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit()) {
        // More digits than fit are a long time, and a long time is cut anyway.
        let seconds = value.parse().unwrap_or(i64::MAX);
        return Some(now + TimeDelta::try_seconds(seconds).map_or(LONGEST, |s| s.min(LONGEST)));
    }
    httpdate::parse_http_date(value).ok().map(DateTime::<Utc>::from)
}
