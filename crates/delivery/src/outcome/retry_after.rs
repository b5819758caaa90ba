//! The `Retry-After` header: seconds, or a date in one of the three HTTP formats.

use chrono::{DateTime, TimeDelta, Utc};

/// Longest delay that a merchant may request; longer ones are reduced to it.
pub const MAX_RETRY_AFTER: TimeDelta = TimeDelta::hours(1);

/// Parses a `Retry-After` value; `None` when it is malformed.
pub fn parse_retry_after(value: &str, now: DateTime<Utc>) -> Option<DateTime<Utc>> {
    let value = value.trim();
    if !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit()) {
        // A number that overflows is longer than the maximum anyway.
        let seconds = TimeDelta::try_seconds(value.parse().unwrap_or(i64::MAX));
        return Some(now + seconds.map_or(MAX_RETRY_AFTER, |seconds| seconds.min(MAX_RETRY_AFTER)));
    }
    httpdate::parse_http_date(value).ok().map(DateTime::<Utc>::from)
}
