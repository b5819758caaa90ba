//! What a carrier reports of a return's parcels.

use chrono::{DateTime, Utc};

use super::{Change, Rma, RmaUnit};
use crate::returns::{
    ReturnMethod, RmaStatus, ServiceEvent, TrackingEvent, TrackingStatus, Transition,
    TransitionError, UnitId,
};

/// One report. It speaks of the units it names; else of those that travel under its tracking
/// number; else of those without a number, or for a new label of those not handed over yet; and
/// without any number of the whole return.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CarrierReport {
    pub event: TrackingEvent,
    pub tracking_number: Option<String>,
    pub units: Option<Vec<UnitId>>,
    pub occurred_at: Option<DateTime<Utc>>,
}

impl Rma {
    /// Applies a carrier's report.
    pub fn track(
        &mut self,
        report: &CarrierReport,
        now: DateTime<Utc>,
    ) -> Result<Change, TransitionError> {
        if self.status == RmaStatus::Canceled {
            return Err(TransitionError::Canceled);
        }
        let selected = self.reported(report)?;
        let mut change = Change::default();
        let mut refused = None;
        let method = self.return_method;
        let (mut has_moved, mut is_renamed) = (false, false);
        for unit in self.units.iter_mut().filter(|unit| selected.contains(&unit.id)) {
            let (number, status) = (unit.tracking_number.clone(), unit.package_tracking_status);
            match unit.track(report, method) {
                Transition::Applied(()) => {
                    has_moved |= unit.package_tracking_status != status;
                    is_renamed |= unit.tracking_number != number;
                    change.units.push(unit.id.clone());
                }
                Transition::Late => change.late.push(unit.id.clone()),
                Transition::Refused(refusal) => refused = Some(refusal),
            }
        }
        match refused {
            Some(refusal) if change.units.is_empty() && change.late.is_empty() => Err(refusal),
            _ if has_moved => Ok(self.changed(report.event.service_event(), change, now)),
            // It came late, and yet said under which number they travel.
            _ if is_renamed => Ok(self.changed(ServiceEvent::TrackingUpdated, change, now)),
            _ => Ok(change),
        }
    }

    fn reported(&self, report: &CarrierReport) -> Result<Vec<UnitId>, TransitionError> {
        if let Some(units) = &report.units {
            let is_active = |id: &UnitId| self.active_units().any(|unit| unit.id == *id);
            return if units.iter().all(is_active) {
                Ok(units.clone())
            } else {
                Err(TransitionError::UnknownUnit)
            };
        }
        let ids = |test: &dyn Fn(&RmaUnit) -> bool| -> Vec<UnitId> {
            self.active_units().filter(|unit| test(unit)).map(|unit| unit.id.clone()).collect()
        };
        let Some(number) = &report.tracking_number else { return Ok(ids(&|_| true)) };
        let travelling = ids(&|unit| unit.tracking_number.as_ref() == Some(number));
        if !travelling.is_empty() {
            return Ok(travelling);
        }
        let is_label = report.event == TrackingEvent::Label;
        let others =
            ids(&|unit| unit.tracking_number.is_none() || (is_label && !unit.is_scanned()));
        if others.is_empty() { Err(TransitionError::UnknownParcel) } else { Ok(others) }
    }
}

impl RmaUnit {
    fn track(&mut self, report: &CarrierReport, method: ReturnMethod) -> Transition<()> {
        let number = report.tracking_number.as_ref();
        let step = TrackingStatus::step(self.package_tracking_status, report.event, method);
        let lacks_number = number.is_none() && self.tracking_number.is_none();
        match step {
            Transition::Refused(refusal) => Transition::Refused(refusal),
            // Some drop-offs have no label; a parcel in the mail always has.
            _ if lacks_number && (method == ReturnMethod::MailBack || report.is_label()) => {
                Transition::Refused(TransitionError::NoTrackingNumber)
            }
            Transition::Applied(status) => {
                self.failed_before_scan = status == TrackingStatus::Failure && !self.is_scanned();
                self.package_tracking_status = Some(status);
                if let Some(number) = number {
                    self.travel_under(number, report);
                }
                Transition::Applied(())
            }
            Transition::Late => {
                // A new label takes the place of one that was not used, whatever became of that.
                let is_new_label =
                    report.is_label() && !self.is_scanned() && !report.is_before(self.labeled_at);
                let number = number.filter(|number| {
                    self.tracking_number.is_none()
                        || (is_new_label && self.tracking_number.as_ref() != Some(number))
                });
                if let Some(number) = number {
                    self.travel_under(number, report);
                }
                // A scan after the failure does not move the parcel, but the carrier has it.
                let is_first_scan = self.failed_before_scan && report.event.is_scan();
                self.failed_before_scan &= !is_first_scan;
                if number.is_some() || is_first_scan {
                    Transition::Applied(())
                } else {
                    Transition::Late
                }
            }
        }
    }

    fn travel_under(&mut self, number: &str, report: &CarrierReport) {
        self.tracking_number = Some(number.to_owned());
        if report.is_label() {
            self.labeled_at = report.occurred_at.or(self.labeled_at);
        }
    }
}

impl CarrierReport {
    fn is_label(&self) -> bool {
        self.event == TrackingEvent::Label
    }

    /// Whether it happened before that, as far as both are known.
    fn is_before(&self, time: Option<DateTime<Utc>>) -> bool {
        self.occurred_at.zip(time).is_some_and(|(own, other)| own < other)
    }
}

impl TrackingEvent {
    /// The message that it leads to when it changes something.
    pub fn service_event(self) -> ServiceEvent {
        match self {
            Self::Accepted => ServiceEvent::DroppedOff,
            Self::InTransit => ServiceEvent::InTransit,
            Self::Label
            | Self::NotDroppedOff
            | Self::Failure
            | Self::Delivered
            | Self::Returned => ServiceEvent::TrackingUpdated,
        }
    }
}
