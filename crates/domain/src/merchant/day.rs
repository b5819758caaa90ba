//! Days in a merchant's time zone.

use chrono::{DateTime, Days, NaiveDate, NaiveTime, TimeDelta, TimeZone, Utc};
use chrono_tz::Tz;

use super::settings::Settings;

/// RFC 3339 has no later second: years have four digits.
const LATEST_END: DateTime<Utc> = DateTime::from_timestamp(253_402_300_799, 0).unwrap();

impl Settings {
    /// The merchant's time zone.
    pub fn zone(&self) -> Tz {
        // Validation rejects unknown time zones, so the fallback is never used.
        self.time_zone.parse().unwrap_or(Tz::UTC)
    }
}

/// The end of the day that is this many days after a day: midnight in the time zone. In the year 9999 at the latest.
pub fn end_of_day(day: NaiveDate, days: u16, zone: Tz) -> DateTime<Utc> {
    let Some(day) = day.checked_add_days(Days::new(u64::from(days) + 1)) else {
        return LATEST_END;
    };
    let midnight = day.and_time(NaiveTime::MIN);
    // Some zones skip midnight when their clocks change; the day then starts after the gap.
    let first = (0..=24)
        .filter_map(|quarters| midnight.checked_add_signed(TimeDelta::minutes(15 * quarters)))
        .find_map(|time| zone.from_local_datetime(&time).earliest());
    first.map_or_else(|| midnight.and_utc(), |time| time.to_utc()).min(LATEST_END)
}
