//! What refunds do to a return.

use chrono::{DateTime, Utc};

use super::{Change, Rma};
use crate::returns::{CoveredUnit, Refusal, ServiceEvent, Status};

impl Rma {
    /// Remembers which of its units refunds cover; what concerns other returns is passed over. It
    /// is refunded once all of them are. Everything that one snapshot covers is one change.
    pub fn refund(
        &mut self,
        covered: &[CoveredUnit],
        now: DateTime<Utc>,
    ) -> Result<Change, Refusal> {
        if self.status == Status::Canceled {
            return Err(Refusal::Canceled);
        }
        let mut change = Change::default();
        let own = Some(self.rma_identifier.clone());
        for cover in covered.iter().filter(|cover| cover.rma_identifier == own) {
            let mut units = self.units.iter_mut();
            let unit = units.find(|it| it.id == cover.unit && it.canceled_at.is_none());
            let Some(unit) = unit else { return Err(Refusal::UnknownUnit) };
            if unit.refunded_by.is_none() {
                unit.refunded_by = Some(cover.refund_identifier.clone());
                change.units.push(cover.unit.clone());
            } else {
                change.late.push(cover.unit.clone());
            }
        }
        if !change.units.is_empty() && self.settle_status() {
            change = self.changed(ServiceEvent::Refunded, change, now);
        }
        Ok(change)
    }
}
