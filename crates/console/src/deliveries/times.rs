//! Times of forms.

use chrono::{DateTime, NaiveDateTime, SecondsFormat, TimeZone as _, Timelike as _, Utc};
use chrono_tz::Tz;

/// A time of a form. Times without a zone are in UTC.
pub(crate) fn parse_time(text: &str) -> Option<DateTime<Utc>> {
    parse_time_in(text, Tz::UTC)
}

/// A time of a form. Times without a zone are in the given one; of two times with the same name it is the first.
pub(super) fn parse_time_in(text: &str, zone: Tz) -> Option<DateTime<Utc>> {
    let local = ["%Y-%m-%dT%H:%M", "%Y-%m-%dT%H:%M:%S%.f"]
        .into_iter()
        .find_map(|format| NaiveDateTime::parse_from_str(text, format).ok());
    let zoned = || Some(DateTime::parse_from_rfc3339(text).ok()?.to_utc());
    let in_zone = |time: NaiveDateTime| Some(zone.from_local_datetime(&time).earliest()?.to_utc());
    local.and_then(in_zone).or_else(zoned)
}

/// A time of a form as the API reads it.
pub(crate) fn rfc3339_in(text: &str, zone: Tz) -> String {
    let time = parse_time_in(text, zone);
    time.map_or_else(|| text.to_owned(), |time| time.to_rfc3339_opts(SecondsFormat::AutoSi, true))
}

/// A time as the value of a `datetime-local` input.
pub(crate) fn input_value_in(text: &str, zone: Tz) -> String {
    let Some(time) = parse_time_in(text, zone) else { return String::new() };
    let time = time.with_timezone(&zone);
    let format = if time.second() == 0 { "%Y-%m-%dT%H:%M" } else { "%Y-%m-%dT%H:%M:%S" };
    time.format(format).to_string()
}
