//! A return and the events that change it. Load it, apply an event, save it, and send
//! [`Rma::message`] if the [`Change`] names a service event.
//!
//! A refused event changes nothing; a repeated event changes nothing and names no service event;
//! `updated_at` increases exactly when a message is due. Fields are public for the store, which
//! keeps one row per return and one per unit.

mod exchanges;
mod expiry;
mod guarantees;
mod next_step;
mod receiving;
mod refunds;
mod review;
mod tracking;
mod unit;

pub use unit::{ExchangeStatus, PurchasedUnit, RmaUnit};

use chrono::{DateTime, TimeDelta, Utc};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{
    Discrepancy, GUARANTEES_SINCE, GuaranteeChange, ReceivingStatus, ReturnDestination,
    ReturnMethod, ReturnRequest, ReturnReview, RmaMessage, RmaStatus, ServiceEvent, StatusEvent,
    Transition, TransitionError, UnitId, Withdrawal,
};
use crate::access::MerchantId;
use crate::message_kind::MessageVersion;

/// The smallest difference between the `updated_at` of two messages. Merchants keep the newest
/// message, and some store times in milliseconds.
const MIN_UPDATE_INTERVAL: TimeDelta = TimeDelta::milliseconds(1);

/// A return.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Rma {
    pub merchant: MerchantId,
    pub rma_identifier: String,
    pub status: RmaStatus,
    pub created_at: DateTime<Utc>,
    /// The time of the last change that the merchant was sent, or of the request.
    pub updated_at: DateTime<Utc>,
    pub return_method: ReturnMethod,
    pub return_shipping_cost_cents: i64,
    /// The rule of the merchant that caused the cost; absent for that of the merchant's settings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub cost_rule: Option<String>,
    /// The bonus of the merchant's settings for the gift card of an order. Present only if there is a gift card for which
    /// no rule gives a bonus.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub gift_card_bonus_amount_cents: Option<i64>,
    /// ISO 4217 code of all amounts.
    #[serde(default)]
    #[schema(example = "USD")]
    pub currency: String,
    /// Present only for the return of a gift.
    pub giftee_email: Option<String>,
    /// The person who withdrew from the contract. Present only for a withdrawal in the portal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub withdrawal: Option<Withdrawal>,
    /// Whether our warehouse receives the units, by the merchant's settings at creation.
    pub managed_receiving: bool,
    pub receiving_closed_at: Option<DateTime<Utc>>,
    /// The time at which the return was canceled or declined.
    pub canceled_at: Option<DateTime<Utc>>,
    /// Present only for a return that waits or waited for review.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub review: Option<ReturnReview>,
    /// Present only if a rule of the merchant names a warehouse.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub return_to: Option<ReturnDestination>,
    /// In the order of the request, including canceled units.
    pub units: Vec<RmaUnit>,
}

/// The effect of an event on a return.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Change {
    /// The service event of the message to send, if the merchant's view changed.
    pub event: Option<ServiceEvent>,
    /// The units that the event changed.
    pub units: Vec<UnitId>,
    /// The units that the event did not change because it came late.
    pub late: Vec<UnitId>,
    /// The expired units that are part of the return again.
    pub reopened: Vec<UnitId>,
    pub discrepancies: Vec<Discrepancy>,
    pub guarantees: Vec<GuaranteeChange>,
    pub closed_receiving: bool,
}

impl Change {
    /// Whether the return needs no save.
    pub fn is_empty(&self) -> bool {
        *self == Self { late: self.late.clone(), ..Self::default() }
    }
}

/// The terms on which a return starts.
#[derive(Debug, Clone, Copy)]
pub struct ReturnTerms<'a> {
    pub return_shipping_cost_cents: i64,
    pub cost_rule: Option<&'a str>,
    /// The bonus of the merchant's settings for the gift card of an order.
    pub gift_card_bonus_amount_cents: i64,
    /// ISO 4217 code of all amounts.
    pub currency: &'a str,
    pub managed_receiving: bool,
    /// The review that a rule asks for.
    pub review: Option<&'a ReturnReview>,
    /// The warehouse that a rule names.
    pub return_to: Option<&'a ReturnDestination>,
}

impl Rma {
    /// The e-mail address that the return has beside that of the order: of the giftee, or of the person who withdrew
    /// from the contract.
    pub fn other_email(&self) -> Option<&str> {
        let withdrawn = self.withdrawal.as_ref().map(|person| person.email.as_str());
        self.giftee_email.as_deref().or(withdrawn)
    }

    /// Creates a return that a shopper confirmed. Its first message is [`ServiceEvent::Created`], which a return that
    /// waits for review has after its approval.
    pub fn create(
        merchant: MerchantId,
        rma_identifier: impl Into<String>,
        request: &ReturnRequest,
        units: Vec<RmaUnit>,
        terms: ReturnTerms<'_>,
        now: DateTime<Utc>,
    ) -> Self {
        let has_bonus = units.iter().any(RmaUnit::has_bonus_of_settings);
        let mut rma = Self {
            merchant,
            rma_identifier: rma_identifier.into(),
            status: RmaStatus::Created,
            created_at: now,
            updated_at: now,
            return_method: request.return_method,
            return_shipping_cost_cents: terms.return_shipping_cost_cents,
            cost_rule: terms.cost_rule.map(str::to_owned),
            gift_card_bonus_amount_cents: has_bonus.then_some(terms.gift_card_bonus_amount_cents),
            currency: terms.currency.to_owned(),
            giftee_email: request.giftee_email.clone(),
            withdrawal: request.withdrawal.clone(),
            managed_receiving: terms.managed_receiving,
            receiving_closed_at: None,
            canceled_at: None,
            review: terms.review.cloned(),
            return_to: terms.return_to.cloned(),
            units,
        };
        if rma.review.is_some() {
            rma.status = RmaStatus::Requested;
            rma.units.iter_mut().for_each(|unit| unit.exchange_status = None);
        }
        rma
    }

    /// The service event of the first message; `None` while the return waits for review.
    pub fn first_event(&self) -> Option<ServiceEvent> {
        (!self.is_in_review()).then_some(ServiceEvent::Created)
    }

    /// Refuses events of a return that has not started, or that has ended without a unit.
    fn check_started(&self) -> Result<(), TransitionError> {
        match self.status {
            RmaStatus::Requested => Err(TransitionError::InReview),
            RmaStatus::Canceled => Err(TransitionError::Canceled),
            RmaStatus::Declined => Err(TransitionError::Declined),
            RmaStatus::Created | RmaStatus::PartialRefund | RmaStatus::Refunded => Ok(()),
        }
    }

    /// The units that were not canceled. For a canceled return, the units that it ended with.
    pub fn active_units(&self) -> impl Iterator<Item = &RmaUnit> {
        self.units.iter().filter(|unit| unit.canceled_at == self.canceled_at)
    }

    /// The message for the merchant, in the version of the contract.
    pub fn message(&self) -> RmaMessage {
        self.message_in(MessageVersion(3))
    }

    /// The message for the merchant in a version. From version 4 on, it has the guarantees of units.
    pub fn message_in(&self, version: MessageVersion) -> RmaMessage {
        let has_guarantees = version >= GUARANTEES_SINCE;
        let item = |unit: &RmaUnit| unit.item(self.managed_receiving, has_guarantees);
        RmaMessage {
            rma_identifier: self.rma_identifier.clone(),
            status: self.status.into(),
            created_at: self.created_at,
            updated_at: self.updated_at,
            items: self.active_units().map(item).collect(),
            return_method: self.return_method,
            return_shipping_cost_cents: self.return_shipping_cost_cents,
            gift_refund_only: self.giftee_email.is_some(),
            giftee_email: self.giftee_email.clone(),
        }
    }

    /// Cancels the given units, or the whole return, and makes the units returnable again.
    /// Refused once the carrier has a parcel or the warehouse a unit, and for units that were
    /// refunded or have an exchange order. The merchant is not told about a return that waits for review.
    pub fn cancel(
        &mut self,
        units: Option<&[UnitId]>,
        now: DateTime<Utc>,
    ) -> Result<Change, TransitionError> {
        let transition = self.status.apply(StatusEvent::Canceled);
        if let Transition::Refused(error) = transition {
            return Err(error);
        }
        let requested = self.requested_units(units)?;
        if transition == Transition::Late {
            return Ok(Change { late: requested, ..Change::default() });
        }
        let (canceled, late): (Vec<_>, Vec<_>) =
            requested.into_iter().partition(|id| self.active_units().any(|unit| unit.id == *id));
        if canceled.is_empty() {
            return Ok(Change { late, ..Change::default() });
        }
        self.check_cancelable(&canceled)?;
        if self.is_in_review() {
            self.remove_units(&canceled, now);
            return Ok(Change { units: canceled, late, ..Change::default() });
        }
        let event = if self.remove_units(&canceled, now) {
            ServiceEvent::Refunded
        } else {
            ServiceEvent::Canceled
        };
        Ok(self.with_message(event, Change { units: canceled, late, ..Change::default() }, now))
    }

    /// Cancels units, and the return if none is left. Returns whether refunds cover all that are left.
    fn remove_units(&mut self, canceled: &[UnitId], now: DateTime<Utc>) -> bool {
        for unit in self.units.iter_mut().filter(|unit| canceled.contains(&unit.id)) {
            unit.canceled_at = Some(now);
        }
        if self.active_units().next().is_none() {
            self.status = RmaStatus::Canceled;
            self.canceled_at = Some(now);
            return false;
        }
        self.update_refund_status()
    }

    fn check_cancelable(&self, canceled: &[UnitId]) -> Result<(), TransitionError> {
        if self.active_units().any(RmaUnit::is_scanned) {
            return Err(TransitionError::Scanned);
        }
        if self.active_units().any(|unit| unit.receiving_status == ReceivingStatus::Received) {
            return Err(TransitionError::Received);
        }
        for unit in self.active_units().filter(|unit| canceled.contains(&unit.id)) {
            if unit.refunded_by.is_some() {
                return Err(TransitionError::Refunded);
            }
            // An exchange order cannot be recalled.
            if unit.exchange_status.is_some_and(|status| status != ExchangeStatus::Failed) {
                return Err(TransitionError::ExchangeInProgress);
            }
        }
        Ok(())
    }

    /// The given units, or all active units. Refused if the return does not contain one of them.
    fn requested_units(&self, units: Option<&[UnitId]>) -> Result<Vec<UnitId>, TransitionError> {
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

    /// Sets the status to refunded when refunds cover every unit. Returns whether it changed.
    fn update_refund_status(&mut self) -> bool {
        let event = if self.active_units().all(|unit| unit.refunded_by.is_some()) {
            StatusEvent::AllRefunded
        } else {
            StatusEvent::SomeRefunded
        };
        let before = self.status;
        if let Transition::Applied(status) = self.status.apply(event) {
            self.status = status;
        }
        self.status != before
    }

    /// Adds the service event of the message that the change requires, and the changes of guarantees that follow from it.
    fn with_message(
        &mut self,
        event: ServiceEvent,
        mut change: Change,
        now: DateTime<Utc>,
    ) -> Change {
        change.guarantees.extend(self.update_guarantees());
        self.updated_at = now.max(self.updated_at + MIN_UPDATE_INTERVAL);
        Change { event: Some(event), ..change }
    }
}
