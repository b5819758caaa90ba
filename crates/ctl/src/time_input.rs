//! Times in flags: RFC 3339, a date, a length of time before now, or a day's name. All times are UTC.

use chrono::{DateTime, Days, NaiveDate, NaiveDateTime, NaiveTime};
use platform::{Clock, Timestamp};

use crate::usage_error;

/// Parses the value of a flag.
pub(crate) fn parse_time(text: &str) -> Result<Timestamp, String> {
    parse(text, Clock::system().now()).ok_or_else(|| {
        "write 2026-11-16T08:30:00Z, 2026-11-16, '2026-11-16 08:30', today, yesterday, or 2h for two \
         hours ago"
            .to_owned()
    })
}

fn parse(text: &str, now: Timestamp) -> Option<Timestamp> {
    let text = text.trim();
    let midnight = |date: NaiveDate| date.and_time(NaiveTime::MIN).and_utc();
    match text {
        "now" => return Some(now),
        "today" => return Some(midnight(now.date_naive())),
        "yesterday" => return Some(midnight(now.date_naive().checked_sub_days(Days::new(1))?)),
        _ => {}
    }
    if let Ok(at) = DateTime::parse_from_rfc3339(text) {
        return Some(at.to_utc());
    }
    if let Ok(date) = NaiveDate::parse_from_str(text, "%Y-%m-%d") {
        return Some(midnight(date));
    }
    // Tables show times in these forms.
    let table = text.strip_suffix('Z').unwrap_or(text);
    let forms = ["%Y-%m-%d %H:%M:%S", "%Y-%m-%d %H:%M", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%dT%H:%M"];
    let parsed = forms.iter().find_map(|form| NaiveDateTime::parse_from_str(table, form).ok());
    if let Some(at) = parsed {
        return Some(at.and_utc());
    }
    let age = humantime::parse_duration(text.strip_suffix(" ago").unwrap_or(text)).ok()?;
    now.checked_sub_signed(chrono::TimeDelta::from_std(age).ok()?)
}

/// Fails if the flags of a period are both set, and the first time is not before the second.
pub(crate) fn check_period(
    (from_flag, from): (&str, Option<Timestamp>),
    (to_flag, to): (&str, Option<Timestamp>),
) -> anyhow::Result<()> {
    match (from, to) {
        (Some(from), Some(to)) if from >= to => Err(usage_error(format!(
            "{from_flag} {} is not before {to_flag} {}",
            short_time(from),
            short_time(to)
        ))),
        _ => Ok(()),
    }
}

/// A time as a flag accepts it: a date for its start, or else RFC 3339 with seconds.
fn short_time(at: Timestamp) -> String {
    let is_date = at.time() == NaiveTime::MIN;
    at.format(if is_date { "%Y-%m-%d" } else { "%Y-%m-%dT%H:%M:%SZ" }).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_has_many_forms() {
        let now: Timestamp = "2026-11-16T08:30:00Z".parse().unwrap();
        for (text, expected) in [
            ("2026-11-15T03:48:13.5+02:00", "2026-11-15T01:48:13.5Z"),
            ("2026-11-15", "2026-11-15T00:00:00Z"),
            ("2026-11-15 03:48", "2026-11-15T03:48:00Z"),
            ("2026-11-15 03:48:13Z", "2026-11-15T03:48:13Z"),
            ("2026-11-15T03:48", "2026-11-15T03:48:00Z"),
            ("now", "2026-11-16T08:30:00Z"),
            ("today", "2026-11-16T00:00:00Z"),
            ("yesterday", "2026-11-15T00:00:00Z"),
            ("2h", "2026-11-16T06:30:00Z"),
            ("1h 30min", "2026-11-16T07:00:00Z"),
            ("7d", "2026-11-09T08:30:00Z"),
            ("45m ago", "2026-11-16T07:45:00Z"),
        ] {
            assert_eq!(parse(text, now), Some(expected.parse().unwrap()), "{text}");
        }
        for text in
            ["", "tomorrow", "2026-13-01", "16.11.2026", "2", "-2h", "99999999999999y", "08:30"]
        {
            assert_eq!(parse(text, now), None, "{text}");
        }
        assert!(parse_time("someday").unwrap_err().contains("2h for two hours ago"));
    }

    #[test]
    fn a_period_ends_after_its_start() {
        let check = |from: &str, to: &str| {
            let now = "2026-11-16T08:30:00Z".parse().unwrap();
            check_period(("--from", parse(from, now)), ("--to", parse(to, now)))
                .map_err(|error| error.to_string())
        };
        for (from, to) in [("2026-11-01", "2026-11-08"), ("2h", "now"), ("2026-11-08", "")] {
            assert_eq!(check(from, to), Ok(()), "{from} {to}");
        }
        let reversed = "--from 2026-11-08 is not before --to 2026-11-01";
        assert_eq!(check("2026-11-08", "2026-11-01").unwrap_err(), reversed);
        let empty = "--from 2026-11-16T06:30:00Z is not before --to 2026-11-16T06:30:00Z";
        assert_eq!(check("2h", "2h").unwrap_err(), empty);
    }
}
