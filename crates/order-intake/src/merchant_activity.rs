//! The orders that a merchant sent: numbers by hour, times, and the last rejected orders.

use std::collections::BTreeMap;

use api::orders::{RejectedOrder, TimeSpan};
use chrono::{DateTime, TimeDelta, Utc};
use domain::order::OrderOutcome;

/// The number of rejected orders that are kept of each merchant.
pub(crate) const MAX_REJECTED: usize = 100;

/// The orders that a merchant sent since the last time that they were saved.
#[derive(Debug, Default)]
pub(crate) struct MerchantActivity {
    /// By the start of the hour.
    pub(crate) hours: BTreeMap<DateTime<Utc>, OrderCounts>,
    /// `None` if no order was accepted.
    pub(crate) times: Option<OrderTimes>,
    /// Oldest first, at most [`MAX_REJECTED`].
    pub(crate) rejected: Vec<RejectedOrder>,
}

/// Numbers of orders.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct OrderCounts {
    pub(crate) received: i64,
    pub(crate) changed: i64,
    pub(crate) rejected: i64,
}

/// The times of all orders.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OrderTimes {
    pub(crate) created: TimeSpan,
    pub(crate) received: TimeSpan,
}

impl MerchantActivity {
    /// The activity of a message whose orders were processed.
    pub(crate) fn accepted(
        received_at: DateTime<Utc>,
        created: TimeSpan,
        outcomes: &[OrderOutcome],
    ) -> Self {
        let changed = outcomes.iter().filter(|outcome| **outcome == OrderOutcome::Stored).count();
        let counts = OrderCounts {
            received: number(outcomes.len()),
            changed: number(changed),
            ..OrderCounts::default()
        };
        let received = TimeSpan { oldest: received_at, newest: received_at };
        Self {
            hours: BTreeMap::from([(start_of_hour(received_at), counts)]),
            times: Some(OrderTimes { created, received }),
            ..Self::default()
        }
    }

    /// The activity of a message that was rejected.
    pub(crate) fn rejected(
        received_at: DateTime<Utc>,
        orders: usize,
        rejected: Vec<RejectedOrder>,
    ) -> Self {
        let counts = OrderCounts { rejected: number(orders), ..OrderCounts::default() };
        let hours = BTreeMap::from([(start_of_hour(received_at), counts)]);
        Self { hours, times: None, rejected }
    }

    /// Adds later activity.
    pub(crate) fn add(&mut self, later: Self) {
        for (hour, counts) in later.hours {
            let sums = self.hours.entry(hour).or_default();
            sums.received += counts.received;
            sums.changed += counts.changed;
            sums.rejected += counts.rejected;
        }
        self.times = match (self.times, later.times) {
            (Some(times), Some(later)) => Some(OrderTimes {
                created: times.created.including(later.created),
                received: times.received.including(later.received),
            }),
            (times, later) => times.or(later),
        };
        self.rejected.extend(later.rejected);
        let surplus = self.rejected.len().saturating_sub(MAX_REJECTED);
        self.rejected.drain(..surplus);
    }
}

pub(crate) fn start_of_hour(time: DateTime<Utc>) -> DateTime<Utc> {
    DateTime::UNIX_EPOCH + TimeDelta::hours(time.timestamp().div_euclid(3600))
}

fn number(count: usize) -> i64 {
    count.try_into().unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rejected_order::rejections;

    fn at(text: &str) -> DateTime<Utc> {
        text.parse().unwrap()
    }

    fn accepted(
        received_at: &str,
        created_at: &str,
        outcomes: &[OrderOutcome],
    ) -> MerchantActivity {
        let created = TimeSpan::of([at(created_at)]).unwrap();
        MerchantActivity::accepted(at(received_at), created, outcomes)
    }

    #[test]
    fn orders_are_counted_by_hour() {
        let (first, second) = ("2026-03-01T09:59:59Z", "2026-03-01T10:00:00Z");
        let mut activity = accepted(first, first, &[OrderOutcome::Stored, OrderOutcome::Stale]);
        activity.add(accepted(second, first, &[OrderOutcome::Unchanged]));
        activity.add(accepted(second, first, &[OrderOutcome::Stored]));
        activity.add(MerchantActivity::rejected(at(second), 3, Vec::new()));
        let expected = [
            (at("2026-03-01T09:00:00Z"), OrderCounts { received: 2, changed: 1, rejected: 0 }),
            (at("2026-03-01T10:00:00Z"), OrderCounts { received: 2, changed: 1, rejected: 3 }),
        ];
        assert_eq!(activity.hours, BTreeMap::from(expected));
    }

    #[test]
    fn times_span_all_accepted_orders() {
        let mut activity = MerchantActivity::rejected(at("2026-03-01T08:00:00Z"), 1, Vec::new());
        assert_eq!(activity.times, None);
        activity.add(accepted("2026-03-01T09:00:00Z", "2025-12-24T00:00:00Z", &[]));
        activity.add(accepted("2026-03-01T10:00:00Z", "2025-11-01T00:00:00Z", &[]));
        let OrderTimes { created, received } = activity.times.unwrap();
        let [november, december] = ["2025-11-01T00:00:00Z", "2025-12-24T00:00:00Z"].map(at);
        assert_eq!(created, TimeSpan { oldest: november, newest: december });
        let [nine, ten] = ["2026-03-01T09:00:00Z", "2026-03-01T10:00:00Z"].map(at);
        assert_eq!(received, TimeSpan { oldest: nine, newest: ten });
    }

    #[test]
    fn only_the_last_rejected_orders_are_kept() {
        let mut activity = MerchantActivity::default();
        for minute in 0..=MAX_REJECTED {
            let time = DateTime::UNIX_EPOCH + TimeDelta::minutes(minute.try_into().unwrap());
            let rejected =
                rejections(&[], &domain::json::FieldError::invalid("$", "").into(), time);
            activity.add(MerchantActivity::rejected(time, 1, rejected));
        }
        assert_eq!(activity.rejected.len(), MAX_REJECTED);
        assert_eq!(activity.rejected[0].rejected_at, at("1970-01-01T00:01:00Z"));
    }
}
