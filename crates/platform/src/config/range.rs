//! Ranges of settings. A value outside its range is a fault that names the range.
//!
//! `#[serde(deserialize_with = "range::time::<SECOND, DAY, _>")]` reads a time from a second to a day.

use std::time::Duration;

use bytesize::ByteSize;
use humantime_serde::re::humantime::format_duration;
use serde::{Deserialize as _, Deserializer, de::Error as _};

/// Milliseconds, the unit of the ranges of times.
pub const SECOND: u64 = 1_000;
pub const MINUTE: u64 = 60 * SECOND;
pub const HOUR: u64 = 60 * MINUTE;
pub const DAY: u64 = 24 * HOUR;
/// A year as humantime reads it: 365.25 days.
pub const YEAR: u64 = 8_766 * HOUR;
/// The maximum of times without a natural one. A longer time could not be added to a timestamp.
pub const CENTURY: u64 = 100 * YEAR;

/// The maximum of sizes.
pub const TIB: u64 = 1 << 40;
pub const GIB: u64 = 1 << 30;

/// Reads a whole number from `MIN` to `MAX`.
pub fn number<'de, const MIN: u64, const MAX: u64, N, D>(deserializer: D) -> Result<N, D::Error>
where
    N: TryFrom<u64>,
    D: Deserializer<'de>,
{
    let number = u64::deserialize(deserializer)?;
    let in_range = Some(number).filter(|number| (MIN..=MAX).contains(number));
    in_range.and_then(|number| N::try_from(number).ok()).ok_or_else(|| {
        D::Error::custom(format!("must be a whole number from {MIN} to {MAX}, not {number}"))
    })
}

/// Reads a time from `MIN` to `MAX` milliseconds.
pub fn time<'de, const MIN: u64, const MAX: u64, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Duration, D::Error> {
    let time: Duration = humantime_serde::deserialize(deserializer)?;
    let [min, max] = [MIN, MAX].map(Duration::from_millis);
    if (min..=max).contains(&time) {
        return Ok(time);
    }
    let [min, max, time] = [min, max, time].map(format_duration);
    Err(D::Error::custom(format!("must be a duration from {min} to {max}, not {time}")))
}

/// Reads a time of `MIN` to `MAX` whole days.
pub fn days<'de, const MIN: u64, const MAX: u64, N, D>(deserializer: D) -> Result<N, D::Error>
where
    N: TryFrom<u64>,
    D: Deserializer<'de>,
{
    const SECONDS: u64 = DAY / SECOND;
    let time: Duration = humantime_serde::deserialize(deserializer)?;
    let days = time.as_secs() / SECONDS;
    let is_whole = time == Duration::from_secs(days * SECONDS);
    let in_range = Some(days).filter(|days| is_whole && (MIN..=MAX).contains(days));
    in_range.and_then(|days| N::try_from(days).ok()).ok_or_else(|| {
        let time = format_duration(time);
        D::Error::custom(format!("must be whole days from {MIN} to {MAX}, not {time}"))
    })
}

/// Reads a size from `MIN` to `MAX` bytes, such as `64MiB`.
pub fn size<'de, const MIN: u64, const MAX: u64, N, D>(deserializer: D) -> Result<N, D::Error>
where
    N: TryFrom<u64>,
    D: Deserializer<'de>,
{
    let size = ByteSize::deserialize(deserializer)?;
    let in_range = Some(size.as_u64()).filter(|size| (MIN..=MAX).contains(size));
    in_range.and_then(|size| N::try_from(size).ok()).ok_or_else(|| {
        let [min, max] = [MIN, MAX].map(ByteSize);
        D::Error::custom(format!("must be a size from {min} to {max}, not {size}"))
    })
}

/// Reads a number from 0 to 1.
pub fn ratio<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    let ratio = f64::deserialize(deserializer)?;
    if (0.0..=1.0).contains(&ratio) {
        Ok(ratio)
    } else {
        Err(D::Error::custom(format!("must be a number from 0 to 1, not {ratio}")))
    }
}
