//! The occasions of mails to the shopper of a return.

use super::{Change, Rma, RmaUnit};
use crate::merchant::MailEvent;
use crate::returns::{ReceivingStatus, RefundType, RmaStatus, ServiceEvent};

/// An event of a return about which its shopper gets a mail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MailOccasion<'a> {
    pub event: MailEvent,
    /// The units that it is about, in the order of the return.
    pub units: Vec<&'a RmaUnit>,
}

impl Rma {
    /// The occasion of the acknowledgement of a new return; `None` if it is no withdrawal from the contract.
    pub fn withdrawal_occasion(&self) -> Option<MailOccasion<'_>> {
        let units = self.active_units().collect();
        self.withdrawal.as_ref().map(|_| MailOccasion { event: MailEvent::Withdrawal, units })
    }

    /// The occasion that a change gives. The return is as it is after the change.
    pub fn mail_occasion(&self, change: &Change) -> Option<MailOccasion<'_>> {
        let changed = || self.units.iter().filter(|unit| change.units.contains(&unit.id));
        let (event, units): (_, Vec<_>) = match change.event {
            Some(ServiceEvent::Created) => (MailEvent::Confirmed, self.active_units().collect()),
            Some(ServiceEvent::Received) => (MailEvent::Received, self.arrived_units(change)),
            // A cancellation can leave only refunded units, which is no refund.
            Some(ServiceEvent::Refunded | ServiceEvent::PartiallyRefunded) => {
                let is_refund = |unit: &&RmaUnit| {
                    unit.refunded_by.is_some() && unit.refund_type == RefundType::Refund
                };
                (MailEvent::Refunded, changed().filter(is_refund).collect())
            }
            Some(ServiceEvent::ExchangePlaced) => (MailEvent::ExchangePlaced, changed().collect()),
            None if change.is_reminder => (MailEvent::AboutToExpire, changed().collect()),
            None if self.status == RmaStatus::Declined => {
                (MailEvent::Declined, changed().collect())
            }
            _ => return None,
        };
        (!units.is_empty()).then_some(MailOccasion { event, units })
    }

    /// The units that arrived, once no unit is expected any more: a warehouse may report one unit after the other.
    fn arrived_units(&self, change: &Change) -> Vec<&RmaUnit> {
        let is_expected = |unit: &RmaUnit| unit.receiving_status == ReceivingStatus::Pending;
        if change.units.is_empty() || self.active_units().any(is_expected) {
            return Vec::new();
        }
        let has_arrived = |unit: &&RmaUnit| unit.receiving_status == ReceivingStatus::Received;
        self.active_units().filter(has_arrived).collect()
    }
}
