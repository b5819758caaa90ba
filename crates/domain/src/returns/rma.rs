//! A return, with everything that can happen to it. Load it, tell it what happened, save it, and
//! send [`Rma::message`] when the [`Change`] names an event.
//!
//! The invariants: an event that is refused changes nothing; one that comes again changes nothing
//! and names no event; `updated_at` moves on exactly when a message is due. All fields are public so
//! that a return can be kept as rows, one for itself and one for each unit.

mod exchanges;
mod receiving;
mod refunds;
mod tracking;
mod unit;

pub use tracking::CarrierReport;
pub use unit::{ExchangeStatus, PurchasedUnit, RmaUnit};

use chrono::{DateTime, TimeDelta, Utc};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{
    Discrepancy, ReceivingStatus, ReturnMethod, ReturnRequest, RmaMessage, RmaStatus, ServiceEvent,
    StatusEvent, Transition, TransitionError, UnitId,
};
use crate::merchant::Settings;

/// Two messages are at least so far apart, however close what they tell of: whoever keeps the newest
/// must see which that is, also where dates hold no more than milliseconds.
const TICK: TimeDelta = TimeDelta::milliseconds(1);

/// A return.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Rma {
    pub rma_identifier: String,
    pub status: RmaStatus,
    pub created_at: DateTime<Utc>,
    /// When the merchant was last told of something.
    pub updated_at: DateTime<Utc>,
    pub return_method: ReturnMethod,
    pub return_shipping_cost_cents: i64,
    /// The giftee's address makes it a return of a gift.
    pub giftee_email: Option<String>,
    /// Whether we receive its units; as the merchant's settings said when it was made.
    pub managed_receiving: bool,
    pub receiving_closed_at: Option<DateTime<Utc>>,
    pub canceled_at: Option<DateTime<Utc>>,
    /// In the order of the request, canceled ones included.
    pub units: Vec<RmaUnit>,
}

/// What an event changed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Change {
    /// The message to send, if the merchant sees a difference.
    pub event: Option<ServiceEvent>,
    /// The units it changed.
    pub units: Vec<UnitId>,
    /// The units for which it came late; it changed nothing about them.
    pub late: Vec<UnitId>,
    pub discrepancies: Vec<Discrepancy>,
    /// Whether it closed the receiving.
    pub closed_receiving: bool,
}

impl Change {
    /// Whether there is nothing to save.
    pub fn is_empty(&self) -> bool {
        *self == Self { late: self.late.clone(), ..Self::default() }
    }
}

impl Rma {
    /// A return that a shopper has confirmed. Its first message is [`ServiceEvent::Created`].
    pub fn create(
        rma_identifier: impl Into<String>,
        request: &ReturnRequest,
        units: Vec<RmaUnit>,
        settings: &Settings,
        now: DateTime<Utc>,
    ) -> Self {
        let types = units.iter().map(|unit| unit.refund_type);
        let cost = settings.returns.return_shipping_cost(request.return_method, types);
        Self {
            rma_identifier: rma_identifier.into(),
            status: RmaStatus::Created,
            created_at: now,
            updated_at: now,
            return_method: request.return_method,
            // Reading the request made sure that the method is offered.
            return_shipping_cost_cents: cost.unwrap_or_default(),
            giftee_email: request.giftee_email.clone(),
            managed_receiving: settings.managed_receiving,
            receiving_closed_at: None,
            canceled_at: None,
            units,
        }
    }

    /// The units that belong to it: those not canceled, or, once it is canceled, those it ended
    /// with.
    pub fn active_units(&self) -> impl Iterator<Item = &RmaUnit> {
        self.units.iter().filter(|unit| unit.canceled_at == self.canceled_at)
    }

    /// What the merchant is told.
    pub fn message(&self) -> RmaMessage {
        RmaMessage {
            rma_identifier: self.rma_identifier.clone(),
            status: self.status,
            created_at: self.created_at,
            updated_at: self.updated_at,
            items: self.active_units().map(|unit| unit.item(self.managed_receiving)).collect(),
            return_method: self.return_method,
            return_shipping_cost_cents: self.return_shipping_cost_cents,
            gift_refund_only: self.giftee_email.is_some(),
            giftee_email: self.giftee_email.clone(),
        }
    }

    /// Cancels units, or all of it, which frees them. Possible until the carrier has a parcel or
    /// the warehouse a unit, and not for units that were refunded or that something was ordered
    /// for.
    pub fn cancel(
        &mut self,
        units: Option<&[UnitId]>,
        now: DateTime<Utc>,
    ) -> Result<Change, TransitionError> {
        match self.status.step(StatusEvent::Canceled) {
            Transition::Refused(refusal) => return Err(refusal),
            Transition::Late => {
                return Ok(Change { late: self.named(units)?, ..Change::default() });
            }
            Transition::Applied(_) => {}
        }
        let named = self.named(units)?;
        let (selected, late): (Vec<_>, Vec<_>) =
            named.into_iter().partition(|id| self.active_units().any(|unit| unit.id == *id));
        if selected.is_empty() {
            return Ok(Change { late, ..Change::default() });
        }
        self.check_cancel(&selected)?;
        for unit in self.units.iter_mut().filter(|unit| selected.contains(&unit.id)) {
            unit.canceled_at = Some(now);
        }
        let event = if self.active_units().next().is_none() {
            self.status = RmaStatus::Canceled;
            self.canceled_at = Some(now);
            ServiceEvent::Canceled
        } else if self.settle_status() {
            ServiceEvent::Refunded
        } else {
            ServiceEvent::Canceled
        };
        Ok(self.changed(event, Change { units: selected, late, ..Change::default() }, now))
    }

    fn check_cancel(&self, selected: &[UnitId]) -> Result<(), TransitionError> {
        if self.active_units().any(RmaUnit::is_scanned) {
            return Err(TransitionError::Scanned);
        }
        if self.active_units().any(|unit| unit.receiving_status == ReceivingStatus::Received) {
            return Err(TransitionError::Received);
        }
        for unit in self.active_units().filter(|unit| selected.contains(&unit.id)) {
            if unit.refunded_by.is_some() {
                return Err(TransitionError::Refunded);
            }
            // An exchange order cannot be called back.
            if unit.exchange_status.is_some_and(|exchange| exchange != ExchangeStatus::Failed) {
                return Err(TransitionError::ExchangeInProgress);
            }
        }
        Ok(())
    }

    /// The units named, or all active ones, provided that this return has them.
    fn named(&self, units: Option<&[UnitId]>) -> Result<Vec<UnitId>, TransitionError> {
        let Some(units) = units else {
            return Ok(self.active_units().map(|unit| unit.id.clone()).collect());
        };
        let is_known = |id: &UnitId| self.units.iter().any(|unit| unit.id == *id);
        if units.iter().all(is_known) {
            Ok(units.to_vec())
        } else {
            Err(TransitionError::UnknownUnit)
        }
    }

    /// Moves the status on when refunds cover every unit; says whether they do since now.
    fn settle_status(&mut self) -> bool {
        let event = if self.active_units().all(|unit| unit.refunded_by.is_some()) {
            StatusEvent::AllRefunded
        } else {
            StatusEvent::SomeRefunded
        };
        let before = self.status;
        if let Transition::Applied(status) = self.status.step(event) {
            self.status = status;
        }
        self.status != before
    }

    /// Notes that the merchant is to be told.
    fn changed(&mut self, event: ServiceEvent, change: Change, now: DateTime<Utc>) -> Change {
        self.updated_at = now.max(self.updated_at + TICK);
        Change { event: Some(event), ..change }
    }
}
