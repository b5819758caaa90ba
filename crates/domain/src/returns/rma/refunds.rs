//! What refunds do to a return.

use chrono::{DateTime, Utc};

use super::{Change, Rma};
use crate::returns::{RefundedUnit, RmaStatus, ServiceEvent, TransitionError};

impl Rma {
    /// Remembers which of its units refunds cover; what concerns other returns is passed over. It
    /// is refunded once all of them are. Everything that one snapshot covers is one change.
    pub fn refund(
        &mut self,
        covered: &[RefundedUnit],
        now: DateTime<Utc>,
    ) -> Result<Change, TransitionError> {
        if self.status == RmaStatus::Canceled {
            return Err(TransitionError::Canceled);
        }
        let mut change = Change::default();
        let own: Vec<_> = covered
            .iter()
            .filter(|cover| cover.rma_identifier.as_ref() == Some(&self.rma_identifier))
            .collect();
        if !own.iter().all(|cover| self.active_units().any(|unit| unit.id == cover.unit)) {
            return Err(TransitionError::UnknownUnit);
        }
        for cover in own {
            let mut units = self.units.iter_mut();
            match units.find(|unit| unit.id == cover.unit && unit.refunded_by.is_none()) {
                Some(unit) => {
                    unit.refunded_by = Some(cover.refund_identifier.to_string());
                    change.units.push(cover.unit.clone());
                }
                None => change.late.push(cover.unit.clone()),
            }
        }
        if !change.units.is_empty() && self.settle_status() {
            change = self.changed(ServiceEvent::Refunded, change, now);
        }
        Ok(change)
    }
}
