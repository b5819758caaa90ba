//! The times until which something must happen to a return.
//!
//! See docs/decisions/deadlines.md.

use chrono::{DateTime, Utc};
use chrono_tz::Tz;
use strum::VariantArray as _;

use crate::merchant::{Settings, end_of_day};

crate::words! {
    /// The subject of a deadline.
    pub enum DeadlineKind as "snake_case" {
        /// A carrier must have scanned a parcel of the return.
        Send,
        /// A carrier must have scanned an exchanged unit, or the warehouse must have received it.
        Exchange,
        /// The merchant must have decided about a return that waits for review.
        Review,
        /// The shopper is reminded that a carrier must scan a parcel.
        Reminder,
    }
}

impl DeadlineKind {
    pub const ALL: &'static [Self] = Self::VARIANTS;

    pub fn as_str(self) -> &'static str {
        self.into()
    }

    /// The period that the merchant's settings give. `None` if the merchant sends no reminders, or if the deadline has its
    /// own days: those of a review are the ones that its rule had when the return was requested.
    pub fn period(self, settings: &Settings) -> Option<Period> {
        let days = match self {
            Self::Send => settings.returns.send_within_days,
            Self::Exchange => settings.returns.exchange_deadline_days,
            Self::Reminder => settings.reminder_days()?,
            Self::Review => return None,
        };
        Some(Period { days, zone: settings.zone() })
    }

    /// The deadline that starts at a time, if the merchant's settings give its days.
    pub fn starting(self, started_at: DateTime<Utc>, settings: &Settings) -> Option<Deadline> {
        let days = self.period(settings)?.days;
        Some(Deadline::new(self, started_at, days, settings))
    }
}

/// The part of a merchant's settings from which a deadline is computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Period {
    pub days: u16,
    /// The merchant's time zone, in which days end.
    pub zone: Tz,
}

/// A time until which something must happen to a return: the end of the day that is some days after it started, in the
/// merchant's time zone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Deadline {
    pub kind: DeadlineKind,
    pub started_at: DateTime<Utc>,
    pub period: Period,
    pub due_at: DateTime<Utc>,
}

impl Deadline {
    /// The deadline at the end of the day that is some days after a time.
    pub fn new(
        kind: DeadlineKind,
        started_at: DateTime<Utc>,
        days: u16,
        settings: &Settings,
    ) -> Self {
        let zone = settings.zone();
        let day = started_at.with_timezone(&zone).date_naive();
        let due_at = end_of_day(day, days, zone);
        Self { kind, started_at, period: Period { days, zone }, due_at }
    }
}
