//! Times in forms. They have no zone, so each page has one.

use chrono::{DateTime, NaiveDateTime, SecondsFormat, TimeZone as _, Timelike as _, Utc};
use chrono_tz::Tz;

/// A time of a form. Times without a zone are in the given one; of two times with the same name it is the first.
pub(crate) fn parse_time(text: &str, zone: Tz) -> Option<DateTime<Utc>> {
    let local = ["%Y-%m-%dT%H:%M", "%Y-%m-%dT%H:%M:%S%.f"]
        .into_iter()
        .find_map(|format| NaiveDateTime::parse_from_str(text, format).ok());
    let zoned = || Some(DateTime::parse_from_rfc3339(text).ok()?.to_utc());
    let in_zone = |time: NaiveDateTime| Some(zone.from_local_datetime(&time).earliest()?.to_utc());
    local.and_then(in_zone).or_else(zoned)
}

/// A time of a form as the API reads it.
pub(crate) fn rfc3339(text: &str, zone: Tz) -> String {
    let time = parse_time(text, zone);
    time.map_or_else(|| text.to_owned(), |time| time.to_rfc3339_opts(SecondsFormat::AutoSi, true))
}

/// A time as the value of a `datetime-local` input.
pub(crate) fn input_value(text: &str, zone: Tz) -> String {
    let Some(time) = parse_time(text, zone) else { return String::new() };
    let time = time.with_timezone(&zone);
    let format = if time.second() == 0 { "%Y-%m-%dT%H:%M" } else { "%Y-%m-%dT%H:%M:%S" };
    time.format(format).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_forms_are_in_their_zone() {
        for (typed, sent) in [
            ("2026-11-16T08:00", "2026-11-16T08:00:00Z"),
            ("2026-11-16T08:00:30", "2026-11-16T08:00:30Z"),
            ("2026-11-16T08:00:00+01:00", "2026-11-16T07:00:00Z"),
            ("today", "today"),
        ] {
            assert_eq!(rfc3339(typed, Tz::UTC), sent);
        }
        assert_eq!(rfc3339("2026-11-16T08:00", Tz::Europe__Berlin), "2026-11-16T07:00:00Z");
    }

    #[test]
    fn a_field_shows_seconds_only_if_there_are_some() {
        assert_eq!(input_value("2026-11-16T08:00:00Z", Tz::UTC), "2026-11-16T08:00");
        assert_eq!(input_value("2026-11-16T08:00:07Z", Tz::UTC), "2026-11-16T08:00:07");
        assert_eq!(input_value("2026-11-16T08:00Z", Tz::UTC), "");
    }
}
