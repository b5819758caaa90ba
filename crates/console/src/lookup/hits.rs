//! Records that were found, in one form.

use chrono::{DateTime, Utc};
use pages::{path, text::Moment};
use serde::Deserialize;

use crate::{
    Page, exchange_orders::state_tone, listing::words, returns::status_tone,
    warehouse::WarehouseRecord,
};

/// The lists of all services. Each response has one of them.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Found {
    orders: Vec<Order>,
    returns: Vec<Return>,
    exchange_orders: Vec<ExchangeOrder>,
    records: Vec<WarehouseRecord>,
}

#[derive(Debug, Deserialize)]
struct Order {
    merchant: Option<String>,
    identifier: String,
    status: String,
    updated_at: DateTime<Utc>,
}

#[derive(Debug, Deserialize)]
struct Return {
    merchant: Option<String>,
    rma_identifier: String,
    status: String,
    updated_at: DateTime<Utc>,
}

#[derive(Debug, Deserialize)]
struct ExchangeOrder {
    merchant: Option<String>,
    original_order_id: String,
    exchange_order_identifier: Option<String>,
    state: String,
    received_at: DateTime<Utc>,
}

/// A record that was found.
#[derive(Debug)]
pub(super) struct Hit {
    kind: &'static str,
    pub(super) name: String,
    pub(super) url: String,
    pub(super) merchant: String,
    pub(super) state: String,
    pub(super) tone: &'static str,
    pub(super) at: Moment,
}

/// The hits of one kind.
pub(super) struct Group {
    pub(super) name: &'static str,
    pub(super) hits: Vec<Hit>,
}

/// The hits by kind, in the order in which they were found.
pub(super) fn groups(hits: Vec<Hit>) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    for hit in hits {
        match groups.iter_mut().find(|group| group.name == hit.kind) {
            Some(group) => group.hits.push(hit),
            None => groups.push(Group { name: hit.kind, hits: vec![hit] }),
        }
    }
    groups
}

/// The parts of a hit that differ by kind.
struct Parts {
    kind: &'static str,
    /// The segment of the URL.
    segment: &'static str,
    merchant: Option<String>,
    /// The identifier in the URL.
    identifier: String,
    name: String,
    state: String,
    tone: &'static str,
    at: DateTime<Utc>,
}

impl Found {
    /// The records as hits. Lists within one merchant may leave out its name.
    pub(super) fn hits(self, within: Option<&str>, page: &Page) -> Vec<Hit> {
        let orders = self.orders.into_iter().map(Parts::from);
        let returns = self.returns.into_iter().map(Parts::from);
        let exchange_orders = self.exchange_orders.into_iter().map(Parts::from);
        let records = self.records.into_iter().map(Parts::from);
        let all = orders.chain(returns).chain(exchange_orders).chain(records);
        all.map(|parts| parts.hit(within, page)).collect()
    }
}

impl Parts {
    fn hit(self, within: Option<&str>, page: &Page) -> Hit {
        let merchant = self.merchant.or_else(|| within.map(str::to_owned)).unwrap_or_default();
        let url = path!("merchants", merchant, self.segment, self.identifier);
        Hit {
            kind: self.kind,
            name: self.name,
            url: format!("/{url}"),
            merchant,
            state: self.state,
            tone: self.tone,
            at: page.moment(self.at),
        }
    }
}

impl From<Order> for Parts {
    fn from(order: Order) -> Self {
        Self {
            kind: "Orders",
            segment: "orders",
            merchant: order.merchant,
            name: order.identifier.clone(),
            identifier: order.identifier,
            tone: if order.status == "Cancelled" { "warn" } else { "info" },
            state: words(&order.status),
            at: order.updated_at,
        }
    }
}

impl From<Return> for Parts {
    fn from(rma: Return) -> Self {
        Self {
            kind: "Returns",
            segment: "returns",
            merchant: rma.merchant,
            name: rma.rma_identifier.clone(),
            identifier: rma.rma_identifier,
            tone: status_tone(&rma.status),
            state: words(&rma.status),
            at: rma.updated_at,
        }
    }
}

impl From<ExchangeOrder> for Parts {
    fn from(order: ExchangeOrder) -> Self {
        let name = order.exchange_order_identifier.unwrap_or_default();
        Self {
            kind: "Exchange orders",
            segment: "exchange-orders",
            merchant: order.merchant,
            name: format!("{name} for order {}", order.original_order_id),
            identifier: order.original_order_id,
            tone: state_tone(&order.state),
            state: words(&order.state),
            at: order.received_at,
        }
    }
}

impl From<WarehouseRecord> for Parts {
    fn from(record: WarehouseRecord) -> Self {
        let (kind, segment) = record.place();
        Self {
            kind,
            segment,
            merchant: record.merchant,
            name: record.number.clone(),
            identifier: record.number,
            tone: "",
            state: String::new(),
            at: record.created_at,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_response_of_any_service_is_read() {
        let text = r#"{"records": [{"merchant": "acme", "kind": "drop_shipment", "number": "1001",
            "created_at": "2026-01-01T00:00:00Z"}], "next": "x"}"#;
        let found: Found = serde_json::from_str(text).unwrap();
        assert!(found.orders.is_empty() && found.returns.is_empty());
        let parts = Parts::from(found.records.into_iter().next().unwrap());
        assert_eq!((parts.kind, parts.segment), ("Drop shipments", "drop-shipments"));
    }
}
