//! The expiry of a return that nobody sends, and what happens if it is sent later.
//!
//! Expired units are canceled units that a late scan or receipt can bring back.

use chrono::{DateTime, Utc};

use super::receiving::expected_among;
use super::{Change, ExchangeStatus, Rma, RmaUnit};
use crate::merchant::Settings;
use crate::returns::{
    CarrierReport, Deadline, DeadlineKind, Discrepancy, Finding, Receipt, ReturnMethod, RmaStatus,
    ServiceEvent, StatusEvent, Transition, TransitionError, UnitId,
};
use crate::warehouse::UnitReceived;

impl Rma {
    /// The deadlines that the return has now, by the merchant's settings.
    pub fn deadlines(&self, settings: &Settings) -> Vec<Deadline> {
        let send = self.waiting_units().next().and_then(|_| self.send_deadline(settings));
        let review = self.review_deadline(settings);
        let exchange = self.exchange_deadline(settings);
        let reminder = self.reminder(settings);
        [review, reminder, send, exchange].into_iter().flatten().collect()
    }

    /// The time of the reminder, if the shopper was not reminded yet.
    fn reminder(&self, settings: &Settings) -> Option<Deadline> {
        let is_due = self.reminded_at.is_none() && self.waiting_units().next().is_some();
        let reminder = DeadlineKind::Reminder.starting(self.started_at(), settings);
        reminder.filter(|_| is_due)
    }

    /// Reminds the shopper once of the units that still wait for a first scan. The merchant is not told.
    pub fn remind(&mut self, now: DateTime<Utc>) -> Change {
        let units: Vec<_> = self.waiting_units().map(|unit| unit.id.clone()).collect();
        if units.is_empty() || self.reminded_at.is_some() {
            return Change::default();
        }
        self.reminded_at = Some(now);
        Change { units, is_reminder: true, ..Change::default() }
    }

    /// The time until which the shopper should hand over the units that are still on their way to a carrier.
    pub fn send_by(&self, settings: &Settings) -> Option<DateTime<Utc>> {
        let is_missing = |unit: &RmaUnit| !unit.has_arrived() && unit.refunded_by.is_none();
        let is_expected = self.status.is_open()
            && self.return_method != ReturnMethod::CustomerKeep
            && self.active_units().any(is_missing);
        let deadline = self.send_deadline(settings).filter(|_| is_expected)?;
        Some(deadline.due_at)
    }

    fn send_deadline(&self, settings: &Settings) -> Option<Deadline> {
        DeadlineKind::Send.starting(self.started_at(), settings)
    }

    /// Whether a carrier or the warehouse has or had a unit.
    pub fn has_scan(&self) -> bool {
        self.active_units().any(RmaUnit::has_arrived)
    }

    /// The units that expire unless a carrier scans a parcel of the return. A unit with a refund or an exchange order
    /// does not expire, because the shopper has its value already.
    fn waiting_units(&self) -> impl Iterator<Item = &RmaUnit> {
        let is_kept = self.return_method == ReturnMethod::CustomerKeep;
        let is_waiting = self.status == RmaStatus::Created && !is_kept && !self.has_scan();
        self.active_units().filter(move |unit| {
            is_waiting
                && unit.refunded_by.is_none()
                && unit.exchange_status.is_none_or(|it| it == ExchangeStatus::Failed)
        })
    }

    /// Cancels the units that still wait for a first scan, and makes them returnable again.
    pub fn expire(&mut self, now: DateTime<Utc>) -> Change {
        let expired: Vec<_> = self.waiting_units().map(|unit| unit.id.clone()).collect();
        if expired.is_empty() {
            return Change::default();
        }
        self.remove_units(&expired, now);
        for unit in self.units.iter_mut().filter(|unit| expired.contains(&unit.id)) {
            unit.is_expired = true;
        }
        let change = Change { units: expired, ..Change::default() };
        self.with_message(ServiceEvent::Expired, change, now)
    }

    /// The expired units.
    pub fn expired_units(&self) -> impl Iterator<Item = &RmaUnit> {
        self.units.iter().filter(|unit| unit.is_expired)
    }

    /// Applies a carrier's report as [`Rma::track`] does. A scan first makes the expired units of the parcel part of
    /// the return again, if they are free. The others are discrepancies.
    pub fn track_late(
        &mut self,
        report: &CarrierReport,
        is_free: impl Fn(&UnitId) -> bool,
        now: DateTime<Utc>,
    ) -> Result<Change, TransitionError> {
        let sent = if report.event.is_scan() { self.expired_in(report) } else { Vec::new() };
        self.revive(&sent, is_free, now, |after, lost| match &report.units {
            Some(named) if !lost.is_empty() => {
                let units: Vec<_> = named.iter().filter(|id| !lost.contains(id)).cloned().collect();
                if units.is_empty() {
                    return Ok(Change::default());
                }
                after.track(&CarrierReport { units: Some(units), ..report.clone() }, now)
            }
            _ => after.track(report, now),
        })
    }

    /// Applies a receipt as [`Rma::receive`] does, after the free expired units of its parcels became part of the
    /// return again.
    pub fn receive_late(
        &mut self,
        receipt: &Receipt,
        is_free: impl Fn(&UnitId) -> bool,
        now: DateTime<Utc>,
    ) -> Result<Change, TransitionError> {
        let named: Vec<_> = receipt.findings.iter().filter_map(Finding::unit).collect();
        let sent = self.expired_beside(&named);
        self.revive(&sent, is_free, now, |after, _| after.receive(receipt, now))
    }

    /// Receives a unit as [`Rma::receive_unit`] does, after the free expired units of its parcel became part of the
    /// return again.
    pub fn receive_unit_late(
        &mut self,
        received: &UnitReceived,
        is_free: impl Fn(&UnitId) -> bool,
        now: DateTime<Utc>,
    ) -> Result<Change, TransitionError> {
        let expected = expected_among(self.active_units(), received)
            .or_else(|| expected_among(self.expired_units(), received));
        let sent = self.expired_beside(&Vec::from_iter(&expected));
        self.revive(&sent, is_free, now, |after, _| after.receive_unit(received, now))
    }

    /// The expired units of the parcels of the named units; all if none is named. Units without a number may be in one
    /// parcel.
    fn expired_beside(&self, named: &[&UnitId]) -> Vec<UnitId> {
        let is_named = |unit: &&RmaUnit| named.contains(&&unit.id);
        let parcels: Vec<_> =
            self.units.iter().filter(is_named).map(|unit| &unit.tracking_number).collect();
        let is_beside =
            |unit: &&RmaUnit| named.is_empty() || parcels.contains(&&unit.tracking_number);
        self.expired_units().filter(is_beside).map(|unit| unit.id.clone()).collect()
    }

    /// The expired units that a scan is about.
    fn expired_in(&self, report: &CarrierReport) -> Vec<UnitId> {
        let ids = |test: &dyn Fn(&RmaUnit) -> bool| -> Vec<UnitId> {
            self.expired_units().filter(|unit| test(unit)).map(|unit| unit.id.clone()).collect()
        };
        if let Some(units) = &report.units {
            return ids(&|unit| units.contains(&unit.id));
        }
        let Some(number) = &report.tracking_number else { return ids(&|_| true) };
        let with_number = ids(&|unit| unit.tracking_number.as_ref() == Some(number));
        if with_number.is_empty() {
            ids(&|unit| unit.tracking_number.is_none())
        } else {
            with_number
        }
    }

    /// Makes those of the expired units that are free part of the return again, then applies an event. If no unit is
    /// free and the return is canceled, the event is late.
    fn revive(
        &mut self,
        sent: &[UnitId],
        is_free: impl Fn(&UnitId) -> bool,
        now: DateTime<Utc>,
        apply: impl FnOnce(&mut Self, &[UnitId]) -> Result<Change, TransitionError>,
    ) -> Result<Change, TransitionError> {
        let mut after = self.clone();
        let status = match self.status.apply(StatusEvent::Reopened) {
            Transition::Applied(status) => Some(status),
            Transition::Late | Transition::Refused(_) => None,
        };
        let (reopened, lost): (Vec<_>, Vec<_>) =
            sent.iter().cloned().partition(|id| status.is_some() && is_free(id));
        let discrepancy = |unit: &UnitId| Discrepancy::SentAfterExpiry {
            rma_identifier: self.rma_identifier.clone(),
            unit: unit.clone(),
        };
        let discrepancies: Vec<_> = lost.iter().map(discrepancy).collect();
        if reopened.is_empty() && self.status == RmaStatus::Canceled {
            if lost.is_empty() {
                return apply(self, &lost);
            }
            return Ok(Change { late: lost, discrepancies, ..Change::default() });
        }
        if !reopened.is_empty() {
            after.status = status.unwrap_or(self.status);
            after.canceled_at = None;
            for unit in after.units.iter_mut().filter(|unit| reopened.contains(&unit.id)) {
                unit.canceled_at = None;
                unit.is_expired = false;
            }
        }
        let mut change = apply(&mut after, &lost)?;
        if change.event.is_none() && !reopened.is_empty() {
            change = after.with_message(ServiceEvent::TrackingUpdated, change, now);
        }
        change.reopened = reopened;
        change.discrepancies.extend(discrepancies);
        change.late.extend(lost);
        *self = after;
        Ok(change)
    }
}
