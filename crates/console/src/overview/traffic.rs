//! Attempts, success rate and durations by hour over the last day.

use std::collections::BTreeMap;

use api::delivery::HourlyReport;
use chrono::{DateTime, Utc};
use pages::{
    chart::{self, Bar},
    text::{grouped, latency},
};

use super::latency::Histogram;
use crate::{
    markup::{text, text_or_dash},
    table::Table,
};

/// One hour of all services.
#[derive(Debug, Default)]
struct Hour {
    delivered: i64,
    failed: i64,
    histogram: Histogram,
}

/// The last day of all services.
#[derive(Default)]
pub(crate) struct Traffic {
    hours: BTreeMap<DateTime<Utc>, Hour>,
}

impl Traffic {
    pub(crate) fn new(reports: impl Iterator<Item = HourlyReport>) -> Self {
        let mut hours = BTreeMap::<_, Hour>::new();
        for report in reports.flat_map(|report| report.hours) {
            let hour = hours.entry(report.period_start_at).or_default();
            hour.delivered += report.delivered;
            hour.failed += report.failed;
            hour.histogram.add(&report.durations);
        }
        Self { hours }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.hours.values().all(|hour| hour.attempts() == 0)
    }

    pub(crate) fn attempts(&self) -> i64 {
        self.hours.values().map(Hour::attempts).sum()
    }

    /// The success rate of the whole day.
    pub(crate) fn success_rate(&self) -> Option<String> {
        let delivered = self.hours.values().map(|hour| hour.delivered).sum();
        rate(delivered, self.attempts())
    }

    /// Successes and failures by hour.
    pub(crate) fn attempts_chart(&self) -> String {
        let bars: Vec<_> = self
            .hours
            .iter()
            .map(|(at, hour)| Bar {
                good: number(hour.delivered),
                bad: number(hour.failed),
                note: format!(
                    "{}: {} delivered, {} failed",
                    label(*at),
                    grouped(hour.delivered),
                    grouped(hour.failed)
                ),
            })
            .collect();
        chart::bars("Attempts by hour", &self.labels(), &bars)
    }

    /// p50 and p95 by hour.
    pub(crate) fn latency_chart(&self) -> String {
        let series = |percent| -> Vec<Option<f64>> {
            let value = |hour: &Hour| hour.histogram.percentile(percent).map(number);
            self.hours.values().map(value).collect()
        };
        let (p50, p95) = (series(50), series(95));
        let title = "Duration of attempts by hour: p50 and p95";
        chart::lines(title, &self.labels(), " ms", [&p50, &p95])
    }

    fn labels(&self) -> Vec<String> {
        self.hours.keys().map(|at| label(*at)).collect()
    }

    /// The same figures as text, newest hour first.
    pub(crate) fn table(&self) -> Table {
        let span = |it: &Hour, percent| text_or_dash(it.histogram.percentile(percent).map(latency));
        let hours: Vec<_> = self.hours.iter().rev().collect();
        Table::of("Attempts by hour", &hours)
            .head("Hour (UTC)", |(at, _)| text(at.format("%-d %b, %H:%M")))
            .number("Attempts", |(_, it)| text(grouped(it.attempts())))
            .number("Successful", |(_, it)| text_or_dash(rate(it.delivered, it.attempts())))
            .number("p50", |(_, it)| span(it, 50))
            .number("p95", |(_, it)| span(it, 95))
            .table()
    }
}

impl Hour {
    fn attempts(&self) -> i64 {
        self.delivered + self.failed
    }
}

fn label(at: DateTime<Utc>) -> String {
    at.format("%H:%M").to_string()
}

fn number(count: i64) -> f64 {
    u32::try_from(count).map_or(f64::from(u32::MAX), f64::from)
}

/// The part of the attempts that delivered: "99.8 %". It is 100 % only if none failed.
fn rate(delivered: i64, attempts: i64) -> Option<String> {
    let thousandths = (delivered * 1000).checked_div(attempts)?;
    Some(format!("{}.{} %", thousandths / 10, thousandths % 10))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn report(delivered: u64, failed: u64) -> HourlyReport {
        serde_json::from_value(json!({ "hours": [
            { "period_start_at": "2026-11-16T08:00:00Z", "delivered": delivered, "failed": failed,
              "attempts": delivered + failed,
              "durations": [{ "from_ms": 91, "to_ms": 128, "attempts": delivered + failed }] },
            { "period_start_at": "2026-11-16T09:00:00Z", "delivered": 0, "failed": 0,
              "attempts": 0, "durations": [] },
        ] }))
        .unwrap()
    }

    #[test]
    fn hours_of_all_services_are_added_up() {
        let traffic = Traffic::new([report(90, 10), report(99, 1)].into_iter());
        assert_eq!((traffic.attempts(), traffic.success_rate().as_deref()), (200, Some("94.5 %")));
        let table = traffic.table().to_string();
        for part in ["16 Nov, 08:00", ">127 ms</td>", ">94.5 %</td>", ">–</td>"] {
            assert!(table.contains(part), "{part} in {table}");
        }
    }

    #[test]
    fn a_rate_is_rounded_down() {
        assert_eq!(rate(9999, 10_000).as_deref(), Some("99.9 %"));
        assert_eq!(rate(10_000, 10_000).as_deref(), Some("100.0 %"));
        assert_eq!(rate(0, 0), None);
    }
}
