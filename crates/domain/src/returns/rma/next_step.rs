//! The next step that a return needs.

use super::{Rma, RmaUnit};
use crate::returns::{ReceivingStatus, ReturnMethod, RmaStatus, TrackingStatus, WorkList};

impl Rma {
    /// The work list that has the return: that of the unit without a refund that is closest to one.
    pub fn work_list(&self) -> WorkList {
        match self.status {
            RmaStatus::Requested => WorkList::ToReview,
            RmaStatus::Created | RmaStatus::PartialRefund => {
                let left = self.active_units().filter(|unit| unit.refunded_by.is_none());
                left.map(|unit| self.next_step(unit)).max().unwrap_or(WorkList::Done)
            }
            RmaStatus::Refunded | RmaStatus::Canceled | RmaStatus::Declined => WorkList::Done,
        }
    }

    fn next_step(&self, unit: &RmaUnit) -> WorkList {
        let comes_no_more = self.return_method == ReturnMethod::CustomerKeep
            || self.status == RmaStatus::PartialRefund;
        let is_expected =
            self.managed_receiving && unit.receiving_status == ReceivingStatus::Pending;
        match unit.package_tracking_status {
            _ if comes_no_more || unit.receiving_status == ReceivingStatus::Received => {
                WorkList::ToRefund
            }
            Some(TrackingStatus::Delivered) if !is_expected => WorkList::ToRefund,
            // The carrier gave the parcel back to the shopper.
            Some(TrackingStatus::Returned) => WorkList::NotSent,
            _ if unit.is_scanned() => WorkList::OnItsWay,
            _ => WorkList::NotSent,
        }
    }

    /// The amount that was paid for the units that were not canceled. For a canceled return, for the units that it
    /// ended with.
    pub fn paid_amount_cents(&self) -> i64 {
        self.active_units().map(|unit| unit.amounts.paid()).sum()
    }
}
