//! The time in which a unit can be returned.

use chrono::{DateTime, TimeDelta, Utc};

use super::{PolicyAt, UnitFacts};
use crate::merchant::{Window, WindowStart, end_of_day};

impl PolicyAt<'_> {
    /// The end of a window: midnight in the merchant's time zone after the last day.
    pub(super) fn window_ends_at(&self, window: &Window, unit: &UnitFacts<'_>) -> DateTime<Utc> {
        let shipped_at = unit.line.shipped_date.unwrap_or(unit.order.created_at);
        let start = match window.from.unwrap_or(WindowStart::Shipping) {
            WindowStart::Order => unit.order.created_at,
            WindowStart::Shipping => shipped_at,
            WindowStart::Delivery => unit.line.delivered_date.unwrap_or(shipped_at),
        };
        let of_days = window.days.map(|days| end_of_day(self.day(start), days, self.zone));
        let of_day = window.until.map(|until| end_of_day(until, 0, self.zone));
        // A window has days, a day, or both.
        of_days.max(of_day).unwrap_or(start)
    }

    /// The last day before the end of a window, in words.
    pub(super) fn last_day(&self, ends_at: DateTime<Utc>) -> String {
        let last = (ends_at - TimeDelta::seconds(1)).with_timezone(&self.zone);
        last.format("%-d %B %Y").to_string()
    }
}
