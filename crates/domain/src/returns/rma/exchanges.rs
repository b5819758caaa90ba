//! What becomes of the exchanges of a return.

use chrono::{DateTime, Utc};

use super::{Change, ExchangeStatus, Rma};
use crate::exchange::FailureCause;
use crate::returns::{RefundType, Resolution, ServiceEvent, TransitionError, UnitId};

impl Rma {
    /// The merchant took the exchange order for these units.
    pub fn exchange_placed(
        &mut self,
        units: &[UnitId],
        exchange_order_identifier: &str,
        now: DateTime<Utc>,
    ) -> Result<Change, TransitionError> {
        let mut change = self.exchanging(units)?;
        for unit in self.units.iter_mut().filter(|unit| change.units.contains(&unit.id)) {
            unit.exchange_status = Some(ExchangeStatus::Placed);
            unit.exchange_order_identifier = Some(exchange_order_identifier.to_owned());
        }
        if !change.units.is_empty() {
            change = self.changed(ServiceEvent::ExchangePlaced, change, now);
        }
        Ok(change)
    }

    /// These units are not exchanged: for the time being, and they wait, or for good, and they are
    /// refunded instead. What the return shipping costs stays as the shopper was told.
    pub fn exchange_failed(
        &mut self,
        units: &[UnitId],
        cause: FailureCause,
        now: DateTime<Utc>,
    ) -> Result<Change, TransitionError> {
        let mut change = self.exchanging(units)?;
        let is_final = cause != FailureCause::Undeliverable;
        let (waiting, others): (Vec<_>, Vec<_>) = change.units.drain(..).partition(|id| {
            let is_waiting = |exchange| exchange == Some(ExchangeStatus::Undeliverable);
            self.units.iter().any(|unit| unit.id == *id && is_waiting(unit.exchange_status))
        });
        change.units = others;
        if is_final {
            change.units.extend(waiting)
        } else {
            change.late.extend(waiting)
        }
        for unit in self.units.iter_mut().filter(|unit| change.units.contains(&unit.id)) {
            if is_final {
                unit.exchange_status = Some(ExchangeStatus::Failed);
                unit.resolution = Resolution::Refund;
                unit.refund_type = RefundType::Refund;
            } else {
                unit.exchange_status = Some(ExchangeStatus::Undeliverable);
            }
        }
        if is_final && !change.units.is_empty() {
            change = self.changed(ServiceEvent::ExchangeFailed, change, now);
        }
        Ok(change)
    }

    /// Which of these units are still to be exchanged, and for which it is settled. Refused when
    /// one of them was never exchanged.
    fn exchanging(&self, units: &[UnitId]) -> Result<Change, TransitionError> {
        let mut change = Change::default();
        for id in units {
            let unit = self.units.iter().find(|unit| unit.id == *id);
            match unit.ok_or(TransitionError::UnknownUnit)?.exchange_status {
                None => return Err(TransitionError::NotExchanged),
                Some(ExchangeStatus::Pending | ExchangeStatus::Undeliverable) => {
                    change.units.push(id.clone());
                }
                Some(ExchangeStatus::Placed | ExchangeStatus::Failed) => {
                    change.late.push(id.clone());
                }
            }
        }
        Ok(change)
    }
}
