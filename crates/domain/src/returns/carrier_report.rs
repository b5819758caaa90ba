//! A carrier's report about a parcel of a return.

use chrono::{DateTime, Utc};

use super::{Label, TrackingEvent, UnitId};

/// One report. It applies to the first of these that exists: the units it names; the units with
/// its tracking number; the units without a tracking number (for a label, also those that the
/// carrier has not scanned). A report without a tracking number applies to the whole return.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CarrierReport {
    pub event: TrackingEvent,
    pub tracking_number: Option<String>,
    pub units: Option<Vec<UnitId>>,
    pub occurred_at: Option<DateTime<Utc>>,
    /// The label that the report announces; other events than a label have none.
    pub label: Option<Label>,
}

impl CarrierReport {
    pub(super) fn is_label(&self) -> bool {
        self.event == TrackingEvent::Label
    }

    /// Whether the report is older than `time`. False if either time is unknown.
    pub(super) fn is_before(&self, time: Option<DateTime<Utc>>) -> bool {
        self.occurred_at.zip(time).is_some_and(|(own, other)| own < other)
    }
}
