//! Events that services publish to each other.

use std::collections::BTreeSet;

use serde::{Serialize, de::DeserializeOwned};

/// The data of an event. The type ends with a version; an incompatible change needs a new type.
pub trait Event: Serialize + DeserializeOwned + Send + Sync + 'static {
    /// The event type and routing key, for example `order.stored.v1`.
    const TYPE: &'static str;

    /// The CloudEvents subject.
    fn subject(&self) -> String;
}

/// The events that each service consumes.
pub const SUBSCRIPTIONS: [(&str, &[&str]); 4] = [
    ("order-intake", &["merchant.changed.v1", "token.revoked.v1", "shopper.erasure_confirmed.v1"]),
    (
        "rma-engine",
        &[
            "merchant.changed.v1",
            "token.revoked.v1",
            "order.stored.v1",
            "order.stored_in_bulk.v1",
            "unit.received.v1",
            "exchange.placed.v1",
            "exchange.failed.v1",
            "exchange.undeliverable.v1",
            "shopper.erased.v1",
            "delivery.dead.v1",
            "endpoint.health_changed.v1",
            "endpoint.paused.v1",
        ],
    ),
    (
        "exchange",
        &[
            "merchant.changed.v1",
            "token.revoked.v1",
            "return.confirmed.v1",
            "exchange.renamed.v1",
            "returns.erased.v1",
        ],
    ),
    ("warehouse-notifier", &["merchant.changed.v1", "token.revoked.v1", "returns.erased.v1"]),
];

/// The types of events that have a queue.
pub fn subscribed_types() -> BTreeSet<&'static str> {
    SUBSCRIPTIONS.iter().flat_map(|(_, types)| types.iter().copied()).collect()
}

#[cfg(test)]
mod tests;
