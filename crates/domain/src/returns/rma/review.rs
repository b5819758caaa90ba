//! The review of a return: until it is approved, its units are held and nothing else happens.

use chrono::{DateTime, Utc};

use super::{Change, ExchangeStatus, Rma, RmaUnit};
use crate::merchant::{ReviewDecision, Settings};
use crate::returns::{
    Deadline, DeadlineKind, DecidedReview, Period, RefundType, ReturnReview, RmaStatus,
    ServiceEvent, StatusEvent, Transition, TransitionError,
};

impl Rma {
    /// Whether the return waits for a decision of the merchant.
    pub fn is_in_review(&self) -> bool {
        self.status == RmaStatus::Requested
    }

    /// The review that waits for a decision.
    pub fn open_review(&self) -> Option<&ReturnReview> {
        self.review.as_ref().filter(|_| self.is_in_review())
    }

    /// The time from which the shopper can hand over the units: of the request, or of its approval.
    pub(super) fn started_at(&self) -> DateTime<Utc> {
        let decided = self.review.as_ref().and_then(|review| review.decided.as_ref());
        decided.map_or(self.created_at, |decided| decided.at)
    }

    pub(super) fn review_deadline(&self, settings: &Settings) -> Option<Deadline> {
        let ReturnReview { within_days, due_at, .. } = *self.open_review()?;
        let period = Period { days: within_days, zone: settings.zone() };
        let started_at = self.created_at;
        Some(Deadline { kind: DeadlineKind::Review, started_at, period, due_at })
    }

    /// Decides about a return that waits for review. An approval starts the return: its first message is
    /// [`ServiceEvent::Created`]. A decline ends it without a message and makes its units returnable again.
    pub fn decide(&mut self, decided: DecidedReview) -> Result<Change, TransitionError> {
        let DecidedReview { decision, at, .. } = decided;
        let event = match decision {
            ReviewDecision::Approve => StatusEvent::Approved,
            ReviewDecision::Decline => StatusEvent::Declined,
        };
        let status = match self.status.apply(event) {
            Transition::Applied(status) => status,
            Transition::Refused(_) if self.was_approved() => return Err(TransitionError::Approved),
            Transition::Refused(error) => return Err(error),
            Transition::Late => return Err(TransitionError::NotInReview),
        };
        let review = self.review.as_mut().ok_or(TransitionError::NotInReview)?;
        review.decided = Some(decided);
        self.status = status;
        let mut change = Change::default();
        for unit in self.units.iter_mut().filter(|unit| unit.canceled_at.is_none()) {
            change.units.push(unit.id.clone());
            match decision {
                ReviewDecision::Approve => unit.request_exchange(),
                ReviewDecision::Decline => unit.canceled_at = Some(at),
            }
        }
        match decision {
            ReviewDecision::Approve => Ok(self.with_message(ServiceEvent::Created, change, at)),
            ReviewDecision::Decline => {
                self.canceled_at = Some(at);
                Ok(change)
            }
        }
    }

    fn was_approved(&self) -> bool {
        let decided = self.review.as_ref().and_then(|review| review.decided.as_ref());
        decided.is_some_and(|decided| decided.decision == ReviewDecision::Approve)
    }
}

impl RmaUnit {
    /// Whether the shopper chose a variant or a gift card instead of a refund.
    pub fn is_for_exchange(&self) -> bool {
        self.refund_type != RefundType::Refund
    }

    /// Sets the status of an exchange that is requested now.
    pub(super) fn request_exchange(&mut self) {
        self.exchange_status = self.is_for_exchange().then_some(ExchangeStatus::Pending);
    }
}
