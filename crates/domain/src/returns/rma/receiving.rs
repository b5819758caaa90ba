//! Receiving of a return's units at our warehouse.

use chrono::{DateTime, Utc};

use super::{Change, Rma, RmaUnit};
use crate::returns::{
    Discrepancy, Finding, Receipt, ReceivingEvent, ReceivingStatus, ReturnMethod, ServiceEvent,
    StatusEvent, Transition, TransitionError, UnitId,
};
use crate::warehouse::UnitReceived;

impl Rma {
    /// Applies all findings of a receipt, or none of them.
    pub fn receive(
        &mut self,
        receipt: &Receipt,
        now: DateTime<Utc>,
    ) -> Result<Change, TransitionError> {
        self.check_receivable()?;
        let mut after = self.clone();
        let mut change = Change::default();
        for finding in &receipt.findings {
            after.apply_finding(finding, &mut change)?;
        }
        // Findings of one receipt can cancel each other out.
        let statuses =
            |rma: &Self| -> Vec<_> { rma.units.iter().map(|unit| unit.receiving_status).collect() };
        let is_visible = statuses(self) != statuses(&after);
        *self = after;
        if is_visible {
            change = self.with_message(ServiceEvent::Received, change, now);
        }
        Ok(change)
    }

    /// Receives a unit that the warehouse identifies by line, SKU or UPC. It counts as the first
    /// matching unit that has not arrived, or as one more than expected if there is none.
    pub fn receive_unit(
        &mut self,
        received: &UnitReceived,
        now: DateTime<Utc>,
    ) -> Result<Change, TransitionError> {
        let note = received.reject_reason.clone();
        let sku = received.sku.clone().or_else(|| received.upc.clone());
        let finding = match (expected_among(self.active_units(), received), &note) {
            (Some(unit), None) => Finding::Received { unit },
            (Some(unit), Some(_)) => Finding::Wrong { unit, found_sku: None, note },
            (None, _) => Finding::Over { sku, quantity: 1, note },
        };
        self.receive(&Receipt { findings: vec![finding] }, now)
    }

    /// Closes receiving: units that have not arrived become not received, and the return becomes
    /// partially refunded unless refunds cover every unit.
    pub fn close_receiving(&mut self, now: DateTime<Utc>) -> Result<Change, TransitionError> {
        self.check_receivable()?;
        if self.receiving_closed_at.is_some() {
            return Ok(Change::default());
        }
        self.receiving_closed_at = Some(now);
        let mut change = Change { closed_receiving: true, ..Change::default() };
        for unit in self.units.iter_mut().filter(|unit| unit.canceled_at.is_none()) {
            let transition = unit.receiving_status.apply(ReceivingEvent::Closed, true);
            if let Transition::Applied(status) = transition {
                unit.receiving_status = status;
                change.units.push(unit.id.clone());
            }
        }
        let before = self.status;
        if let Transition::Applied(status) = self.status.apply(StatusEvent::ReceivingClosed) {
            self.status = status;
        }
        if change.units.is_empty() && self.status == before {
            return Ok(change);
        }
        Ok(self.with_message(ServiceEvent::Received, change, now))
    }

    fn check_receivable(&self) -> Result<(), TransitionError> {
        self.check_started()?;
        if !self.managed_receiving {
            Err(TransitionError::NotManaged)
        } else if self.return_method == ReturnMethod::CustomerKeep {
            Err(TransitionError::CustomerKeeps)
        } else {
            Ok(())
        }
    }

    fn apply_finding(
        &mut self,
        finding: &Finding,
        change: &mut Change,
    ) -> Result<(), TransitionError> {
        let (id, event) = match finding {
            Finding::Received { unit } => (unit, ReceivingEvent::Received),
            Finding::Damaged { unit, .. } => (unit, ReceivingEvent::Damaged),
            Finding::Short { unit } => (unit, ReceivingEvent::Short),
            Finding::Wrong { unit, .. } => (unit, ReceivingEvent::Wrong),
            Finding::Undo { unit } => (unit, ReceivingEvent::Undone),
            Finding::Over { .. } => {
                change.discrepancies.extend(self.discrepancy(finding));
                return Ok(());
            }
        };
        let is_closed = self.receiving_closed_at.is_some();
        let unit = self.units.iter_mut().find(|it| it.id == *id && it.canceled_at.is_none());
        let Some(unit) = unit else { return Err(TransitionError::UnknownUnit) };
        if event == ReceivingEvent::Undone && unit.refunded_by.is_some() {
            return Err(TransitionError::Refunded);
        }
        let is_repeated = event == ReceivingEvent::Damaged && unit.is_damaged;
        let status = match unit.receiving_status.apply(event, is_closed) {
            Transition::Applied(status) if !is_repeated => status,
            Transition::Refused(error) => return Err(error),
            Transition::Applied(_) | Transition::Late => {
                change.late.push(id.clone());
                return Ok(());
            }
        };
        unit.receiving_status = status;
        match event {
            ReceivingEvent::Damaged => unit.is_damaged = true,
            ReceivingEvent::Undone => unit.is_damaged = false,
            _ => {}
        }
        change.units.push(id.clone());
        change.discrepancies.extend(self.discrepancy(finding));
        Ok(())
    }

    fn discrepancy(&self, finding: &Finding) -> Option<Discrepancy> {
        let rma_identifier = self.rma_identifier.clone();
        match finding.clone() {
            Finding::Received { .. } | Finding::Undo { .. } => None,
            Finding::Damaged { unit, note } => {
                Some(Discrepancy::ReceivedDamaged { rma_identifier, unit, note })
            }
            Finding::Short { unit } => Some(Discrepancy::ReceivedShort { rma_identifier, unit }),
            Finding::Wrong { unit, found_sku, note } => {
                Some(Discrepancy::ReceivedWrong { rma_identifier, unit, found_sku, note })
            }
            Finding::Over { sku, quantity, note } => {
                Some(Discrepancy::ReceivedOver { rma_identifier, sku, quantity, note })
            }
        }
    }
}

/// The first of these units that has not arrived and that the warehouse may mean.
pub(super) fn expected_among<'a>(
    units: impl Iterator<Item = &'a RmaUnit>,
    received: &UnitReceived,
) -> Option<UnitId> {
    let line = received.reference_line_identifier.as_ref();
    let has_code = |unit: &RmaUnit| {
        let same_sku = received.sku.as_ref() == Some(&unit.sku);
        same_sku || (unit.upc.is_some() && received.upc == unit.upc)
    };
    let is_match = |unit: &&RmaUnit| match line {
        Some(line) => unit.id.order_line_item_identifier == *line,
        None => has_code(unit),
    };
    let missing = units.filter(|unit| unit.receiving_status != ReceivingStatus::Received);
    let matching: Vec<_> = missing.filter(is_match).collect();
    // Lines of two orders can have the same identifier, so a matching code takes precedence.
    let exact = matching.iter().find(|unit| has_code(unit));
    exact.or(matching.first()).map(|unit| unit.id.clone())
}
