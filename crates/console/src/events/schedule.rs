//! The times at which a message is attempted.

use chrono::TimeDelta;
use pages::text::Span;
use serde::Deserialize;

/// The delays of one service.
#[derive(Debug, Deserialize)]
pub(super) struct Schedule {
    #[serde(default)]
    retry_delays_seconds: Vec<u32>,
}

/// One attempt of the schedule.
#[derive(Debug)]
pub(super) struct RetryRow {
    pub(super) number: usize,
    pub(super) after_previous: Span,
    pub(super) after_first: Span,
}

/// The attempts after the first one. All services have the same settings, so the first schedule that
/// is known holds for all.
pub(super) fn retry_rows(mut schedules: impl Iterator<Item = Schedule>) -> Vec<RetryRow> {
    let delays = schedules.find(|schedule| !schedule.retry_delays_seconds.is_empty());
    let mut total = TimeDelta::zero();
    let mut row = |(index, seconds): (usize, u32)| {
        let delay = TimeDelta::seconds(seconds.into());
        total += delay;
        RetryRow { number: index + 2, after_previous: Span(delay), after_first: Span(total) }
    };
    let delays = delays.map(|schedule| schedule.retry_delays_seconds).unwrap_or_default();
    delays.into_iter().enumerate().map(&mut row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_add_up() {
        let schedule = |delays: &[u32]| Schedule { retry_delays_seconds: delays.to_vec() };
        let rows = retry_rows([schedule(&[]), schedule(&[10, 40, 160])].into_iter());
        let texts: Vec<_> = rows
            .iter()
            .map(|row| format!("{} {} {}", row.number, row.after_previous, row.after_first))
            .collect();
        assert_eq!(texts, ["2 10 s 10 s", "3 40 s 50 s", "4 2 min 40 s 3 min 30 s"]);
        assert!(retry_rows(std::iter::empty()).is_empty());
    }
}
