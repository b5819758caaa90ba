//! The times until which something must happen to a return.
//!
//! See docs/decisions/deadlines.md.

use chrono::{DateTime, Utc};
use strum::VariantArray as _;

use crate::merchant::{Settings, end_of_day};

crate::words! {
    /// The subject of a deadline.
    pub enum DeadlineKind as "snake_case" {
        /// A carrier must have scanned a parcel of the return.
        Send,
        /// A carrier must have scanned an exchanged unit, or the warehouse must have received it.
        Exchange,
    }
}

impl DeadlineKind {
    pub const ALL: &'static [Self] = Self::VARIANTS;

    pub fn as_str(self) -> &'static str {
        self.into()
    }

    /// The days that the merchant's settings give.
    pub fn days(self, settings: &Settings) -> u16 {
        match self {
            Self::Send => settings.returns.send_within_days,
            Self::Exchange => settings.returns.exchange_deadline_days,
        }
    }

    /// The deadline that starts at a time, by the merchant's settings.
    pub fn starting(self, started_at: DateTime<Utc>, settings: &Settings) -> Deadline {
        let days = self.days(settings);
        let zone = settings.zone();
        let day = started_at.with_timezone(&zone).date_naive();
        let due_at = end_of_day(day, days, zone);
        Deadline { kind: self, started_at, days, due_at }
    }
}

/// A time until which something must happen to a return: the end of the day that is some days after it started, in the
/// merchant's time zone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Deadline {
    pub kind: DeadlineKind,
    pub started_at: DateTime<Utc>,
    pub days: u16,
    pub due_at: DateTime<Utc>,
}
