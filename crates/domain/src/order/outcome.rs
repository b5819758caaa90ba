//! The comparison of an order snapshot with the stored order.
//!
//! The newest snapshot wins, an equal snapshot changes nothing, and of a stored refund only the
//! `rma_identifier` can change.

use std::cell::LazyCell;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::message::{OrderPolicy, OrderSnapshot};
use super::refund::Refund;
use crate::json::{Digest, FieldError};

/// The result for one order of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum OrderOutcome {
    /// The order is new or has changed.
    Stored,
    /// The order is equal to the stored one.
    Unchanged,
    /// A newer snapshot is stored. This one was logged and not applied.
    Stale,
}

/// The version of an order, by which snapshots are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OrderVersion {
    pub updated_at: DateTime<Utc>,
    pub digest: Digest,
}

/// The version of a refund, by which snapshots are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RefundVersion {
    /// The digest of the order's identifier.
    pub order_digest: Digest,
    /// The digest of the refund without its `rma_identifier`.
    pub digest: Digest,
}

impl OrderSnapshot {
    /// Decides the outcome of this order. `refund_by` finds a stored refund of the merchant by its
    /// identifier. `refund_of` finds, for a refund line, the digest of its refund's identifier.
    pub fn decide<'a>(
        &'a self,
        stored: Option<&OrderVersion>,
        refund_by: impl Fn(&'a str) -> Option<&'a RefundVersion>,
        refund_of: impl Fn(&'a str) -> Option<Digest>,
        policy: OrderPolicy,
        now: DateTime<Utc>,
    ) -> Result<OrderOutcome, Vec<FieldError>> {
        let outcome = self.outcome(stored);
        let must_be_future = policy.strict_refund_dates && outcome == OrderOutcome::Stored;
        let mut errors = Vec::new();
        let order_digest = LazyCell::new(|| Digest::of_text(&self.order.identifier));
        let refunds = self.order.refunds.iter().zip(&self.refund_digests).enumerate();
        for (index, (refund, digest)) in refunds {
            let field = format!("$.returns_portal_order.orders[{}].refunds[{index}]", self.index);
            match refund_by(&refund.identifier) {
                Some(stored) if stored.order_digest != *order_digest => {
                    let detail = "a refund of another order has the same identifier";
                    errors.push(FieldError::invalid(format!("{field}.identifier"), detail));
                }
                Some(stored) if stored.digest != *digest => {
                    errors.push(FieldError::invalid(
                        field,
                        "only the rma_identifier of a stored refund can change",
                    ));
                }
                Some(_) => {}
                None => {
                    errors.extend(duplicate_lines(refund, &field, &refund_of));
                    if must_be_future && refund.created_at <= now {
                        let detail = "a new refund must carry a date in the future";
                        errors.push(FieldError::invalid(format!("{field}.created_at"), detail));
                    }
                }
            }
        }
        if errors.is_empty() { Ok(outcome) } else { Err(errors) }
    }

    /// The version to compare later snapshots with.
    pub fn version(&self) -> OrderVersion {
        OrderVersion { updated_at: self.order.updated_at, digest: self.digest }
    }

    /// The versions of the refunds by identifier.
    pub fn refund_versions(&self) -> impl Iterator<Item = (&str, RefundVersion)> {
        let order_digest = LazyCell::new(|| Digest::of_text(&self.order.identifier));
        self.order.refunds.iter().zip(&self.refund_digests).map(move |(refund, digest)| {
            let version = RefundVersion { order_digest: *order_digest, digest: *digest };
            (refund.identifier.as_str(), version)
        })
    }

    fn outcome(&self, stored: Option<&OrderVersion>) -> OrderOutcome {
        match stored {
            Some(stored) if stored.digest == self.digest => OrderOutcome::Unchanged,
            Some(stored) if self.order.updated_at < stored.updated_at => OrderOutcome::Stale,
            _ => OrderOutcome::Stored,
        }
    }
}

/// The errors of lines whose identifiers belong to another refund.
fn duplicate_lines<'a>(
    refund: &'a Refund,
    field: &str,
    refund_of: impl Fn(&'a str) -> Option<Digest>,
) -> Vec<FieldError> {
    let own = Digest::of_text(&refund.identifier);
    let lines = refund.refund_line_items.iter().enumerate();
    let duplicates =
        lines.filter(|(_, line)| refund_of(&line.identifier).is_some_and(|other| other != own));
    let error = |index: usize| {
        let field = format!("{field}.refund_line_items[{index}].identifier");
        FieldError::invalid(field, "a line of another refund has the same identifier")
    };
    duplicates.map(|(index, _)| error(index)).collect()
}
