//! The times at which a message is attempted.

use std::time::Duration;

use chrono::TimeDelta;
use pages::text::Span;

/// One attempt of the schedule.
#[derive(Debug)]
pub(super) struct RetryRow {
    pub(super) number: usize,
    pub(super) after_previous: Span,
    pub(super) after_first: Span,
}

/// The attempts after the first one. All services have the same settings, so the first schedule that
/// is known holds for all.
pub(super) fn retry_rows(mut schedules: impl Iterator<Item = Vec<u64>>) -> Vec<RetryRow> {
    let delays = schedules.find(|delays| !delays.is_empty()).unwrap_or_default();
    let mut total = TimeDelta::zero();
    let mut row = |(index, seconds): (usize, u64)| {
        let delay = TimeDelta::from_std(Duration::from_secs(seconds)).unwrap_or(TimeDelta::MAX);
        total += delay;
        RetryRow { number: index + 2, after_previous: Span(delay), after_first: Span(total) }
    };
    delays.into_iter().enumerate().map(&mut row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_add_up() {
        let rows = retry_rows([vec![], vec![10, 40, 160]].into_iter());
        let texts: Vec<_> = rows
            .iter()
            .map(|row| format!("{} {} {}", row.number, row.after_previous, row.after_first))
            .collect();
        assert_eq!(texts, ["2 10 s 10 s", "3 40 s 50 s", "4 2 min 40 s 3 min 30 s"]);
        assert!(retry_rows(std::iter::empty()).is_empty());
    }
}
