//! Refunds of a return's units.

use chrono::{DateTime, Utc};

use super::{Change, Rma};
use crate::returns::{RefundedUnit, RmaStatus, ServiceEvent, TransitionError};

impl Rma {
    /// Records which of its units a refund covers, and ignores units of other returns. The return
    /// is refunded once refunds cover every unit. A refund that names the return and covers no
    /// unit is a change too, because the merchant is told about each refund. A repeated refund is
    /// late.
    pub fn refund(
        &mut self,
        refunded_units: &[RefundedUnit],
        now: DateTime<Utc>,
    ) -> Result<Change, TransitionError> {
        self.check_started()?;
        let own: Vec<_> = refunded_units
            .iter()
            .filter(|it| it.rma_identifier.as_ref() == Some(&self.rma_identifier))
            .collect();
        if !own.iter().all(|it| self.active_units().any(|unit| unit.id == it.unit)) {
            return Err(TransitionError::UnknownUnit);
        }
        let mut change = Change::default();
        for refunded in own {
            let mut units = self.units.iter_mut();
            match units.find(|unit| unit.id == refunded.unit && unit.refunded_by.is_none()) {
                Some(unit) => {
                    unit.refunded_by = Some(refunded.refund_identifier.to_string());
                    change.units.push(refunded.unit.clone());
                }
                None => change.late.push(refunded.unit.clone()),
            }
        }
        if change.units.is_empty() && !refunded_units.is_empty() {
            return Ok(change);
        }
        self.update_refund_status();
        let event = if self.status == RmaStatus::Refunded {
            ServiceEvent::Refunded
        } else {
            ServiceEvent::PartiallyRefunded
        };
        Ok(self.with_message(event, change, now))
    }
}
