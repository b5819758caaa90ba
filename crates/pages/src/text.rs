//! Times, counts and amounts as people read them.

use std::fmt;

use chrono::{DateTime, TimeDelta, Utc};
use chrono_tz::Tz;
use domain::currency::minor_digits;

/// A time: relative in the text, exact in the tooltip and on request.
#[derive(Debug, Clone, Copy)]
pub struct Moment {
    at: DateTime<Utc>,
    now: DateTime<Utc>,
    /// The zone of the exact time.
    zone: Tz,
}

impl Moment {
    pub fn new(at: DateTime<Utc>, now: DateTime<Utc>) -> Self {
        Self { at, now, zone: Tz::UTC }
    }

    /// The same time, exact in this zone.
    #[must_use]
    pub fn in_zone(self, zone: Tz) -> Self {
        Self { zone, ..self }
    }

    /// RFC 3339, for the `datetime` attribute.
    pub fn iso(&self) -> String {
        self.at.to_rfc3339_opts(chrono::SecondsFormat::Millis, true)
    }

    /// Date and time with the zone: "16 November 2026, 09:00:00 CET".
    pub fn exact(&self) -> String {
        self.at.with_timezone(&self.zone).format("%-d %B %Y, %H:%M:%S %Z").to_string()
    }
}

impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let distance = self.now - self.at;
        if distance.abs() < TimeDelta::seconds(1) {
            f.write_str("now")
        } else if distance < TimeDelta::zero() {
            write!(f, "in {}", Span(-distance))
        } else {
            write!(f, "{} ago", Span(distance))
        }
    }
}

/// From this number of days on, hours say nothing more.
const MANY_DAYS: i64 = 7;

/// A span of time with its two largest units: "2 min 10 s". Longer ones have only days.
#[derive(Debug, Clone, Copy)]
pub struct Span(pub TimeDelta);

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let millis = self.0.num_milliseconds().max(0);
        if millis < 1000 {
            return write!(f, "{millis} ms");
        }
        let seconds = millis / 1000;
        let (days, hours, minutes) = (seconds / 86_400, seconds / 3600 % 24, seconds / 60 % 60);
        let parts = [(days, "d"), (hours, "h"), (minutes, "min"), (seconds % 60, "s")];
        let Some(first) = parts.iter().position(|(count, _)| *count > 0) else {
            return f.write_str("0 s");
        };
        let shown: Vec<String> = parts
            .iter()
            .skip(first)
            .take(if days < MANY_DAYS { 2 } else { 1 })
            .filter(|(count, _)| *count > 0)
            .map(|(count, unit)| format!("{count} {unit}"))
            .collect();
        f.write_str(&shown.join(" "))
    }
}

/// The duration of a request: "212 ms", "1.2 s".
pub fn latency(millis: impl Into<i64>) -> String {
    let millis = millis.into();
    match millis {
        ..1000 => format!("{millis} ms"),
        1000..60_000 => format!("{}.{} s", millis / 1000, millis % 1000 / 100),
        _ => Span(TimeDelta::milliseconds(millis)).to_string(),
    }
}

/// A count with its noun: "1 order", "1,204 orders".
pub fn count(number: impl fmt::Display, singular: &str, plural: &str) -> String {
    let number = grouped(number);
    let noun = if number == "1" { singular } else { plural };
    format!("{number} {noun}")
}

/// A whole number with commas between groups of three digits.
pub fn grouped(number: impl fmt::Display) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// An amount in minor units with its currency: "49.95 EUR".
pub fn money(minor_units: i64, currency: &str) -> String {
    let digits = minor_digits(currency);
    let unit = 10_u64.pow(digits);
    let sign = if minor_units < 0 { "-" } else { "" };
    let (whole, rest) = (minor_units.unsigned_abs() / unit, minor_units.unsigned_abs() % unit);
    let width = usize::try_from(digits).unwrap_or(2);
    if digits == 0 {
        format!("{sign}{} {currency}", grouped(whole))
    } else {
        format!("{sign}{}.{rest:0width$} {currency}", grouped(whole))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_show_their_two_largest_units() {
        for (seconds, text) in [
            (0, "0 ms"),
            (5, "5 s"),
            (130, "2 min 10 s"),
            (3600, "1 h"),
            (90_061, "1 d 1 h"),
            (22_510_800, "260 d"),
        ] {
            assert_eq!(Span(TimeDelta::seconds(seconds)).to_string(), text);
        }
        assert_eq!(Span(TimeDelta::milliseconds(212)).to_string(), "212 ms");
    }

    #[test]
    fn durations_of_requests_have_a_decimal() {
        let texts = [212, 1204, 59_999, 61_000].map(latency);
        assert_eq!(texts, ["212 ms", "1.2 s", "59.9 s", "1 min 1 s"]);
    }

    #[test]
    fn times_are_relative() {
        let now: DateTime<Utc> = "2026-11-16T08:00:00Z".parse().unwrap();
        let text = |seconds| Moment::new(now + TimeDelta::seconds(seconds), now).to_string();
        assert_eq!([-61, 0, 130].map(text), ["1 min 1 s ago", "now", "in 2 min 10 s"]);
        let moment = Moment::new(now, now);
        assert_eq!(moment.exact(), "16 November 2026, 08:00:00 UTC");
        let berlin = moment.in_zone(Tz::Europe__Berlin);
        assert_eq!(berlin.exact(), "16 November 2026, 09:00:00 CET");
    }

    #[test]
    fn counts_have_the_right_noun() {
        assert_eq!(count(1, "order", "orders"), "1 order");
        assert_eq!(count(1_204_000, "order", "orders"), "1,204,000 orders");
    }

    #[test]
    fn amounts_have_the_digits_of_their_currency() {
        assert_eq!(money(4995, "EUR"), "49.95 EUR");
        assert_eq!(money(-5, "USD"), "-0.05 USD");
        assert_eq!(money(1_250_000, "JPY"), "1,250,000 JPY");
    }
}
