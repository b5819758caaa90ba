//! The envelope merchants send: up to five hundred orders, accepted together or not at all.

use super::Order;
use crate::json::{
    Digest, Document, FieldError, JsonValue, Object, ValidationError, array, object,
};

/// A message holds at most this many orders.
pub const MAX_ORDERS: usize = 500;
/// Further warnings are dropped: they advise, nothing depends on their number.
const MAX_WARNINGS: usize = 1_000;

/// How a merchant wants to be checked beyond what everyone must keep.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OrderPolicy {
    /// Sums that do not add up are faults, not warnings.
    pub strict_amounts: bool,
    /// A refund not seen before must carry a date in the future.
    pub strict_refund_dates: bool,
}

/// A message without faults.
#[derive(Debug, Clone, PartialEq)]
pub struct OrderMessage {
    /// In the order they were sent; an order may appear more than once.
    pub snapshots: Vec<OrderSnapshot>,
    /// Sums that do not add up.
    pub warnings: Vec<FieldError>,
}

/// One order of a message, and what tells it from an earlier snapshot of the same order.
#[derive(Debug, Clone, PartialEq)]
pub struct OrderSnapshot {
    /// Its place in the message.
    pub index: usize,
    pub order: Order,
    /// Of the whole document, unknown fields included.
    pub digest: Digest,
    /// Of the document of each of the order's refunds, in the same order.
    pub refund_digests: Vec<Digest>,
}

impl OrderMessage {
    /// Checks a message by itself.
    pub fn read(document: &Document, policy: OrderPolicy) -> Result<Self, ValidationError> {
        let mut sums = Sums { strict: policy.strict_amounts, warnings: Vec::new() };
        let orders = document.read(object(|message| {
            message.required(
                "returns_portal_order",
                object(|envelope| {
                    let order = object(|order| Order::read(order, &mut sums));
                    envelope.required("orders", array(1..=MAX_ORDERS, order))
                }),
            )
        }))?;
        let snapshots = orders.into_iter().zip(Self::documents(document.value())).enumerate();
        let snapshots = snapshots.map(|(index, (order, value))| OrderSnapshot {
            index,
            order,
            digest: Digest::of(value),
            refund_digests: elements(value, "refunds").map(Digest::of).collect(),
        });
        Ok(Self { snapshots: snapshots.collect(), warnings: sums.warnings })
    }

    /// The documents of the orders of a message, as they came.
    pub fn documents(message: JsonValue<'_>) -> impl Iterator<Item = JsonValue<'_>> {
        let envelope = message.get("returns_portal_order");
        envelope.into_iter().flat_map(|envelope| elements(envelope, "orders"))
    }
}

/// Compares amounts that should be equal.
#[derive(Debug)]
pub(super) struct Sums {
    strict: bool,
    warnings: Vec<FieldError>,
}

impl Sums {
    /// Compares what a field says with what it should say, when both are known.
    pub(super) fn compare(
        &mut self,
        object: &Object<'_>,
        key: &str,
        stated: Option<i64>,
        computed: Option<i64>,
    ) {
        let (Some(stated), Some(computed)) = (stated, computed) else { return };
        if stated == computed {
            return;
        }
        let detail = format!("says {stated}, but the parts make {computed}");
        if self.strict {
            object.invalid(key, detail);
        } else if self.warnings.len() < MAX_WARNINGS {
            self.warnings.push(object.field_error(key, detail));
        }
    }
}

fn elements<'a>(value: JsonValue<'a>, key: &str) -> impl Iterator<Item = JsonValue<'a>> + use<'a> {
    value.get(key).into_iter().flat_map(JsonValue::elements)
}
