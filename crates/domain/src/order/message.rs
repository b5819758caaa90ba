//! The message that merchants publish: up to 500 orders, accepted together or not at all.

use chrono::{DateTime, Utc};

use super::limits::MAX_ORDERS;
use super::model::Order;
use super::sums::SumChecks;
use crate::json::{Digest, Document, FieldError, JsonValue, ValidationError, array, object};

/// The checks that a merchant can turn on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OrderPolicy {
    /// Amounts that do not add up are errors instead of warnings.
    pub strict_amounts: bool,
    /// A new refund must have a date in the future.
    pub strict_refund_dates: bool,
}

/// A valid message.
#[derive(Debug, Clone, PartialEq)]
pub struct OrderMessage {
    /// The orders as they were sent. The same order can appear more than once.
    pub snapshots: Vec<OrderSnapshot>,
    /// Amounts that do not add up.
    pub warnings: Vec<FieldError>,
}

/// One order of a message, with digests that show whether it changed.
#[derive(Debug, Clone, PartialEq)]
pub struct OrderSnapshot {
    /// The index in the message.
    pub index: usize,
    pub order: Order,
    /// The digest of the whole order, with unknown fields.
    pub digest: Digest,
    /// The digests of the order's refunds without their `rma_identifier`, in the same order.
    pub refund_digests: Vec<Digest>,
}

impl OrderMessage {
    /// Validates a message on its own, without stored orders.
    pub fn read(
        document: &Document,
        policy: OrderPolicy,
        now: DateTime<Utc>,
    ) -> Result<Self, ValidationError> {
        let (orders, warnings) = read_orders(document, policy, now);
        let snapshots = orders?.into_iter().zip(Self::documents(document.value())).enumerate();
        let snapshots = snapshots.map(|(index, (order, value))| OrderSnapshot {
            index,
            order,
            digest: Digest::of(value),
            refund_digests: elements(value, "refunds")
                .map(|refund| Digest::without(refund, "rma_identifier"))
                .collect(),
        });
        Ok(Self { snapshots: snapshots.collect(), warnings })
    }

    /// Validates a message like [`Self::read`], and returns its errors and its warnings. A message with
    /// errors has warnings about the amounts that can be read.
    pub fn check(
        document: &Document,
        policy: OrderPolicy,
        now: DateTime<Utc>,
    ) -> (Vec<FieldError>, Vec<FieldError>) {
        let (orders, warnings) = read_orders(document, policy, now);
        (orders.err().map(|invalid| invalid.errors).unwrap_or_default(), warnings)
    }

    /// The original documents of the orders in a message.
    pub fn documents(message: JsonValue<'_>) -> impl Iterator<Item = JsonValue<'_>> {
        let envelope = message.get("returns_portal_order");
        envelope.into_iter().flat_map(|envelope| elements(envelope, "orders"))
    }
}

/// The orders, and warnings about their amounts.
fn read_orders(
    document: &Document,
    policy: OrderPolicy,
    now: DateTime<Utc>,
) -> (Result<Vec<Order>, ValidationError>, Vec<FieldError>) {
    let mut sums = SumChecks::new(policy.strict_amounts);
    let orders = document.read(object(|message| {
        message.required(
            "returns_portal_order",
            object(|envelope| {
                let order = object(|order| Order::read(order, &mut sums, now));
                envelope.required("orders", array(1..=MAX_ORDERS, order))
            }),
        )
    }));
    (orders, sums.into_warnings())
}

fn elements<'a>(value: JsonValue<'a>, key: &str) -> impl Iterator<Item = JsonValue<'a>> + use<'a> {
    value.get(key).into_iter().flat_map(JsonValue::elements)
}
