//! Records that were found, in one form.

use api::{exchange::ExchangeOrderView, orders::StoredOrder, warehouse::RecordView};
use chrono::{DateTime, Utc};
use domain::returns::Rma;
use pages::path;
use serde::Deserialize;

use crate::{
    Page,
    markup::{badge, link, or_dash},
    record_list::words,
    states::{Shown as _, order_tone},
    table::Table,
    warehouse::place,
};

/// The lists of all services. Each response has one of them.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Found {
    orders: Vec<StoredOrder>,
    returns: Vec<Rma>,
    exchange_orders: Vec<ExchangeOrderView>,
    records: Vec<RecordView>,
}

/// A record that was found.
#[derive(Debug)]
pub(super) struct Hit {
    kind: &'static str,
    /// The segment of the URL.
    segment: &'static str,
    merchant: String,
    /// The identifier in the URL.
    identifier: String,
    name: String,
    state: String,
    tone: &'static str,
    at: DateTime<Utc>,
}

/// The hits by kind, in the order in which they were found.
pub(super) fn groups(hits: Vec<Hit>, page: &Page) -> Vec<(&'static str, Table)> {
    let mut groups: Vec<(&'static str, Vec<Hit>)> = Vec::new();
    for hit in hits {
        match groups.iter_mut().find(|(kind, _)| *kind == hit.kind) {
            Some((_, hits)) => hits.push(hit),
            None => groups.push((hit.kind, vec![hit])),
        }
    }
    groups.into_iter().map(|(kind, hits)| (kind, hit_table(kind, &hits, page))).collect()
}

fn hit_table(kind: &str, hits: &[Hit], page: &Page) -> Table {
    Table::of(format!("Found: {kind}"), hits)
        .wrapped_head("Identifier", |it| link(it.url(), &it.name))
        .cell("State", |it| or_dash((!it.state.is_empty()).then(|| badge(it.tone, &it.state))))
        .cell("Merchant", |it| link(format!("/{}", path!("merchants", it.merchant)), &it.merchant))
        .cell("Changed", |it| page.time(it.at))
        .table()
}

impl Hit {
    pub(super) fn url(&self) -> String {
        format!("/{}", path!("merchants", self.merchant, self.segment, self.identifier))
    }
}

impl Found {
    pub(super) fn hits(self) -> Vec<Hit> {
        let orders = self.orders.into_iter().map(Hit::from);
        let returns = self.returns.into_iter().map(Hit::from);
        let exchange_orders = self.exchange_orders.into_iter().map(Hit::from);
        let records = self.records.into_iter().map(Hit::from);
        orders.chain(returns).chain(exchange_orders).chain(records).collect()
    }
}

impl From<StoredOrder> for Hit {
    fn from(order: StoredOrder) -> Self {
        Self {
            kind: "Orders",
            segment: "orders",
            merchant: order.merchant.into(),
            name: order.identifier.clone(),
            identifier: order.identifier,
            tone: order_tone(&order.status),
            state: words(&order.status),
            at: order.updated_at,
        }
    }
}

impl From<Rma> for Hit {
    fn from(rma: Rma) -> Self {
        Self {
            kind: "Returns",
            segment: "returns",
            merchant: rma.merchant.into(),
            name: rma.rma_identifier.clone(),
            identifier: rma.rma_identifier,
            tone: rma.status.tone(),
            state: rma.status.words(),
            at: rma.updated_at,
        }
    }
}

impl From<ExchangeOrderView> for Hit {
    fn from(order: ExchangeOrderView) -> Self {
        let name = order.exchange_order_identifier.unwrap_or_default();
        Self {
            kind: "Exchange orders",
            segment: "exchange-orders",
            merchant: order.merchant,
            name: format!("{name} for order {}", order.original_order_id),
            identifier: order.original_order_id,
            tone: order.state.tone(),
            state: order.state.words(),
            at: order.received_at,
        }
    }
}

impl From<RecordView> for Hit {
    fn from(record: RecordView) -> Self {
        let (kind, segment) = place(&record);
        Self {
            kind,
            segment,
            merchant: record.merchant.into(),
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
        let hit = Hit::from(found.records.into_iter().next().unwrap());
        assert_eq!((hit.kind, hit.segment), ("Drop shipments", "drop-shipments"));
    }
}
