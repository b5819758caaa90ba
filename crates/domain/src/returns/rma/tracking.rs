//! Carrier reports about a return's parcels.

use chrono::{DateTime, Utc};

use super::{Change, Rma, RmaUnit};
use crate::returns::{
    CarrierReport, ReturnMethod, ServiceEvent, TrackingEvent, TrackingStatus, Transition,
    TransitionError, UnitId,
};

impl Rma {
    /// Applies a carrier's report.
    pub fn track(
        &mut self,
        report: &CarrierReport,
        now: DateTime<Utc>,
    ) -> Result<Change, TransitionError> {
        self.check_started()?;
        let reported = self.reported_units(report)?;
        let mut change = Change::default();
        let mut refused = None;
        let method = self.return_method;
        let mut has_new_status = false;
        let mut has_first_scan = false;
        let mut has_new_number = false;
        for unit in self.units.iter_mut().filter(|unit| reported.contains(&unit.id)) {
            let number = unit.tracking_number.clone();
            let status = unit.package_tracking_status;
            let was_scanned = unit.is_scanned();
            match unit.track(report, method) {
                Transition::Applied(()) => {
                    has_new_status |= unit.package_tracking_status != status;
                    has_first_scan |= unit.is_scanned() && !was_scanned;
                    has_new_number |= unit.tracking_number != number;
                    change.units.push(unit.id.clone());
                }
                Transition::Late => change.late.push(unit.id.clone()),
                Transition::Refused(error) => refused = Some(error),
            }
        }
        match refused {
            Some(error) if change.units.is_empty() && change.late.is_empty() => Err(error),
            // The first scan after a failure does not change the status, but is due to the merchant: it may refund now.
            _ if has_new_status || has_first_scan => {
                Ok(self.with_message(service_event(report.event), change, now))
            }
            // A late report can still carry a new tracking number.
            _ if has_new_number => {
                Ok(self.with_message(ServiceEvent::TrackingUpdated, change, now))
            }
            _ => Ok(change),
        }
    }

    /// The units that the report applies to.
    fn reported_units(&self, report: &CarrierReport) -> Result<Vec<UnitId>, TransitionError> {
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
        let with_number = ids(&|unit| unit.tracking_number.as_ref() == Some(number));
        if !with_number.is_empty() {
            return Ok(with_number);
        }
        let is_label = report.is_label();
        let others =
            ids(&|unit| unit.tracking_number.is_none() || (is_label && !unit.is_scanned()));
        if others.is_empty() { Err(TransitionError::UnknownParcel) } else { Ok(others) }
    }
}

impl RmaUnit {
    fn track(&mut self, report: &CarrierReport, method: ReturnMethod) -> Transition<()> {
        let number = report.tracking_number.as_ref();
        let lacks_number = number.is_none() && self.tracking_number.is_none();
        match TrackingStatus::apply(self.package_tracking_status, report.event, method) {
            Transition::Refused(error) => Transition::Refused(error),
            // A drop-off may have no label; a mailed parcel always has one.
            _ if lacks_number && (method == ReturnMethod::MailBack || report.is_label()) => {
                Transition::Refused(TransitionError::NoTrackingNumber)
            }
            Transition::Applied(status) => {
                self.failed_before_scan = status == TrackingStatus::Failure && !self.is_scanned();
                self.package_tracking_status = Some(status);
                if let Some(number) = number {
                    self.set_tracking_number(number, report);
                }
                Transition::Applied(())
            }
            Transition::Late => self.track_late(report),
        }
    }

    /// Applies a report that does not change the tracking status.
    fn track_late(&mut self, report: &CarrierReport) -> Transition<()> {
        // A newer label replaces one that was never scanned, even after a failure.
        let is_new_label =
            report.is_label() && !self.is_scanned() && !report.is_before(self.labeled_at);
        let number = report.tracking_number.as_ref().filter(|number| {
            self.tracking_number.is_none()
                || (is_new_label && self.tracking_number.as_ref() != Some(number))
        });
        if let Some(number) = number {
            self.set_tracking_number(number, report);
        }
        // The carrier may give another label for the same number.
        let is_relabeled = is_new_label && report.label.is_some() && report.label != self.label;
        if is_relabeled {
            self.set_label(report);
        }
        // A scan after a failure keeps the status, but proves that the carrier has the parcel.
        let is_first_scan = self.failed_before_scan && report.event.is_scan();
        self.failed_before_scan &= !is_first_scan;
        let is_changed = number.is_some() || is_relabeled || is_first_scan;
        if is_changed { Transition::Applied(()) } else { Transition::Late }
    }

    /// Sets the number. The label of another number does not apply any more.
    fn set_tracking_number(&mut self, number: &str, report: &CarrierReport) {
        if self.tracking_number.as_deref() != Some(number) {
            self.label = None;
        }
        self.tracking_number = Some(number.to_owned());
        if report.is_label() {
            self.set_label(report);
        }
    }

    /// Sets the label and its time. A label without a URL or a time keeps the earlier one.
    fn set_label(&mut self, report: &CarrierReport) {
        self.labeled_at = report.occurred_at.or(self.labeled_at);
        if let Some(label) = &report.label {
            self.label = Some(label.clone());
        }
    }
}

fn service_event(event: TrackingEvent) -> ServiceEvent {
    match event {
        TrackingEvent::Accepted => ServiceEvent::DroppedOff,
        TrackingEvent::InTransit => ServiceEvent::InTransit,
        TrackingEvent::Label
        | TrackingEvent::NotDroppedOff
        | TrackingEvent::Failure
        | TrackingEvent::Delivered
        | TrackingEvent::Returned => ServiceEvent::TrackingUpdated,
    }
}
