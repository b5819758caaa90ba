//! What becomes of an order next to what is already known of it.
//!
//! The newest snapshot wins, the same one again changes nothing, and a refund is written in ink.

use std::cell::LazyCell;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{OrderPolicy, OrderSnapshot, Refund};
use crate::json::{Digest, FieldError};

/// What was done with one order of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum OrderOutcome {
    /// It is new, or says something new.
    Stored,
    /// It says exactly what is stored.
    Unchanged,
    /// A newer one is stored; this one was noted and not applied.
    Stale,
}

/// What is stored of an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KnownOrder {
    pub updated_at: DateTime<Utc>,
    pub digest: Digest,
}

/// What is stored of a refund.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KnownRefund {
    /// Of the name of the order it belongs to: an order may have thousands of refunds and a long name.
    pub order: Digest,
    pub digest: Digest,
}

impl OrderSnapshot {
    /// Decides what becomes of this order. `refund_by` finds what is known of a refund of the same
    /// merchant by its identifier, and `refund_of` the digest of the name of the refund that a refund
    /// line belongs to.
    pub fn decide<'a>(
        &'a self,
        stored: Option<&KnownOrder>,
        refund_by: impl Fn(&'a str) -> Option<&'a KnownRefund>,
        refund_of: impl Fn(&'a str) -> Option<Digest>,
        policy: OrderPolicy,
        now: DateTime<Utc>,
    ) -> Result<OrderOutcome, Vec<FieldError>> {
        let outcome = self.outcome(stored);
        let must_be_future = policy.strict_refund_dates && outcome == OrderOutcome::Stored;
        let mut faults = Vec::new();
        let name = LazyCell::new(|| Digest::of_text(&self.order.identifier));
        let seen = self.order.refunds.iter().zip(&self.refund_digests).enumerate();
        for (index, (refund, digest)) in seen {
            let field = format!("$.returns_portal_order.orders[{}].refunds[{index}]", self.index);
            match refund_by(&refund.identifier) {
                Some(known) if known.order != *name => {
                    let detail = "a refund of another order has the same identifier";
                    faults.push(FieldError::invalid(format!("{field}.identifier"), detail));
                }
                Some(known) if known.digest != *digest => {
                    faults.push(FieldError::invalid(field, "a refund cannot change once sent"));
                }
                Some(_) => {}
                None => {
                    faults.extend(taken_lines(refund, &field, &refund_of));
                    if must_be_future && refund.created_at <= now {
                        let detail = "a new refund must carry a date in the future";
                        faults.push(FieldError::invalid(format!("{field}.created_at"), detail));
                    }
                }
            }
        }
        if faults.is_empty() { Ok(outcome) } else { Err(faults) }
    }

    /// What to remember of this order once it is stored.
    pub fn known(&self) -> KnownOrder {
        KnownOrder { updated_at: self.order.updated_at, digest: self.digest }
    }

    /// What to remember of its refunds once it is stored, by identifier.
    pub fn known_refunds(&self) -> impl Iterator<Item = (&str, KnownRefund)> {
        let name = LazyCell::new(|| Digest::of_text(&self.order.identifier));
        self.order.refunds.iter().zip(&self.refund_digests).map(move |(refund, digest)| {
            (refund.identifier.as_str(), KnownRefund { order: *name, digest: *digest })
        })
    }

    fn outcome(&self, stored: Option<&KnownOrder>) -> OrderOutcome {
        match stored {
            Some(stored) if stored.digest == self.digest => OrderOutcome::Unchanged,
            Some(stored) if self.order.updated_at < stored.updated_at => OrderOutcome::Stale,
            _ => OrderOutcome::Stored,
        }
    }
}

/// The lines of a new refund whose identifiers belong to another one.
fn taken_lines<'a>(
    refund: &'a Refund,
    field: &str,
    refund_of: impl Fn(&'a str) -> Option<Digest>,
) -> Vec<FieldError> {
    let name = Digest::of_text(&refund.identifier);
    let lines = refund.refund_line_items.iter().enumerate();
    let taken =
        lines.filter(|(_, line)| refund_of(&line.identifier).is_some_and(|owner| owner != name));
    let fault = |index: usize| {
        let field = format!("{field}.refund_line_items[{index}].identifier");
        FieldError::invalid(field, "a line of another refund has the same identifier")
    };
    taken.map(|(index, _)| fault(index)).collect()
}
