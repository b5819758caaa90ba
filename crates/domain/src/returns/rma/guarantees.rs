//! Exchanged units, which the merchant replaces before they are back.
//!
//! The merchant ships a variant or issues a gift card as soon as it accepts the exchange order. A unit that no carrier
//! and no warehouse has by the deadline is due: the merchant can charge for it.

use chrono::{DateTime, Utc};

use super::{Change, Rma, RmaUnit};
use crate::merchant::Settings;
use crate::returns::{
    Deadline, DeadlineKind, Guarantee, GuaranteeChange, GuaranteeState, ReturnMethod, ServiceEvent,
    TransitionError, UnitId, Waiver,
};

impl RmaUnit {
    /// The state that the guarantee should have.
    fn guarantee_state(&self) -> Option<GuaranteeState> {
        let guarantee = self.guarantee.as_ref()?;
        Some(if guarantee.waiver.is_some() {
            GuaranteeState::Waived
        } else if self.has_arrived() || self.refunded_by.is_some() {
            GuaranteeState::Met
        } else if guarantee.unreturned_at.is_some() {
            GuaranteeState::Due
        } else {
            GuaranteeState::Open
        })
    }

    fn is_guarantee(&self, state: GuaranteeState) -> bool {
        self.guarantee.as_ref().is_some_and(|it| it.state == state)
    }
}

impl Rma {
    /// Whether the merchant can charge for a unit that did not come back in time.
    pub fn is_overdue(&self) -> bool {
        self.active_units().any(|unit| unit.is_guarantee(GuaranteeState::Due))
    }

    /// The deadline of the open guarantee that started first.
    pub(super) fn exchange_deadline(&self, settings: &Settings) -> Option<Deadline> {
        let first = self.open_guarantees().min()?;
        DeadlineKind::Exchange.starting(first, settings)
    }

    fn open_guarantees(&self) -> impl Iterator<Item = DateTime<Utc>> {
        let open = self.active_units().filter(|unit| unit.is_guarantee(GuaranteeState::Open));
        open.filter_map(|unit| Some(unit.guarantee.as_ref()?.started_at))
    }

    /// Starts the guarantees of units whose exchange order the merchant accepted. That of a unit that is back already is
    /// met, until its receipt is undone.
    pub(super) fn start_guarantees(
        &mut self,
        units: &[UnitId],
        now: DateTime<Utc>,
    ) -> Vec<GuaranteeChange> {
        if self.return_method == ReturnMethod::CustomerKeep {
            return Vec::new();
        }
        let mut changes = Vec::new();
        for unit in self.units.iter_mut().filter(|unit| units.contains(&unit.id)) {
            let guarantee = Guarantee {
                state: GuaranteeState::Open,
                started_at: now,
                amount_cents: unit.amounts.paid(),
                unreturned_at: None,
                waiver: None,
            };
            changes.push(guarantee.change(None));
            unit.guarantee = Some(guarantee);
        }
        changes
    }

    /// Sets the states of all guarantees.
    pub(super) fn update_guarantees(&mut self) -> Vec<GuaranteeChange> {
        let mut changes = Vec::new();
        for unit in &mut self.units {
            let state = unit.guarantee_state();
            if let (Some(guarantee), Some(state)) = (&mut unit.guarantee, state)
                && guarantee.state != state
            {
                let before = std::mem::replace(&mut guarantee.state, state);
                changes.push(guarantee.change(Some(before)));
            }
        }
        changes
    }

    /// Reports the units that did not come back in time: those whose guarantee started first and, with `is_due`, others.
    /// Each unit is reported once, also if it comes back later and its receipt is undone.
    pub fn report_unreturned(
        &mut self,
        is_due: impl Fn(DateTime<Utc>) -> bool,
        now: DateTime<Utc>,
    ) -> Change {
        let Some(first) = self.open_guarantees().min() else { return Change::default() };
        let mut units = Vec::new();
        for unit in &mut self.units {
            let is_open = unit.is_guarantee(GuaranteeState::Open);
            let Some(guarantee) = &mut unit.guarantee else { continue };
            if is_open && (guarantee.started_at == first || is_due(guarantee.started_at)) {
                guarantee.unreturned_at = Some(now);
                units.push(unit.id.clone());
            }
        }
        let change = Change { units, ..Change::default() };
        self.with_message(ServiceEvent::ExchangeUnreturned, change, now)
    }

    /// Does without the amounts of the given units, or of all units whose guarantee is open or due. Refused if none of
    /// them has a guarantee. A unit that came back is late.
    pub fn waive(
        &mut self,
        units: Option<&[UnitId]>,
        waiver: &Waiver,
    ) -> Result<Change, TransitionError> {
        let requested = self.requested_units(units)?;
        let mut change = Change::default();
        let mut after = self.clone();
        // A unit without a guarantee that the request names.
        let mut is_named = false;
        for unit in after.units.iter_mut().filter(|unit| requested.contains(&unit.id)) {
            let Some(guarantee) = &mut unit.guarantee else {
                is_named |= units.is_some();
                continue;
            };
            match guarantee.state {
                GuaranteeState::Open | GuaranteeState::Due => {
                    guarantee.waiver = Some(waiver.clone());
                    change.units.push(unit.id.clone());
                }
                GuaranteeState::Met | GuaranteeState::Waived => change.late.push(unit.id.clone()),
            }
        }
        if is_named || (change.units.is_empty() && change.late.is_empty()) {
            return Err(TransitionError::NotGuaranteed);
        }
        if change.units.is_empty() {
            return Ok(change);
        }
        *self = after;
        Ok(self.with_message(ServiceEvent::GuaranteeWaived, change, waiver.at))
    }
}
