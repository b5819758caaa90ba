//! Exchanges of a return's units.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};

use super::{Change, ExchangeStatus, Rma};
use crate::returns::{RefundType, Resolution, ServiceEvent, TransitionError, UnitId};

impl Rma {
    /// The merchant accepted the exchange order for these units. Their refund type follows the price
    /// that the merchant had for the variant then.
    pub fn exchange_placed(
        &mut self,
        placed: &BTreeMap<UnitId, RefundType>,
        exchange_order_identifier: &str,
        now: DateTime<Utc>,
    ) -> Result<Change, TransitionError> {
        let mut change = self.open_exchanges(placed.keys())?;
        for unit in self.units.iter_mut().filter(|unit| change.units.contains(&unit.id)) {
            unit.refund_type = placed.get(&unit.id).copied().unwrap_or(unit.refund_type);
            // The exchange order has no discount at the same price.
            if unit.refund_type == RefundType::EvenExchange {
                unit.bonus_amount_cents = None;
            }
            unit.exchange_status = Some(ExchangeStatus::Placed);
            unit.exchange_order_identifier = Some(exchange_order_identifier.to_owned());
        }
        if !change.units.is_empty() {
            change.guarantees = self.start_guarantees(&change.units, now);
            change = self.with_message(ServiceEvent::ExchangePlaced, change, now);
        }
        Ok(change)
    }

    /// These units are not exchanged and are refunded instead. The return shipping cost does not
    /// change, because the shopper agreed to it.
    pub fn exchange_failed(
        &mut self,
        units: &[UnitId],
        now: DateTime<Utc>,
    ) -> Result<Change, TransitionError> {
        let mut change = self.open_exchanges(units)?;
        for unit in self.units.iter_mut().filter(|unit| change.units.contains(&unit.id)) {
            unit.exchange_status = Some(ExchangeStatus::Failed);
            unit.resolution = Resolution::Refund;
            unit.refund_type = RefundType::Refund;
            unit.bonus_amount_cents = None;
        }
        if !change.units.is_empty() {
            change = self.with_message(ServiceEvent::ExchangeFailed, change, now);
        }
        Ok(change)
    }

    /// The exchange order for these units could not be delivered and waits for an operator.
    pub fn exchange_undeliverable(&mut self, units: &[UnitId]) -> Result<Change, TransitionError> {
        let mut change = self.open_exchanges(units)?;
        let is_repeated = |id: &UnitId| {
            let mut units = self.units.iter().filter(|unit| unit.id == *id);
            units.any(|unit| unit.exchange_status == Some(ExchangeStatus::Undeliverable))
        };
        let (repeated, new): (Vec<_>, Vec<_>) = change.units.drain(..).partition(is_repeated);
        change.units = new;
        change.late.extend(repeated);
        for unit in self.units.iter_mut().filter(|unit| change.units.contains(&unit.id)) {
            unit.exchange_status = Some(ExchangeStatus::Undeliverable);
        }
        Ok(change)
    }

    /// Sorts units into those whose exchange is open (`units`) and those whose exchange was placed
    /// or failed (`late`). Refused if a unit was never exchanged.
    fn open_exchanges<'a>(
        &self,
        units: impl IntoIterator<Item = &'a UnitId>,
    ) -> Result<Change, TransitionError> {
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
